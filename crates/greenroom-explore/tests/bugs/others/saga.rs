//! A saga that gives up in its middle, and does not give back what it has taken.

use greenroom_explore::prelude::*;

#[derive(Default, Debug, Actor)]
struct Stock {
    reserved: u64,
}

#[actor]
impl Stock {
    pub async fn reserve(&mut self) {
        self.reserved += 1;
    }

    pub async fn release(&mut self) {
        self.reserved -= 1;
    }
}

#[derive(Default, Debug, Actor)]
struct Wallet {
    paid: u64,
}

#[actor]
impl Wallet {
    pub async fn pay(&mut self) {
        self.paid += 1;
    }
}

#[derive(Default, Debug, Actor)]
struct Order;

#[actor]
impl Order {
    pub async fn place(&mut self, cx: &Cx, is_repaired: bool) {
        let (stock, wallet) = (StockRef::of(cx, "lamps"), WalletRef::of(cx, "ada"));
        if stock.reserve().await.is_err() {
            return;
        }
        match wallet.pay().await {
            // Nothing was paid.
            Err(CallError::Refused(_)) if is_repaired => while stock.release().await.is_err() {},
            // The mistake: what is reserved stays so.
            _ => {}
        }
    }
}

async fn as_many_are_reserved_as_are_paid(world: World, is_repaired: bool) {
    for order in ["1", "2"] {
        let order = OrderRef::of(&world, order);
        world.client(async move { drop(order.place(is_repaired).await) });
    }
    world.eventually("as many are reserved as are paid", |now| {
        let reserved = now.get::<Stock>("lamps").map_or(0, |stock| stock.reserved);
        reserved == now.get::<Wallet>("ada").map_or(0, |wallet| wallet.paid)
    });
}

#[test]
fn a_saga_without_compensation() {
    let kinds = |builder: Builder| builder.register::<Stock>().register::<Wallet>().register::<Order>();
    super::is_told_apart("saga", &Explore::of(kinds).faults("late"), as_many_are_reserved_as_are_paid);
}

//! Messages of two senders, in the order that somebody has seen once.

use greenroom::Builder;
use greenroom::prelude::*;
use greenroom_explore::World;

pub(super) fn register(builder: Builder) -> Builder {
    builder.register::<Order>()
}

#[derive(Default, Actor)]
struct Order {
    is_created: bool,
    is_paid: bool,
}

#[actor]
impl Order {
    pub async fn created(&mut self) {
        self.is_created = true;
    }

    pub async fn paid(&mut self, may_be_first: bool) {
        self.is_paid |= self.is_created || may_be_first;
    }
}

pub(super) fn two_senders(world: &World, is_repaired: bool) {
    let (shop, cashier) = (OrderRef::of(world, "7"), OrderRef::of(world, "7"));
    world.client(async move { shop.created().send() });
    world.client(async move { cashier.paid(is_repaired).send() });
    world.eventually("the order is paid", |now| now.get::<Order>("7").is_some_and(|order| order.is_paid));
}

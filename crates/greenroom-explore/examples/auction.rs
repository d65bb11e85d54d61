//! An auction with a mistake in it, found within a second: `cargo run -p greenroom-explore --example auction`.
//!
//! Lots take the highest bid, wallets hold the money for it, and a bidder's desk goes from one to the other. Read it, guess, run it.
//! `-- --repaired` explores the desk that does it right.

use greenroom::prelude::*;
use greenroom_explore::{Explore, Files, World};
use serde::{Deserialize, Serialize};

/// Somebody's money.
#[derive(Default, Debug, Actor)]
pub struct Wallet {
    free: i64,
    held: i64,
}

#[actor(invariant = "Self::sound")]
impl Wallet {
    /// Puts money in.
    pub async fn fill(&mut self, amount: i64) {
        self.free += amount;
    }

    /// Keeps money for a bid; `false` if there is too little.
    pub async fn hold(&mut self, amount: i64) -> bool {
        if self.free < amount {
            return false;
        }
        self.free -= amount;
        self.held += amount;
        true
    }

    /// Gives it back.
    pub async fn release(&mut self, amount: i64) {
        self.held -= amount;
        self.free += amount;
    }

    /// The money that is kept.
    pub async fn held(&self) -> i64 {
        self.held
    }

    fn sound(&self) -> Result<(), String> {
        match self.free >= 0 && self.held >= 0 {
            true => Ok(()),
            false => Err(format!("{} free and {} held", self.free, self.held)),
        }
    }
}

/// What somebody offers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Bid {
    /// Who.
    pub bidder: String,
    /// How much.
    pub amount: i64,
}

/// Something that is sold.
#[derive(Default, Debug, Actor)]
pub struct Lot {
    highest: Option<Bid>,
}

#[actor]
impl Lot {
    /// The highest bid so far.
    pub async fn highest(&self) -> Option<Bid> {
        self.highest.clone()
    }

    /// Takes a bid, whatever it is.
    pub async fn take(&mut self, bid: Bid) {
        self.highest = Some(bid);
    }

    /// Takes a bid if it is higher; gives back the one that is to be released, this one or the one before.
    pub async fn offer(&mut self, bid: Bid) -> Option<Bid> {
        match &self.highest {
            Some(highest) if highest.amount >= bid.amount => Some(bid),
            _ => self.highest.replace(bid),
        }
    }
}

/// Brings bids to lots: `desk/ada` is ada's.
#[derive(Default, Debug, Actor)]
pub struct Desk;

#[actor]
impl Desk {
    /// Bids, if that is more than the highest so far. Who is outbid gets the money back.
    pub async fn bid(&self, cx: &Cx, lot: String, amount: i64) -> bool {
        let bidder = cx.key().to_string();
        let lot = LotRef::of(cx, lot);
        let before = lot.highest().await.expect("lots answer");
        if before.as_ref().is_some_and(|before| before.amount >= amount) {
            return false;
        }
        if !WalletRef::of(cx, bidder.as_str()).hold(amount).await.expect("wallets answer") {
            return false;
        }
        lot.take(Bid { bidder, amount }).await.expect("lots answer");
        if let Some(Bid { bidder, amount }) = before {
            WalletRef::of(cx, bidder).release(amount).await.expect("wallets answer");
        }
        true
    }

    /// The same, repaired: the lot itself compares and takes, in one turn.
    pub async fn bid_in_one_turn(&self, cx: &Cx, lot: String, amount: i64) -> bool {
        let bidder = cx.key().to_string();
        if !WalletRef::of(cx, bidder.as_str()).hold(amount).await.expect("wallets answer") {
            return false;
        }
        let bid = Bid { bidder, amount };
        let beaten = LotRef::of(cx, lot).offer(bid.clone()).await.expect("lots answer");
        if let Some(Bid { bidder, amount }) = &beaten {
            WalletRef::of(cx, bidder.as_str()).release(*amount).await.expect("wallets answer");
        }
        beaten != Some(bid)
    }
}

/// Two bid for one lot, at the same time; in the end the money that is held is what the lot's bid says.
pub async fn auction(world: World, repaired: bool) {
    for bidder in ["ada", "bob"] {
        WalletRef::of(&world, bidder).fill(100).await.expect("wallets answer");
    }
    for (bidder, amount) in [("ada", 30), ("bob", 40)] {
        let desk = DeskRef::of(&world, bidder);
        world.client(async move {
            let bid =
                if repaired { desk.bid_in_one_turn("lamp", amount).await } else { desk.bid("lamp", amount).await };
            bid.expect("desks answer");
        });
    }
    world.finally(|world| async move {
        let highest = LotRef::of(&world, "lamp").highest().await.expect("lots answer");
        for bidder in ["ada", "bob"] {
            let held = WalletRef::of(&world, bidder).held().await.expect("wallets answer");
            let owed = highest.iter().filter(|bid| bid.bidder == bidder).map(|bid| bid.amount).sum::<i64>();
            assert_eq!(held, owed, "{bidder}'s money is held for a bid that does not stand");
        }
    });
}

/// The actors of the auction.
pub fn house() -> Explore {
    Explore::of(|builder| builder.register::<Wallet>().register::<Lot>().register::<Desk>())
}

fn main() {
    let repaired = std::env::args().any(|argument| argument == "--repaired");
    match house().check(move |world| auction(world, repaired)) {
        Ok(explored) => println!("auction: {explored}"),
        Err(failure) => {
            println!("{failure}");
            match failure.save() {
                Ok(Files { page, .. }) => println!("  open it  file://{}", page.display()),
                Err(error) => println!("  the page could not be written: {error}"),
            }
        }
    }
}

//! An auction house that outlives its nodes, all but one bid: `cargo run -p greenroom-explore --example auction_house`.
//!
//! A bidder holds money in a wallet, offers it to a lot, and gives back the money of who is outbid. Whatever crashes in between, it
//! goes on from what it has saved. Read it, guess, run it. `-- --repaired` explores the bidder that does it right.

use std::collections::BTreeMap;

use greenroom::prelude::*;
use greenroom_explore::{Explore, Files, World};
use serde::{Deserialize, Serialize};

/// Somebody's money.
#[derive(Default, Debug, Serialize, Deserialize, Actor)]
pub struct Wallet {
    free: i64,
    /// What is held, by lots.
    held: BTreeMap<String, i64>,
}

#[actor(persistent, save = "turn", invariant = "Self::sound")]
impl Wallet {
    /// Puts money in.
    pub async fn fill(&mut self, amount: i64) {
        self.free += amount;
    }

    /// Holds money for a lot, once; `false` if there is too little.
    pub async fn hold(&mut self, lot: String, amount: i64) -> bool {
        if self.held.contains_key(&lot) {
            return true;
        }
        if self.free < amount {
            return false;
        }
        self.free -= amount;
        self.held.insert(lot, amount);
        true
    }

    /// Gives back what is held for a lot.
    pub async fn release(&mut self, lot: String) {
        self.free += self.held.remove(&lot).unwrap_or_default();
    }

    /// What is held for a lot.
    pub async fn held(&self, lot: String) -> i64 {
        self.held.get(&lot).copied().unwrap_or_default()
    }

    fn sound(&self) -> Result<(), String> {
        if self.free >= 0 { Ok(()) } else { Err(format!("{} are free", self.free)) }
    }
}

/// Something that is sold.
#[derive(Default, Debug, Serialize, Deserialize, Actor)]
pub struct Lot {
    /// What each bidder has offered.
    bids: BTreeMap<String, i64>,
}

#[actor(persistent, save = "turn")]
impl Lot {
    /// Takes an offer; who is outbid now.
    pub async fn offer(&mut self, bidder: String, amount: i64) -> Vec<String> {
        self.bids.insert(bidder, amount);
        let highest = self.bids.values().max().copied();
        self.bids.iter().filter(|(_, bid)| Some(**bid) < highest).map(|(bidder, _)| bidder.clone()).collect()
    }

    /// Who has offered most, and how much.
    pub async fn highest(&self) -> Option<(String, i64)> {
        self.bids.iter().max_by_key(|(_, amount)| **amount).map(|(bidder, amount)| (bidder.clone(), *amount))
    }
}

/// A bid that is under way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bid {
    lot: String,
    amount: i64,
}

/// Brings bids to lots: `bidder/ada` is ada's.
#[derive(Default, Debug, Serialize, Deserialize, Actor)]
pub struct Bidder {
    pending: Option<Bid>,
}

#[actor(persistent)]
impl Bidder {
    /// Bids: money is held before the lot hears of it.
    pub async fn bid(&mut self, cx: &Cx, lot: String, amount: i64) -> Result<(), String> {
        self.pending = Some(Bid { lot, amount });
        self.settle(cx).await
    }

    /// The same, repaired: a bid is saved before anything is done for it.
    pub async fn bid_for_sure(&mut self, cx: &Cx, lot: String, amount: i64) -> Result<(), String> {
        self.pending = Some(Bid { lot, amount });
        cx.save(self).await.map_err(|error| error.to_string())?;
        self.settle(cx).await
    }

    /// Goes on with the bid that is under way, if there is one: each part of it may be done twice.
    pub async fn settle(&mut self, cx: &Cx) -> Result<(), String> {
        let Some(Bid { lot, amount }) = self.pending.clone() else { return Ok(()) };
        let bidder = cx.key().to_string();
        let failed = |error: CallError| error.to_string();
        if WalletRef::of(cx, bidder.as_str()).hold(lot.clone(), amount).await.map_err(failed)? {
            let outbid = LotRef::of(cx, lot.as_str()).offer(bidder, amount).await.map_err(failed)?;
            for bidder in outbid {
                WalletRef::of(cx, bidder).release(lot.clone()).await.map_err(failed)?;
            }
        }
        self.pending = None;
        cx.save(self).await.map_err(|error| error.to_string())
    }
}

/// Two bid for one lot, and nodes may be gone. When all is settled, money is held for the bid that stands, and for no other.
pub async fn sale(world: World, repaired: bool) {
    let bidders = ["ada", "bob"];
    for bidder in bidders {
        WalletRef::of(&world, bidder).fill(100).await.expect("wallets answer");
    }
    for (bidder, amount) in bidders.into_iter().zip([30, 40]) {
        let bidder = BidderRef::of(&world, bidder);
        world.client(async move {
            // Where it fails, it is settled later.
            drop(if repaired { bidder.bid_for_sure("lamp", amount).await } else { bidder.bid("lamp", amount).await });
        });
    }
    world.finally(move |world| async move {
        for bidder in bidders {
            BidderRef::of(&world, bidder).settle().await.expect("nothing goes wrong any more");
        }
        let highest = LotRef::of(&world, "lamp").highest().await.expect("lots answer");
        for bidder in bidders {
            let held = WalletRef::of(&world, bidder).held("lamp").await.expect("wallets answer");
            let owed = highest.iter().filter(|(by, _)| by == bidder).map(|(_, amount)| amount).sum::<i64>();
            assert_eq!(held, owed, "{bidder}'s money is held for a bid that does not stand");
        }
    });
}

/// The actors of the house, and what may go wrong.
pub fn house() -> Explore {
    let kinds = Explore::of(|builder| builder.register::<Wallet>().register::<Lot>().register::<Bidder>());
    kinds.faults("crash")
}

fn main() {
    let repaired = std::env::args().any(|argument| argument == "--repaired");
    match house().check(move |world| sale(world, repaired)) {
        Ok(explored) => println!("auction house: {explored}"),
        Err(failure) => {
            println!("{failure}");
            match failure.save() {
                Ok(Files { page, .. }) => println!("  open it  file://{}", page.display()),
                Err(error) => println!("  the page could not be written: {error}"),
            }
        }
    }
}

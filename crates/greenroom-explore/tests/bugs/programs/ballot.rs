//! A survey that asks in one turn whether somebody has voted, and counts in another. No specification says that this is wrong.

use std::collections::BTreeSet;

use greenroom::Builder;
use greenroom::prelude::*;
use greenroom_explore::World;

pub(super) fn register(builder: Builder) -> Builder {
    builder.register::<Ballot>().register::<Booth>()
}

#[derive(Default, Debug, Actor)]
struct Ballot {
    voters: BTreeSet<String>,
    count: u64,
}

#[actor]
impl Ballot {
    pub async fn has_voted(&self, voter: String) -> bool {
        self.voters.contains(&voter)
    }

    pub async fn count(&mut self, voter: String) {
        self.voters.insert(voter);
        self.count += 1;
    }

    pub async fn vote(&mut self, voter: String) {
        self.count += u64::from(self.voters.insert(voter));
    }

    pub async fn counted(&self) -> u64 {
        self.count
    }
}

#[derive(Default, Actor)]
struct Booth;

#[actor]
impl Booth {
    pub async fn vote(&self, cx: &Cx, voter: String, is_repaired: bool) {
        let ballot = BallotRef::of(cx, "lunch");
        if is_repaired {
            ballot.vote(voter).await.expect("it answers");
        } else if !ballot.has_voted(voter.clone()).await.expect("it answers") {
            ballot.count(voter).await.expect("it answers");
        }
    }
}

pub(super) fn survey(world: &World, is_repaired: bool) {
    for booth in ["1", "2"] {
        let booth = BoothRef::of(world, booth);
        world.client(async move { booth.vote("ada", is_repaired).await.expect("it answers") });
    }
    world.finally(|world| async move {
        assert_eq!(BallotRef::of(&world, "lunch").counted().await, Ok(1), "ada has voted twice");
    });
}

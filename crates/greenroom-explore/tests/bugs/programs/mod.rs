//! The classic mistakes of actors, each with a twin in which it is repaired.

mod account;
mod ballot;
mod order;
mod philosopher;
mod pool;
mod word;

use greenroom::Builder;
use greenroom::prelude::*;
use greenroom_explore::{Explore, World};

/// A program to be explored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Program {
    /// A read, then a write that depends on it.
    LostUpdate,
    /// Each of three excludes others while it awaits the next one.
    Deadlock,
    /// What two senders send to one actor is taken to come in one order.
    TwoSenders,
    /// A pool of resources that does not count a loss (RSM §6.2, PoolServer 1).
    PoolServer1,
    /// A pool that counts in a field which is gone after a crash (RSM §6.2, PoolServer 2).
    PoolServer2,
    /// The most frequent word is the one that was told last.
    WordCount,
    /// A look at the money, then a turn that takes it.
    Bank,
    /// Whether somebody has voted is asked in one turn, and the vote counted in another.
    Survey,
}

impl Program {
    pub(crate) const ALL: [Program; 8] = [
        Program::LostUpdate,
        Program::Deadlock,
        Program::TwoSenders,
        Program::PoolServer1,
        Program::PoolServer2,
        Program::WordCount,
        Program::Bank,
        Program::Survey,
    ];

    /// What is explored: the program with its mistake, or repaired.
    pub(crate) fn explore(self, is_repaired: bool) -> Explore {
        let equipped = move |builder: Builder| {
            let builder = builder.register::<Noise>();
            match self {
                Program::LostUpdate | Program::Bank => account::register(builder),
                Program::Deadlock => philosopher::register(builder),
                Program::TwoSenders => order::register(builder),
                Program::PoolServer1 if !is_repaired => pool::forgets_a_loss::register(builder),
                Program::PoolServer2 if !is_repaired => pool::forgets_at_a_crash::register(builder),
                Program::PoolServer1 | Program::PoolServer2 => pool::repaired::register(builder),
                Program::WordCount => word::register(builder),
                Program::Survey => ballot::register(builder),
            }
        };
        let explore = Explore::of(equipped);
        if self.has_crashes() { explore.faults("crash") } else { explore }
    }

    /// Whether nodes may be gone.
    pub(crate) fn has_crashes(self) -> bool {
        matches!(self, Program::PoolServer1 | Program::PoolServer2)
    }

    /// The clients and what is claimed, beside so many clients that have nothing to do with it.
    pub(crate) async fn body(self, world: World, is_repaired: bool, noisy: usize) {
        for client in 0..noisy {
            let noise = NoiseRef::of(&world, format!("{}", client % 2));
            world.client(async move {
                for _ in 0..3 {
                    // Where nodes are gone, so may be an answer.
                    drop(noise.make().await);
                }
            });
        }
        match self {
            Program::LostUpdate => account::lost_update(&world, is_repaired),
            Program::Bank => account::bank(&world, is_repaired).await,
            Program::Deadlock => philosopher::deadlock(&world, is_repaired),
            Program::TwoSenders => order::two_senders(&world, is_repaired),
            Program::PoolServer1 if !is_repaired => pool::forgets_a_loss::reaches_its_goal(&world).await,
            Program::PoolServer2 if !is_repaired => pool::forgets_at_a_crash::reaches_its_goal(&world).await,
            Program::PoolServer1 | Program::PoolServer2 => pool::repaired::reaches_its_goal(&world).await,
            Program::WordCount => word::word_count(&world, is_repaired),
            Program::Survey => ballot::survey(&world, is_repaired),
        }
    }
}

#[derive(Default, Actor)]
struct Noise {
    made: u64,
}

#[actor]
impl Noise {
    pub async fn make(&mut self) -> u64 {
        self.made += 1;
        self.made
    }
}

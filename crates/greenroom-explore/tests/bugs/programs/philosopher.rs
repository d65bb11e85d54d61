//! Three that exclude others while they await each other.

use greenroom::Builder;
use greenroom::prelude::*;
use greenroom_explore::World;

pub(super) fn register(builder: Builder) -> Builder {
    builder.register::<Philosopher>()
}

#[derive(Default, Actor)]
struct Philosopher;

#[actor]
impl Philosopher {
    /// Passes it on to the next of three, and excludes others until that has answered.
    pub async fn ask(&mut self, cx: &Cx, next: u64, left: u64) {
        if left > 0 {
            let after = next % 3 + 1;
            PhilosopherRef::of(cx, next).ask(after, left - 1).await.expect("the neighbour answers");
        }
    }

    /// The same, beside others.
    pub async fn ask_beside(&self, cx: &Cx, next: u64, left: u64) {
        if left > 0 {
            let after = next % 3 + 1;
            PhilosopherRef::of(cx, next).ask_beside(after, left - 1).await.expect("the neighbour answers");
        }
    }
}

pub(super) fn deadlock(world: &World, is_repaired: bool) {
    for first in 1..=3_u64 {
        let philosopher = PhilosopherRef::of(world, first);
        world.client(async move {
            let next = first % 3 + 1;
            let done = if is_repaired { philosopher.ask_beside(next, 1).await } else { philosopher.ask(next, 1).await };
            done.expect("all answer in the end");
        });
    }
}

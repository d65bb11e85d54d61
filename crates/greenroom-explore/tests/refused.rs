//! What a test cannot ask for, and what it would prove nothing by, is refused, with the remedy.

use greenroom_explore::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[derive(Default, Debug, Actor)]
struct Count {
    count: u64,
}

#[actor]
impl Count {
    pub async fn add(&mut self) -> u64 {
        self.count += 1;
        self.count
    }
}

fn kinds(builder: Builder) -> Builder {
    builder.register::<Count>()
}

fn one_client(world: &World) {
    let count = CountRef::of(world, "one");
    world.client(async move { drop(count.add().await) });
}

/// What `explore` dies of.
fn refusal<F: Future<Output = ()> + 'static>(
    explore: Explore,
    body: impl Fn(World) -> F + Send + Sync + 'static,
) -> String {
    let ended = catch_unwind(AssertUnwindSafe(|| drop(explore.check(body))));
    let payload = ended.expect_err("it is refused");
    let text = payload.downcast_ref::<String>().cloned();
    text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned())).expect("it has words")
}

#[explore(with = kinds)]
async fn kinds_may_be_registered_by_a_function(world: World) {
    one_client(&world);
}

#[test]
fn what_is_neither_a_schedule_nor_a_file_says_what_to_give() {
    let told = refusal(Explore::of(kinds).replay("explore/gone.schedule"), |world| async move { one_client(&world) });
    assert!(told.contains("no file") && told.contains("GREENROOM_REPLAY"), "{told}");
}

#[test]
fn a_replay_says_what_of_its_schedule_did_not_come() {
    let replay = |schedule: &str| {
        let explore = Explore::of(kinds).replay(schedule);
        explore.check(|world| async move { one_client(&world) }).expect("it breaks nothing")
    };
    let stale = replay("2:client 7; 3:client 1");
    assert_eq!(stale.unfit, ["2:client 7", "3:client 1"]);
    assert!(stale.to_string().contains("without \"2:client 7\", which did not come"), "{stale}");
    assert!(replay("1:client 1").unfit.is_empty() && replay("").unfit.is_empty());
}

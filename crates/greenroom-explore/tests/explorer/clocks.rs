//! Nodes whose clocks differ: what is due by them comes sooner than somebody has waited.

use std::time::Duration;

use greenroom_explore::prelude::*;

/// A place that is paid for a while.
#[derive(Default, Debug, Actor)]
struct Place {
    until: Option<u64>,
    paid: u64,
}

#[actor(reliable)]
impl Place {
    /// Pays for two minutes.
    pub async fn pay(&mut self, cx: &Cx) {
        self.paid += 1;
        self.until = Some(self.paid);
        PlaceRef::me(cx).leave(self.paid).after(PAID_FOR).send();
    }

    pub async fn leave(&mut self, paid: u64) {
        if self.until == Some(paid) {
            self.until = None;
        }
    }

    pub async fn is_paid(&self) -> bool {
        self.until.is_some()
    }
}

/// Pays, and comes back while it is still paid: `early` before they are over, by the clock of who has paid.
async fn parked(world: World, early: Duration) {
    let place = PlaceRef::of(&world, "7");
    world.client(async move {
        place.pay().await.expect("it answers");
        tokio::time::sleep(PAID_FOR - early).await;
        assert_eq!(place.is_paid().await, Ok(true), "it was paid for");
    });
}

fn places(faults: &str) -> Explore {
    Explore::of(|builder| builder.register::<Place>()).faults(faults).timers("in_time")
}

#[test]
fn what_is_due_by_a_clock_that_is_ahead_comes_too_soon() {
    let failure = places("skew").check(|world| parked(world, Duration::from_secs(30)));
    let failure = failure.expect_err("the node's clock is a minute ahead");
    println!("{failure}");
    assert!(failure.violated().contains("it was paid for"), "{failure}");
    assert!(failure.replay().contains(":skew "), "{failure}");
    let again = places("skew").replay(failure.replay()).check(|world| parked(world, Duration::from_secs(30)));
    assert_eq!(again.expect_err("it breaks again").violated(), failure.violated());
}

#[test]
fn who_leaves_room_for_clocks_that_differ_sees_nothing_of_it() {
    places("skew").run(|world| parked(world, Duration::from_secs(90)));
    places("").run(|world| parked(world, Duration::from_secs(30)));
}

const PAID_FOR: Duration = Duration::from_secs(120);

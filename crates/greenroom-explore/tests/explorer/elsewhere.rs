//! Actors that go on elsewhere while what was sent before is still under way, and messages that come twice.

use greenroom_explore::prelude::*;
use serde::{Deserialize, Serialize};

/// Shows the last page that it was told, and takes it for granted that pages come in their order.
#[derive(Default, Debug, Serialize, Deserialize, Actor)]
struct Board {
    page: u64,
    went_back: bool,
}

#[actor(persistent, save = "turn")]
impl Board {
    pub async fn show(&mut self, page: u64) {
        self.went_back |= page < self.page;
        self.page = page;
    }

    /// The same, repaired: only what is newer is shown.
    pub async fn show_newer(&mut self, page: u64) {
        self.page = self.page.max(page);
    }

    pub async fn went_back(&self) -> bool {
        self.went_back
    }
}

/// Tells the board.
#[derive(Default, Debug, Actor)]
struct Writer;

#[actor]
impl Writer {
    pub async fn publish(&self, cx: &Cx, page: u64, is_repaired: bool) {
        let board = BoardRef::of(cx, "hall");
        if is_repaired { board.show_newer(page).send() } else { board.show(page).send() }
    }
}

fn boards(faults: &str) -> Explore {
    Explore::of(|builder| builder.register::<Board>().register::<Writer>()).faults(faults)
}

/// Pages are published one after the other, and the board never goes back.
async fn pages(world: World, is_repaired: bool) {
    let writer = WriterRef::of(&world, "ada");
    world.client(async move {
        for page in 1..=3 {
            // Whether it was told does not matter.
            drop(writer.publish(page, is_repaired).await);
        }
    });
    world.finally(|world| async move {
        assert_eq!(BoardRef::of(&world, "hall").went_back().await, Ok(false), "the board went back");
    });
}

fn is_found_by(fault: &str) {
    let failure = boards(fault).check(|world| pages(world, false)).expect_err("an earlier page comes later");
    println!("{failure}");
    assert!(failure.violated().contains("the board went back"), "{failure}");
    assert!(failure.replay().contains(&format!(":{fault} ")), "{failure}");
    let again = boards(fault).replay(failure.replay()).check(|world| pages(world, false));
    assert_eq!(again.expect_err("it breaks again").violated(), failure.violated());
    boards(fault).run(|world| pages(world, true));
}

#[test]
fn what_a_sleeping_node_had_sent_comes_after_what_its_actors_send_elsewhere() {
    is_found_by("pause");
}

#[test]
fn what_was_sent_to_an_actor_before_it_moved_comes_after_what_is_sent_then() {
    is_found_by("move");
}

#[test]
fn messages_of_one_sender_keep_their_order_where_nobody_sleeps_or_moves() {
    for faults in ["", "crash:2, lose:2, late, idle"] {
        boards(faults).run(|world| pages(world, false));
    }
}

/// Counts what it hears of.
#[derive(Default, Debug, Actor)]
struct Meter {
    count: u64,
    heard: Set<u64>,
}

#[actor(reliable)]
impl Meter {
    pub async fn note(&mut self, number: u64, is_repaired: bool) {
        if !is_repaired || self.heard.insert(number) {
            self.count += 1;
        }
    }

    pub async fn count(&self) -> u64 {
        self.count
    }
}

/// Tells the meter, once or more.
#[derive(Default, Debug, Actor)]
struct Sensor;

#[actor(reliable)]
impl Sensor {
    pub async fn sense(&mut self, cx: &Cx, is_repaired: bool) {
        MeterRef::of(cx, "hall").note(7, is_repaired).at_least_once().send();
    }
}

fn meters(faults: &str) -> Explore {
    Explore::of(|builder| builder.register::<Meter>().register::<Sensor>()).faults(faults)
}

async fn sensed_once(world: World, is_repaired: bool) {
    let sensor = SensorRef::of(&world, "door");
    world.client(async move { drop(sensor.sense(is_repaired).idempotent("first").await) });
    world.finally(|world| async move {
        let count = MeterRef::of(&world, "hall").count().await.expect("it answers");
        assert!(count <= 1, "it was sensed once, and {count} are counted");
    });
}

#[test]
fn what_is_promised_at_least_once_comes_twice() {
    let failure = meters("repeat").check(|world| sensed_once(world, false)).expect_err("it is counted twice");
    println!("{failure}");
    assert!(failure.replay().ends_with(":repeat meter/hall.note<sensor/door"), "{failure}");
    meters("repeat:2").run(|world| sensed_once(world, true));
    meters("crash").run(|world| sensed_once(world, false));
}

//! What goes on for ever: it is a violation if what must come does not, although all get their turns.

use greenroom_explore::prelude::*;

#[derive(Default, Debug, Actor)]
struct Lamp {
    is_lit: bool,
    is_seen: bool,
}

#[actor]
impl Lamp {
    pub async fn is_lit(&self) -> bool {
        self.is_lit
    }

    pub async fn press(&mut self) {
        self.is_lit = !self.is_lit;
    }

    pub async fn light(&mut self) {
        self.is_lit = true;
    }

    /// Somebody has seen that it is lit.
    pub async fn seen(&mut self) {
        self.is_seen = true;
    }
}

/// Two light a lamp, and a third one looks until it is lit: for ever, if both look first and then press its button.
async fn hall(world: World, is_repaired: bool) {
    for _ in 0..2 {
        let lamp = LampRef::of(&world, "hall");
        world.client(async move {
            if is_repaired {
                lamp.light().await.expect("it answers");
            } else if !lamp.is_lit().await.expect("it answers") {
                lamp.press().await.expect("it answers");
            }
        });
    }
    let lamp = LampRef::of(&world, "hall");
    world.client(async move {
        while !lamp.is_lit().await.expect("it answers") {}
        lamp.seen().await.expect("it answers");
    });
}

fn explore() -> Explore {
    Explore::of(|builder| builder.register::<Lamp>()).steps(200).schedules(500)
}

/// Who waits for light sees it.
#[derive(Default)]
struct Seen(bool);

impl Monitor for Seen {
    fn saw(&mut self, event: &Event<'_>) -> Verdict {
        self.0 |= event.begins("lamp", "seen");
        if self.0 { Verdict::Cold } else { Verdict::Hot }
    }
}

#[test]
fn a_monitor_that_stays_hot_while_all_get_their_turns_is_a_violation() {
    let failure = explore().check(|world| async move {
        world.monitor::<Seen>();
        hall(world, false).await;
    });
    let failure = failure.expect_err("the lamp is dark for ever");
    assert_eq!(failure.violated(), "Seen: hot for 100 fair steps");
}

#[test]
fn what_is_never_true_in_the_end_is_a_violation_if_there_is_no_end() {
    let failure = explore().check(|world| async move {
        world.eventually("the light is seen", |now| now.get::<Lamp>("hall").is_some_and(|lamp| lamp.is_seen));
        hall(world, false).await;
    });
    let failure = failure.expect_err("the lamp is dark for ever");
    assert_eq!(failure.violated(), "not within 100 fair steps: the light is seen");
}

#[test]
fn who_waits_for_others_that_are_not_let_in_for_long_raises_no_alarm() {
    for strategy in [Strategy::Mixed, Strategy::Pct] {
        let explored = explore().strategy(strategy).check(|world| async move {
            world.monitor::<Seen>();
            hall(world, true).await;
        });
        explored.unwrap_or_else(|failure| panic!("{strategy:?}: {failure}"));
    }
}

#[test]
fn who_comes_late_gets_its_turns_beside_one_that_never_stops() {
    for strategy in [Strategy::Mixed, Strategy::Pct] {
        let explored = explore().strategy(strategy).check(|world| async move {
            world.monitor::<Seen>();
            let lamp = LampRef::of(&world, "hall");
            world.client(async move {
                while !lamp.is_lit().await.expect("it answers") {}
                lamp.seen().await.expect("it answers");
            });
            let (way, lamp) = (LampRef::of(&world, "way"), LampRef::of(&world, "hall"));
            world.client(async move {
                for _ in 0..20 {
                    way.press().await.expect("it answers");
                }
                lamp.light().await.expect("it answers");
            });
        });
        explored.unwrap_or_else(|failure| panic!("{strategy:?}: {failure}"));
    }
}

#[test]
fn what_is_true_at_some_time_is_not_missed_where_there_is_no_end() {
    explore().schedules(50).run(|world| async move {
        world.eventually("it is lit", |now| now.get::<Lamp>("hall").is_some_and(|lamp| lamp.is_lit));
        let (lights, looks) = (LampRef::of(&world, "hall"), LampRef::of(&world, "hall"));
        world.client(async move { lights.light().await.expect("it answers") });
        world.client(async move {
            loop {
                looks.is_lit().await.expect("it answers");
            }
        });
    });
}

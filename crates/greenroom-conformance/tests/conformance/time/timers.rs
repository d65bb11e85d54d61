//! Timers: turns like any other, as long as the activation lasts.

use std::time::Duration;

use greenroom::Refusal;
use greenroom::prelude::*;

use crate::scenario::calm;

/// Notes the ticks that it gets, and what else it does.
#[derive(Default, Actor)]
struct Clock {
    timers: Vec<Timer>,
    ticks: Vec<(String, u64, u64)>,
    inside: bool,
}

#[actor(idle = "5s")]
impl Clock {
    pub async fn ring_after(&mut self, cx: &Cx, millis: u64) -> Result<(), Refusal> {
        self.timers.push(cx.after(Duration::from_millis(millis), ClockRef::me(cx).ring("after"))?);
        Ok(())
    }

    pub async fn ring_every(&mut self, cx: &Cx, millis: u64) -> Result<(), Refusal> {
        self.timers.push(cx.every(Duration::from_millis(millis), ClockRef::me(cx).ring("every"))?);
        Ok(())
    }

    /// As `ring_every`, and lets go of the handle.
    pub async fn ring_unheld(&mut self, cx: &Cx, millis: u64) -> Result<(), Refusal> {
        cx.every(Duration::from_millis(millis), ClockRef::me(cx).ring("unheld")).map(drop)
    }

    pub async fn look_every(&mut self, cx: &Cx, millis: u64) -> Result<(), Refusal> {
        self.timers.push(cx.every(Duration::from_millis(millis), ClockRef::me(cx).look())?);
        Ok(())
    }

    pub async fn ring_other(&mut self, cx: &Cx, other: String, millis: u64) -> Result<(), Refusal> {
        self.timers.push(cx.after(Duration::from_millis(millis), ClockRef::of(cx, other).ring("other"))?);
        Ok(())
    }

    /// The turn of a tick: alone, like every exclusive one.
    pub async fn ring(&mut self, cx: &Cx, by: String) {
        assert!(!std::mem::replace(&mut self.inside, true), "a tick has met another turn");
        tokio::time::sleep(Duration::from_millis(5)).await;
        self.inside = false;
        let (late, missed) = cx.tick().map_or((0, 0), |tick| (tick.late_by.as_millis() as u64, tick.missed));
        self.ticks.push((by, late, missed));
    }

    pub async fn look(&self) {}

    pub async fn cancel(&mut self) {
        self.timers.drain(..).for_each(Timer::cancel);
    }

    /// Works for so long, then cancels before the turn ends.
    pub async fn work_and_cancel(&mut self, millis: u64) {
        tokio::time::sleep(Duration::from_millis(millis)).await;
        self.timers.drain(..).for_each(Timer::cancel);
    }

    pub async fn rearm(&mut self, millis: u64) {
        self.timers[0].rearm(Duration::from_millis(millis));
    }

    pub async fn work(&mut self, millis: u64) {
        assert!(!std::mem::replace(&mut self.inside, true), "two turns have met");
        tokio::time::sleep(Duration::from_millis(millis)).await;
        self.inside = false;
    }

    pub async fn leave(&mut self, cx: &Cx) {
        cx.deactivate();
    }

    pub async fn ticks(&self, cx: &Cx) -> (u64, Vec<(String, u64, u64)>) {
        (cx.epoch(), self.ticks.clone())
    }

    /// Whether a turn that a call began has a tick.
    pub async fn has_tick(&self, cx: &Cx) -> bool {
        cx.tick().is_some()
    }

    pub async fn fill(&mut self, cx: &Cx) -> u64 {
        let mut made = 0;
        while let Ok(timer) = cx.after(Duration::from_secs(60), ClockRef::me(cx).ring("full")) {
            self.timers.push(timer);
            made += 1;
        }
        made
    }
}

/// Runs `check` on an actor of a calm cluster.
fn with_clock<F: Future<Output = ()> + 'static>(check: fn(Node, ClockRef) -> F) {
    calm(
        10,
        |builder, _| builder.register::<Clock>(),
        move |cluster| async move {
            let [a, ..] = cluster.three();
            let clock = ClockRef::of(&a, "c");
            check(a, clock).await;
        },
    );
}

async fn pause(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

#[test]
fn a_timer_ticks_once_after_its_time_and_one_with_a_period_again_and_again() {
    with_clock(|_, clock| async move {
        clock.ring_after(1_000).await.unwrap();
        clock.ring_every(400).await.unwrap();
        pause(900).await;
        assert_eq!(clock.ticks().await.unwrap().1.len(), 2, "twice by the one with a period");
        pause(1_300).await;
        let ticks = clock.ticks().await.unwrap().1;
        let of = |name: &str| ticks.iter().filter(|(by, ..)| by == name).count();
        assert_eq!((of("after"), of("every")), (1, 5), "{ticks:?}");
        assert!(ticks.iter().all(|(_, late, missed)| *late < 50 && *missed == 0), "{ticks:?}");
        assert!(!clock.has_tick().await.unwrap(), "a call is no tick");
    });
}

#[test]
fn ticks_run_in_turn_with_calls() {
    with_clock(|_, clock| async move {
        clock.ring_every(7).await.unwrap();
        clock.look_every(3).await.unwrap();
        for _ in 0..40 {
            // `work` and `ring` see to it that they never meet.
            clock.work(9).await.unwrap();
        }
        assert!(clock.ticks().await.unwrap().1.len() > 10, "ticks have their turns between the calls");
    });
}

#[test]
fn ticks_of_a_busy_actor_do_not_pile_up_and_the_late_one_says_so() {
    with_clock(|_, clock| async move {
        clock.ring_every(100).await.unwrap();
        pause(50).await;
        clock.work(1_000).await.unwrap();
        pause(60).await;
        let ticks = clock.ticks().await.unwrap().1;
        let (_, late, missed) = ticks[0].clone();
        assert!((900..=1_000).contains(&late) && (8..=9).contains(&missed), "{ticks:?}");
        assert!(ticks.len() <= 2 && ticks[1..].iter().all(|tick| tick.2 == 0), "{ticks:?}");
    });
}

#[test]
fn timers_end_with_their_activation() {
    with_clock(|_, clock| async move {
        clock.ring_every(100).await.unwrap();
        let (epoch, _) = clock.ticks().await.unwrap();
        clock.leave().await.unwrap();
        pause(1_000).await;
        let (later, ticks) = clock.ticks().await.unwrap();
        assert!(later > epoch && ticks.is_empty(), "the next activation has no timers: {ticks:?}");
    });
}

#[test]
fn timers_do_not_keep_an_activation_from_being_idle() {
    with_clock(|_, clock| async move {
        clock.ring_unheld(200).await.unwrap();
        let (epoch, _) = clock.ticks().await.unwrap();
        pause(3_000).await;
        // A read by a call counts as use, so it is not done before the end.
        pause(4_000).await;
        let (later, ticks) = clock.ticks().await.unwrap();
        assert!(later > epoch && ticks.is_empty(), "it was idle for 5 s but for its own ticks: {ticks:?}");
    });
}

#[test]
fn a_timer_whose_handle_is_dropped_goes_on() {
    with_clock(|_, clock| async move {
        clock.ring_unheld(200).await.unwrap();
        pause(1_100).await;
        assert_eq!(clock.ticks().await.unwrap().1.len(), 5);
    });
}

#[test]
fn no_tick_begins_after_its_timer_was_cancelled_not_even_one_that_waits() {
    with_clock(|_, clock| async move {
        clock.ring_after(100).await.unwrap();
        clock.ring_every(100).await.unwrap();
        pause(50).await;
        // Both are due, and wait for this turn's end.
        clock.work_and_cancel(500).await.unwrap();
        pause(500).await;
        assert_eq!(clock.ticks().await.unwrap().1, []);
    });
}

#[test]
fn a_timer_can_be_armed_anew_before_and_after_it_has_ticked() {
    with_clock(|_, clock| async move {
        clock.ring_after(300).await.unwrap();
        pause(200).await;
        clock.rearm(400).await.unwrap();
        pause(300).await;
        assert_eq!(clock.ticks().await.unwrap().1.len(), 0, "put off");
        pause(200).await;
        assert_eq!(clock.ticks().await.unwrap().1.len(), 1);
        clock.rearm(300).await.unwrap();
        pause(400).await;
        assert_eq!(clock.ticks().await.unwrap().1.len(), 2, "once more");
    });
}

#[test]
fn a_timer_can_call_another_actor() {
    with_clock(|a, clock| async move {
        for other in 0..5 {
            clock.ring_other(format!("other {other}"), 300).await.unwrap();
        }
        pause(1_000).await;
        for other in 0..5 {
            assert_eq!(ClockRef::of(&a, format!("other {other}")).ticks().await.unwrap().1.len(), 1);
        }
    });
}

#[test]
fn an_activation_has_a_bounded_number_of_timers() {
    with_clock(|_, clock| async move {
        assert_eq!(clock.fill().await, Ok(256));
        let refused = clock.ring_after(10).await.unwrap_err().to_string();
        assert!(refused.contains("the timers of clock/c is full (256)"), "{refused}");
        clock.cancel().await.unwrap();
        clock.ring_after(10).await.unwrap();
    });
}

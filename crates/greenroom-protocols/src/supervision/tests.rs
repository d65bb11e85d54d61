use std::time::Duration;

use proptest::prelude::*;

use super::{Decision, RESTARTS_MAX, Supervise, Supervisor};
use crate::time::Timestamp;

const SECOND: Duration = Duration::from_secs(1);

fn at(millis: u64) -> Timestamp {
    Timestamp::from_nanos(millis * 1_000_000)
}

fn steady() -> Supervise {
    Supervise::restart().back_off(SECOND, 8 * SECOND).jitter(0)
}

fn pause(decision: Decision) -> Duration {
    match decision {
        Decision::Restart { after } => after,
        other => panic!("it is not restarted but {other:?}"),
    }
}

#[test]
fn stop_and_escalate_decide_at_the_first_failure() {
    assert_eq!(Supervisor::new(Supervise::stop()).failed(at(0), 7), Decision::Stop);
    assert_eq!(Supervisor::new(Supervise::escalate()).failed(at(0), 7), Decision::Escalate);
}

#[test]
fn pauses_double_up_to_the_longest() {
    let mut supervisor = Supervisor::new(steady().for_ever());
    let mut now = at(0);
    let pauses: Vec<u64> = (0..6)
        .map(|_| {
            let after = pause(supervisor.failed(now, 0));
            now = now + after;
            after.as_secs()
        })
        .collect();
    assert_eq!(pauses, [1, 2, 4, 8, 8, 8]);
}

#[test]
fn after_a_calm_the_pause_is_the_shortest_again() {
    let mut supervisor = Supervisor::new(steady().for_ever());
    let mut now = at(0);
    for _ in 0..4 {
        now = now + pause(supervisor.failed(now, 0));
    }
    assert_eq!(pause(supervisor.failed(now + 10 * SECOND, 0)), 8 * SECOND, "ten seconds are no calm yet");
    let running = now + 18 * SECOND;
    assert_eq!(pause(supervisor.failed(running + 11 * SECOND, 0)), SECOND);
}

#[test]
fn one_restart_too_many_within_the_period_stops_it() {
    let mut supervisor = Supervisor::new(steady().at_most(2, 60 * SECOND));
    pause(supervisor.failed(at(0), 0));
    pause(supervisor.failed(at(1_000), 0));
    assert_eq!(supervisor.failed(at(59_999), 0), Decision::Stop);
}

#[test]
fn one_restart_too_many_escalates_where_it_was_told_to() {
    let mut supervisor = Supervisor::new(steady().at_most(0, 60 * SECOND).or_escalate());
    assert_eq!(supervisor.failed(at(0), 0), Decision::Escalate);
}

#[test]
fn restarts_older_than_the_period_do_not_count() {
    let mut supervisor = Supervisor::new(steady().at_most(2, 60 * SECOND));
    pause(supervisor.failed(at(0), 0));
    pause(supervisor.failed(at(1_000), 0));
    pause(supervisor.failed(at(60_000), 0));
    assert_eq!(supervisor.failed(at(60_500), 0), Decision::Stop);
}

#[test]
fn the_jitter_shortens_and_never_lengthens() {
    let policy = steady().jitter(50);
    assert_eq!(pause(Supervisor::new(policy).failed(at(0), 0)), SECOND);
    let shortest = pause(Supervisor::new(policy).failed(at(0), u64::MAX));
    assert!((SECOND / 2..SECOND / 2 + Duration::from_micros(1)).contains(&shortest), "{shortest:?}");
}

proptest! {
    #[test]
    fn no_period_has_more_restarts_than_allowed(
        restarts in 0_u32..6,
        period_ms in 1_u64..5_000,
        gaps_ms in prop::collection::vec(0_u64..2_000, 1..60),
        roll: u64,
    ) {
        let period = Duration::from_millis(period_ms);
        let mut supervisor = Supervisor::new(Supervise::restart().at_most(restarts, period));
        let (mut now, mut restarted) = (at(0), Vec::new());
        for gap in gaps_ms {
            now = now + Duration::from_millis(gap);
            if let Decision::Restart { .. } = supervisor.failed(now, roll) {
                restarted.push(now);
            }
        }
        for (index, first) in restarted.iter().enumerate() {
            let within = restarted[index..].iter().filter(|at| at.since(*first) < period).count();
            prop_assert!(within <= restarts as usize, "{within} restarts within {period:?}");
        }
    }

    #[test]
    fn a_pause_is_between_the_jittered_and_the_longest(
        initial_ms in 0_u64..10_000,
        max_ms in 0_u64..60_000,
        jitter in 0_u8..=100,
        gaps_ms in prop::collection::vec(0_u64..100_000, 1..100),
        roll: u64,
    ) {
        let (initial, max) = (Duration::from_millis(initial_ms), Duration::from_millis(max_ms));
        let policy = Supervise::restart().for_ever().back_off(initial, max).jitter(jitter);
        let mut supervisor = Supervisor::new(policy);
        let mut now = at(0);
        for gap in gaps_ms {
            now = now + Duration::from_millis(gap);
            let after = pause(supervisor.failed(now, roll));
            let shortest = initial.min(max).mul_f64(1.0 - f64::from(jitter) / 100.0);
            prop_assert!(after <= max, "{after:?}");
            prop_assert!(after + Duration::from_micros(1) >= shortest, "{after:?} < {shortest:?}");
        }
    }

    #[test]
    fn what_is_remembered_is_bounded(restarts: u32, failures in 1_usize..3_000) {
        let mut supervisor = Supervisor::new(Supervise::restart().at_most(restarts, Duration::MAX));
        for _ in 0..failures {
            supervisor.failed(at(0), 0);
        }
        prop_assert!(supervisor.recent.len() <= RESTARTS_MAX as usize);
    }
}

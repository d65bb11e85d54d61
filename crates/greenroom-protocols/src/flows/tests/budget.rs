//! How many samples are taken where there is something to gain, and where there is nothing.

use super::super::budget::{Budget, CALM_SECONDS, EAGER_SECONDS, SAMPLES_MIN, Savings};
use super::gap::SAMPLES_MAX;
use super::*;

const BUSY: u64 = 1_000_000;

fn saving(part: f64) -> Savings {
    Savings { counted: 1e6, saved: part * 1e6 }
}

#[test]
fn where_nothing_is_gained_ever_fewer_samples_are_taken_and_where_moves_pay_all() {
    let mut budget = Budget::default();
    let first = (0..EAGER_SECONDS).map(|_| budget.second(saving(0.0), BUSY)).min();
    assert_eq!(first, Some(SAMPLES_MAX), "nobody has had time to move");
    let then: Vec<u32> = (0..30).map(|_| budget.second(saving(0.0), BUSY)).collect();
    assert!(then.is_sorted_by(|before, after| before >= after) && then[29] == SAMPLES_MIN, "{then:?}");
    let gaining: Vec<u32> = (0..4).map(|_| budget.second(saving(0.5), BUSY)).collect();
    assert_eq!(gaining[3], SAMPLES_MAX, "{gaining:?}");
    assert!((0..100).all(|_| budget.second(saving(0.05), BUSY) == SAMPLES_MAX));
    // What is lost is no gain.
    let lost = (0..100).map(|_| budget.second(saving(-0.5), BUSY)).min();
    assert_eq!(lost, Some(SAMPLES_MIN));
    budget.renew(false);
    assert_eq!(budget.second(saving(0.0), BUSY), SAMPLES_MAX);
}

#[test]
fn while_nobody_may_move_few_samples_are_taken_and_then_all() {
    let mut budget = Budget::default();
    budget.renew(true);
    let calm: Vec<u32> = (0..CALM_SECONDS).map(|_| budget.second(saving(0.5), BUSY)).collect();
    assert!(calm.iter().all(|samples| *samples == SAMPLES_MIN), "{calm:?}");
    let then: Vec<u32> = (CALM_SECONDS..EAGER_SECONDS).map(|_| budget.second(saving(0.0), BUSY)).collect();
    assert!(then.iter().all(|samples| *samples == SAMPLES_MAX), "{then:?}");
}

#[test]
fn few_messages_are_all_sampled_and_use_no_patience_up() {
    let mut budget = Budget::default();
    (0..1_000).for_each(|_| assert_eq!(budget.second(Savings::default(), 3_000), SAMPLES_MAX));
    let busy = (0..EAGER_SECONDS).map(|_| budget.second(saving(0.0), BUSY)).min();
    assert_eq!(busy, Some(SAMPLES_MAX));
    assert!((0..100).all(|_| budget.second(saving(0.0), BUSY) <= SAMPLES_MAX));
    let quiet: Vec<u32> = (0..5).map(|_| budget.second(Savings::default(), 100)).collect();
    assert_eq!(quiet[4], SAMPLES_MAX, "{quiet:?}");
}

#[test]
fn savings_are_what_moved_actors_have_nearer_less_what_they_have_farther() {
    let mut flows = Flows::new(ROWS_MIN, at(0));
    let sample = |flows: &mut Flows, place: Place, weight: f32| {
        flows.sample(&Sample { weight, ..message(1, place) }, at(0), 7);
    };
    sample(&mut flows, B, 8.0);
    assert_eq!(flows.take_savings(), Savings { counted: 8.0, saved: 0.0 });
    let known = flows.moved(1, at(0)).expect("it was sampled");
    flows.arrived(1, &known, B, at(0), 7);
    sample(&mut flows, Place::NEAR, 4.0);
    sample(&mut flows, B, 1.0);
    sample(&mut flows, C, 1.0);
    assert_eq!(flows.take_savings(), Savings { counted: 6.0, saved: 3.0 });
    assert_eq!(flows.take_savings(), Savings::default());
}

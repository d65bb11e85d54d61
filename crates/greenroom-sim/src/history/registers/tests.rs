use super::*;
use crate::history::{Call, Object, linearize};
use crate::random::Random;

/// The register as it is when nobody else uses it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Alone {
    count: u64,
    value: u64,
}

impl Object for Alone {
    type Operation = Asked;
    type Answer = (u64, u64);

    fn after(&self, asked: &Asked, answer: Option<&(u64, u64)>) -> Option<Self> {
        let (next, answers) = match asked {
            Asked::Swap(value) => (Self { count: self.count + 1, value: *value }, (self.count + 1, self.value)),
            Asked::Read => (self.clone(), (self.count, self.value)),
        };
        answer.is_none_or(|answer| *answer == answers).then_some(next)
    }
}

/// What the search over all orders says.
fn explained(history: &[Operation]) -> bool {
    let asked = history.iter().filter(|operation| operation.told != Told::Not);
    let calls: Vec<Call<Alone>> = asked
        .map(|operation| Call {
            begun: operation.begun,
            operation: operation.asked,
            ended: match &operation.told {
                Told::Answer(stamped) => Some((operation.ended, (stamped.count, stamped.value))),
                _ => None,
            },
        })
        .collect();
    linearize(&Alone::default(), &calls).is_ok()
}

/// A history of a true register, some calls of which were not answered.
fn true_history(random: &mut Random) -> Vec<Operation> {
    let mut effects: Vec<(u64, usize)> = Vec::new();
    let mut history = Vec::new();
    for place in 0..2 + random.index(7) {
        let begun = random.below(60);
        let effect = begun + random.below(12);
        let ended = effect + random.below(12);
        let asked = if random.chance(0.7) { Asked::Swap(100 + place as u64) } else { Asked::Read };
        let told = if random.chance(0.3) { Told::Doubt } else { Told::Not };
        // What is in doubt runs, or never does.
        if told == Told::Doubt && random.chance(0.6) {
            effects.push((effect + random.below(40), place));
        } else if random.chance(0.85) {
            effects.push((effect, place));
        }
        let at = Duration::from_millis;
        history.push(Operation { caller: "one".into(), begun: at(begun), ended: at(ended), asked, told });
    }
    effects.sort_unstable();
    let mut register = Alone::default();
    for (_, place) in effects {
        let operation = &mut history[place];
        let before = register.value;
        register = register.after(&operation.asked, None).expect("anything goes without an answer");
        if operation.told == Told::Not {
            operation.told = Told::Answer(Stamped { epoch: 1, count: register.count, value: before });
        }
    }
    history
}

/// Changes something.
fn spoil(random: &mut Random, history: &mut [Operation]) {
    let place = random.index(history.len());
    let other = history[random.index(history.len())].clone();
    let operation = &mut history[place];
    match (random.index(5), &mut operation.told) {
        (0, Told::Answer(stamped)) => stamped.count = random.below(5).max(1),
        (1, Told::Answer(stamped)) => stamped.value = 100 + random.below(8),
        (2, _) => operation.told = Told::Not,
        (3, _) => (operation.begun, operation.ended) = (other.begun, other.ended),
        _ => operation.told = other.told,
    }
}

#[test]
fn stamps_and_search_come_to_the_same_verdict() {
    let (mut good, mut bad) = (0, 0);
    for seed in 0..20_000 {
        let random = &mut Random::new(seed);
        let mut history = true_history(random);
        let spoilt = random.chance(0.7);
        if spoilt {
            spoil(random, &mut history);
        }
        let (checked, explained) = (check(&history, Keeps::Everything), explained(&history));
        let shown = || history.iter().map(|operation| format!("\n{operation}")).collect::<String>();
        assert!(spoilt || explained, "seed {seed}: the test itself is wrong:{}", shown());
        assert_eq!(checked.is_ok(), explained, "seed {seed}: {checked:?}{}", shown());
        *(if explained { &mut good } else { &mut bad }) += 1;
    }
    assert!(good > 5_000 && bad > 5_000, "{good} good, {bad} bad");
}

fn operation(begun: u64, ended: u64, asked: Asked, answer: Option<(u64, u64, u64)>) -> Operation {
    let told = answer.map_or(Told::Doubt, |(epoch, count, value)| Told::Answer(Stamped { epoch, count, value }));
    let at = Duration::from_millis;
    Operation { caller: "one".into(), begun: at(begun), ended: at(ended), asked, told }
}

/// One activation, a loss with its end, and the next one.
fn two_activations() -> Vec<Operation> {
    vec![
        operation(0, 1, Asked::Swap(7), Some((1, 1, 0))),
        operation(2, 3, Asked::Swap(8), Some((1, 2, 7))),
        operation(4, 5, Asked::Swap(9), Some((4, 1, 0))),
        operation(6, 7, Asked::Read, Some((4, 1, 9))),
    ]
}

#[test]
fn a_value_may_be_lost_with_its_activation_if_the_register_keeps_nothing() {
    let history = two_activations();
    assert_eq!(check(&history, Keeps::Nothing), Ok(vec![Succession { last: 1, first: 2 }]));
    let offence = check(&history, Keeps::Everything).unwrap_err();
    assert_eq!(offence.operations, [0, 2], "{}", offence.what);
}

#[test]
fn a_value_that_is_lost_while_its_activation_lives_is_found() {
    let mut history = two_activations();
    history.push(operation(8, 9, Asked::Swap(10), Some((4, 1, 0))));
    let offence = check(&history, Keeps::Nothing).unwrap_err();
    assert_eq!(offence.operations, [2, 4], "{}", offence.what);
}

#[test]
fn two_turns_that_interleaved_are_found() {
    // Both saw 7.
    let history = [
        operation(0, 1, Asked::Swap(7), Some((1, 1, 0))),
        operation(2, 5, Asked::Swap(8), Some((1, 2, 7))),
        operation(2, 6, Asked::Swap(9), Some((1, 3, 7))),
    ];
    assert!(check(&history, Keeps::Nothing).is_err());
}

#[test]
fn an_older_activation_that_answers_after_a_newer_one_is_found() {
    let mut history = two_activations();
    history.push(operation(8, 9, Asked::Read, Some((1, 2, 8))));
    let offence = check(&history, Keeps::Nothing).unwrap_err();
    assert!(offence.what.contains("activation 1 answered what was asked after activation 4"), "{}", offence.what);
    // Even where the values would allow it.
    let mut kept =
        vec![operation(0, 1, Asked::Swap(7), Some((1, 1, 0))), operation(2, 3, Asked::Read, Some((2, 1, 7)))];
    kept.push(operation(4, 5, Asked::Read, Some((1, 1, 7))));
    assert!(check(&kept, Keeps::Everything).is_err());
}

#[test]
fn a_swap_in_doubt_that_ran_twice_is_found() {
    let history = [
        operation(0, 1, Asked::Swap(7), None),
        operation(2, 3, Asked::Swap(8), Some((1, 2, 7))),
        operation(4, 5, Asked::Swap(9), Some((3, 2, 7))),
    ];
    let offence = check(&history, Keeps::Nothing).unwrap_err();
    assert!(offence.what.contains("ran twice"), "{}", offence.what);
}

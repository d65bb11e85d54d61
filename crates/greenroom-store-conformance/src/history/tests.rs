use std::time::Duration;

use super::*;

/// Operations with the milliseconds of their calls and answers (0: none).
fn outcome(operations: &[(u64, u64, What)]) -> Result<(), String> {
    let start = Instant::now();
    let at = |ms| start + Duration::from_millis(ms);
    let operation = |&(call, answer, what): &(u64, u64, What)| Operation {
        what,
        call: at(call),
        answer: (answer > 0).then(|| at(answer)),
    };
    check(operations.iter().map(operation).collect())
}

fn write(from: u64, to: u64) -> What {
    What::Write { from: Some(from).filter(|from| *from > 0), to: Some(to).filter(|to| *to > 0), applied: true }
}

fn refused(from: u64, to: u64) -> What {
    let What::Write { from, to, .. } = write(from, to) else { unreachable!("it is a write") };
    What::Write { from, to, applied: false }
}

#[test]
fn overlapping_operations_may_come_in_either_order() {
    let both = [(1, 9, write(0, 1)), (2, 8, What::Read(None)), (3, 7, What::Read(Some(1))), (4, 6, refused(0, 2))];
    assert_eq!(outcome(&both), Ok(()));
}

#[test]
fn a_stale_read_is_found() {
    let stale = [(1, 2, write(0, 1)), (3, 4, write(1, 2)), (5, 6, What::Read(Some(1)))];
    let error = outcome(&stale).unwrap_err();
    assert!(error.contains("after 2 operations of 3: the key holds Some(2)"), "{error}");
}

#[test]
fn two_winners_over_one_value_are_found() {
    assert!(outcome(&[(1, 2, write(0, 1)), (3, 9, write(1, 2)), (3, 9, write(1, 3))]).is_err());
}

#[test]
fn a_read_that_goes_back_is_found() {
    let back = [(1, 2, write(0, 1)), (3, 20, write(1, 2)), (4, 5, What::Read(Some(2))), (6, 7, What::Read(Some(1)))];
    assert!(outcome(&back).is_err());
}

#[test]
fn a_refusal_without_a_reason_is_found() {
    assert!(outcome(&[(1, 2, write(0, 1)), (3, 4, refused(1, 2)), (5, 6, What::Read(Some(1)))]).is_err());
}

#[test]
fn an_unknown_write_may_happen_late_or_never_but_once() {
    let late = [(1, 0, write(0, 1)), (5, 6, What::Read(None)), (7, 8, What::Read(Some(1)))];
    assert_eq!(outcome(&late), Ok(()));
    let never = [(1, 0, write(0, 1)), (5, 6, write(0, 2)), (7, 8, What::Read(Some(2)))];
    assert_eq!(outcome(&never), Ok(()));
    let twice = [(1, 0, write(0, 1)), (2, 3, What::Read(Some(1))), (4, 5, write(1, 0)), (6, 7, What::Read(Some(1)))];
    assert!(outcome(&twice).is_err());
}

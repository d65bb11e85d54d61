//! Bounds of the door that need no socket.

use std::time::{Duration, Instant};

use super::connections::{Connections, RESERVED};
use super::problem::Problem;
use crate::actor::error::Failure;

#[test]
fn who_kept_the_door_waiting_longest_makes_room() {
    let connections = Connections::new(2);
    let now = Instant::now();
    let first = connections.seat(now + Duration::from_secs(1)).unwrap();
    let second = connections.seat(now + Duration::from_secs(2)).unwrap();
    first.works();
    let third = connections.seat(now + Duration::from_secs(3)).unwrap();
    assert_eq!(connections.len(), 2);
    third.works();
    let kept: Vec<_> = (0..RESERVED).map(|_| connections.seat(now).unwrap()).inspect(|seat| seat.works()).collect();
    assert!(
        kept.iter().all(|seat| seat.is_reserved()) && !third.is_reserved(),
        "all are being served: these may only ask"
    );
    assert!(connections.seat(now).is_none(), "and not too many of them");
    second.waits(now);
    assert!(connections.seat(now).is_none(), "who was told to leave has no place to give");
    drop((second, kept));
    assert_eq!(connections.len(), 2);
    drop(first);
    assert!(connections.seat(now).is_some());
    drop(third);
}

#[test]
fn a_connection_that_lies_idle_makes_room_before_one_that_has_just_come() {
    let connections = Connections::new(2);
    let now = Instant::now();
    let idle = connections.seat(now + Duration::from_secs(15)).unwrap();
    idle.lies_idle(now + Duration::from_secs(80));
    let fresh = connections.seat(now + Duration::from_secs(15)).unwrap();
    let third = connections.seat(now + Duration::from_secs(15)).unwrap();
    third.works();
    fresh.works();
    assert!(connections.seat(now).unwrap().is_reserved(), "the two that came later are served");
    drop((idle, fresh, third));
}

#[test]
fn a_cycle_is_409_and_names_the_chain() {
    let answer = Problem::of(&Failure::Cycle(vec!["a/1".into(), "b/2".into(), "a/1".into()])).answer();
    assert_eq!(answer.status(), 409);
    assert_eq!(answer.headers()["content-type"], "application/problem+json");
}

//! Bounds of the door that need no socket.

use std::time::{Duration, Instant};

use super::call::duration;
use super::connections::Connections;

#[test]
fn a_duration_needs_its_unit() {
    assert_eq!(duration("2s"), Some(Duration::from_secs(2)));
    assert_eq!(duration(" 500ms "), Some(Duration::from_millis(500)));
    assert_eq!(duration("1.5 s"), Some(Duration::from_millis(1500)));
    assert_eq!(duration("1m"), Some(Duration::from_secs(60)));
    for wrong in ["", "2", "s", "-1s", "1e9s", "1..2s", "2 parsecs", "99999999999999999999999999s", "é"] {
        assert_eq!(duration(wrong), None, "{wrong:?}");
    }
}

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
    assert!(connections.seat(now).is_none(), "all are being served");
    second.waits(now);
    assert!(connections.seat(now).is_none(), "who was told to leave has no place to give");
    drop(second);
    assert_eq!(connections.len(), 2);
    drop(first);
    assert!(connections.seat(now).is_some());
    drop(third);
}

//! The claims of the windows, each by name, and a long random run of both ends over a bad line for credits.

use super::*;
use crate::mix::mix;

#[test]
fn a_slow_consumer_holds_the_producer_back() {
    let mut producer = Producer::new(2, usize::MAX);
    assert_eq!((producer.send(1), producer.send(1)), (0, 1));
    assert!(!producer.may_send());
    assert_eq!(producer.consumed(1), Ok(()));
    assert!(producer.may_send());
    producer.send(1);
    assert!(!producer.may_send());
}

#[test]
fn large_items_fill_the_window_before_their_number_does() {
    let mut producer = Producer::new(64, 1000);
    producer.send(400);
    assert!(producer.may_send());
    producer.send(600);
    assert!(!producer.may_send());
    assert_eq!(producer.consumed(1), Ok(()));
    assert!(producer.may_send());
}

#[test]
fn an_item_larger_than_the_window_goes_alone() {
    let mut producer = Producer::new(64, 1000);
    assert!(producer.may_send());
    producer.send(5000);
    assert!(!producer.may_send());
    assert_eq!(producer.consumed(1), Ok(()));
    assert!(producer.may_send());
}

#[test]
fn late_and_repeated_credit_changes_nothing() {
    let mut producer = Producer::new(4, usize::MAX);
    (0..4).for_each(|_| _ = producer.send(1));
    assert_eq!(producer.consumed(3), Ok(()));
    assert_eq!(producer.consumed(1), Ok(()));
    assert_eq!(producer.consumed(3), Ok(()));
    (0..3).for_each(|_| _ = producer.send(1));
    assert!(!producer.may_send());
}

#[test]
fn credit_for_what_was_never_sent_is_refused() {
    let mut producer = Producer::new(4, usize::MAX);
    producer.send(1);
    assert_eq!(producer.consumed(2), Err(NeverSent));
    assert_eq!(producer.consumed(u64::MAX), Err(NeverSent));
}

#[test]
fn a_consumer_cannot_ask_for_more_than_the_bound() {
    let mut producer = Producer::new(u32::MAX, usize::MAX);
    while producer.may_send() {
        producer.send(1);
    }
    assert_eq!(producer.sent(), u64::from(WINDOW_MAX));
}

#[test]
fn a_missing_item_is_a_gap_and_a_repeated_one_is_ignored() {
    let mut consumer = Consumer::new(8);
    assert_eq!(consumer.arrived(0), Arrival::Next);
    assert_eq!(consumer.arrived(0), Arrival::Again);
    assert_eq!(consumer.arrived(2), Arrival::Gap);
    assert_eq!(consumer.arrived(1), Arrival::Next);
    assert!(consumer.is_complete(2) && !consumer.is_complete(3));
}

#[test]
fn a_producer_that_ignores_the_window_is_found_out() {
    let mut consumer = Consumer::new(2);
    assert_eq!((consumer.arrived(0), consumer.arrived(1)), (Arrival::Next, Arrival::Next));
    assert_eq!(consumer.arrived(2), Arrival::Overrun);
}

#[test]
fn credit_is_given_when_half_of_the_window_is_free() {
    let mut reader = Reader::new(4, 1000);
    assert_eq!((reader.took(1), reader.took(1), reader.took(1)), (None, Some(2), None));
    assert_eq!((reader.took(1), reader.took(1)), (Some(4), None));
}

#[test]
fn large_items_are_told_of_before_half_of_their_number_is_taken() {
    let mut reader = Reader::new(64, 1000);
    assert_eq!((reader.took(400), reader.took(100)), (None, Some(2)));
}

#[test]
fn a_reader_that_takes_everything_is_never_left_waiting() {
    for seed in 0..500_u64 {
        let mut next = seed;
        let mut random = move |below: u64| {
            next = mix(next.wrapping_add(0x9e37_79b9));
            next % below
        };
        let window = 1 + random(9) as u32;
        let (mut producer, mut consumer) = (Producer::new(window, 50), Consumer::new(window));
        let mut reader = Reader::new(window, 50);
        let (mut line, mut credits) = (VecDeque::new(), Vec::new());
        let mut waiting = VecDeque::new();
        let mut taken = 0;
        while taken < 200 {
            assert!(line.len() + waiting.len() <= window as usize, "more is under way than there is room for");
            match random(4) {
                0 if producer.may_send() => {
                    let size = random(40) as usize;
                    line.push_back((producer.send(size), size));
                }
                1 => {
                    if let Some((number, size)) = line.pop_front() {
                        assert_eq!(consumer.arrived(number), Arrival::Next);
                        waiting.push_back(size);
                    }
                }
                2 => {
                    let Some(size) = waiting.pop_front() else { continue };
                    taken += 1;
                    if let Some(total) = reader.took(size) {
                        consumer.told(total);
                        credits.push(total);
                    }
                }
                _ if !credits.is_empty() => {
                    // Any of them may come first, and come again.
                    let at = random(credits.len() as u64) as usize;
                    let credit = credits[at];
                    if random(3) > 0 {
                        credits.swap_remove(at);
                    }
                    assert_eq!(producer.consumed(credit), Ok(()));
                }
                _ => {}
            }
            let stuck = !producer.may_send() && line.is_empty() && waiting.is_empty() && credits.is_empty();
            assert!(!stuck, "seed {seed}: nobody can go on");
        }
    }
}

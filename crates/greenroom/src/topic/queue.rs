//! The events that wait for one subscriber, and what happens when it is slow. Pure.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::stream::backlog::{Backlog, Held};

/// What a topic does when a subscriber's queue is full.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Slow {
    /// The oldest events that wait are dropped, and the subscriber is told how many.
    DropOldest,
    /// The subscription ends, with an error that says so.
    Disconnect,
    /// Publishers wait: [`publish`](super::Topic::publish) returns when there is room. A subscriber that makes them wait for 30 s
    /// without taking an event is disconnected.
    #[default]
    Backpressure,
}

/// An event's name in its topic: the topic's activation, and the event's number since that began.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct EventId {
    /// The topic's activation: no other one has this number, also not after a restart of the cluster, and later ones have larger
    /// numbers, to within a second.
    pub epoch: u64,
    /// Events that the activation took before this one.
    pub number: u64,
}

impl EventId {
    /// The event behind this one.
    pub(crate) fn following(self) -> Self {
        Self { number: self.number.saturating_add(1), ..self }
    }
}

/// An event's JSON, shared by all who get it, and counted once as long as any of them does.
#[derive(Clone)]
pub(crate) struct Text(Arc<(Box<str>, Option<Held>)>);

impl Text {
    pub(crate) fn new(text: String, backlog: Option<&Arc<Backlog>>) -> Self {
        let held = backlog.map(|backlog| backlog.hold(text.len()));
        Self(Arc::new((text.into(), held)))
    }
}

impl std::ops::Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0.0
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Text {}

impl std::fmt::Debug for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(&**self, f)
    }
}

/// An event as a topic keeps it.
pub(crate) type Kept = (EventId, Text);

/// What a subscriber gets next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    Event(Kept),
    /// So many events are missing here; `None` if nobody knows how many.
    Missed(Option<u64>),
    /// It was too slow, and gets no more.
    TooSlow,
}

/// A subscriber's queue.
#[derive(Debug)]
pub(crate) struct Queue {
    slow: Slow,
    len_max: usize,
    events: VecDeque<Kept>,
    bytes: usize,
    /// Events dropped in front of the first one that waits.
    missed: Option<Option<u64>>,
    /// Those that are known by their number, since it began.
    missed_in_all: u64,
    cut: bool,
}

impl Queue {
    pub(crate) fn new(slow: Slow, len_max: u32) -> Self {
        let len_max = (len_max as usize).clamp(1, QUEUE_LEN_MAX);
        Self { slow, len_max, events: VecDeque::new(), bytes: 0, missed: None, missed_in_all: 0, cut: false }
    }

    /// Events that wait.
    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    /// Events that were missed, as far as their number is known.
    pub(crate) fn missed_in_all(&self) -> u64 {
        self.missed_in_all
    }

    /// Whether a publisher must wait for this subscriber.
    pub(crate) fn is_in_the_way(&self) -> bool {
        self.slow == Slow::Backpressure && !self.cut && self.is_full()
    }

    fn is_full(&self) -> bool {
        self.events.len() >= self.len_max || self.bytes >= QUEUE_BYTES_MAX
    }

    /// Takes an event in, by the subscriber's policy if there is no room.
    pub(crate) fn put(&mut self, event: Kept) {
        if self.cut {
            return;
        }
        while self.is_full() {
            match self.slow {
                Slow::DropOldest => self.drop_oldest(),
                // Publishers have waited for as long as they do.
                Slow::Disconnect | Slow::Backpressure => return self.cut(),
            }
        }
        self.bytes += event.1.len();
        self.events.push_back(event);
    }

    fn drop_oldest(&mut self) {
        if let Some((_, text)) = self.events.pop_front() {
            self.bytes -= text.len();
            self.miss(Some(1));
        }
    }

    /// Events are missing in front of what waits.
    pub(crate) fn miss(&mut self, count: Option<u64>) {
        self.missed_in_all += count.unwrap_or_default();
        let before = self.missed.unwrap_or(Some(0));
        self.missed = Some(before.zip(count).map(|(before, count)| before + count));
    }

    /// The subscriber gets what waits, and no more.
    pub(crate) fn cut(&mut self) {
        self.cut = true;
    }

    /// What the subscriber gets next; `None` if it must wait.
    pub(crate) fn take(&mut self) -> Option<Next> {
        if let Some(count) = self.missed.take() {
            return Some(Next::Missed(count));
        }
        match self.events.pop_front() {
            Some(event) => {
                self.bytes -= event.1.len();
                Some(Next::Event(event))
            }
            None => self.cut.then_some(Next::TooSlow),
        }
    }

    /// Lets what waits for one that was cut off go: it is told at once, and comes back for the rest if it wants.
    pub(crate) fn drop_if_cut(&mut self) {
        if self.cut {
            self.events = VecDeque::new();
            self.bytes = 0;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty() && self.missed.is_none()
    }
}

/// Events that may wait for one subscriber, whatever it asks for.
const QUEUE_LEN_MAX: usize = 4096;
/// Bytes of events that may wait for one subscriber, but for a single event that is larger.
const QUEUE_BYTES_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn event(number: u64) -> Kept {
        (EventId { epoch: 1, number }, Text::new("7".to_owned(), None))
    }

    fn numbers(queue: &mut Queue) -> Vec<Next> {
        std::iter::from_fn(|| queue.take()).take(20).collect()
    }

    fn filled(slow: Slow) -> Queue {
        let mut queue = Queue::new(slow, 2);
        (0..5).for_each(|number| queue.put(event(number)));
        queue
    }

    #[test]
    fn the_oldest_are_dropped_and_counted_where_they_are_missing() {
        let mut queue = filled(Slow::DropOldest);
        assert_eq!(numbers(&mut queue), [Next::Missed(Some(3)), Next::Event(event(3)), Next::Event(event(4))]);
        queue.put(event(5));
        assert_eq!(numbers(&mut queue), [Next::Event(event(5))]);
    }

    #[test]
    fn a_slow_subscriber_is_cut_off_behind_what_it_has() {
        let mut queue = filled(Slow::Disconnect);
        let first: Vec<_> = numbers(&mut queue).into_iter().take(3).collect();
        assert_eq!(first, [Next::Event(event(0)), Next::Event(event(1)), Next::TooSlow]);
    }

    #[test]
    fn publishers_wait_for_who_asks_them_to() {
        let mut queue = Queue::new(Slow::Backpressure, 2);
        assert!(!queue.is_in_the_way());
        queue.put(event(0));
        queue.put(event(1));
        assert!(queue.is_in_the_way());
        assert_eq!(queue.take(), Some(Next::Event(event(0))));
        assert!(!queue.is_in_the_way());
        queue.put(event(2));
        queue.cut();
        assert!(!queue.is_in_the_way(), "for who was cut off nobody waits");
    }

    #[test]
    fn an_unknown_number_missing_stays_unknown() {
        let mut queue = Queue::new(Slow::DropOldest, 1);
        queue.miss(None);
        queue.put(event(0));
        queue.put(event(1));
        assert_eq!(numbers(&mut queue), [Next::Missed(None), Next::Event(event(1))]);
    }

    #[test]
    fn an_event_is_counted_once_as_long_as_anybody_has_it() {
        let backlog = Backlog::new(1);
        let mut queues = [Slow::DropOldest, Slow::Disconnect].map(|slow| Queue::new(slow, 1));
        for text in ["first", "second"] {
            let text = Text::new(text.to_owned(), Some(&backlog));
            queues.iter_mut().for_each(|queue| queue.put((EventId { epoch: 1, number: 0 }, text.clone())));
        }
        assert_eq!(backlog.bytes(), "first".len() + "second".len());
        queues.iter_mut().for_each(Queue::drop_if_cut);
        assert_eq!(backlog.bytes(), "second".len(), "who was cut off keeps nothing");
        assert_eq!(queues[1].take(), Some(Next::TooSlow));
        drop(queues);
        assert_eq!(backlog.bytes(), 0);
    }

    #[test]
    fn large_events_fill_a_queue_before_their_number_does() {
        let mut queue = Queue::new(Slow::Backpressure, 100);
        queue.put((EventId { epoch: 1, number: 0 }, Text::new("x".repeat(QUEUE_BYTES_MAX), None)));
        assert!(queue.is_in_the_way());
    }
}

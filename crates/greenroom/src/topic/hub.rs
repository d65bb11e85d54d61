//! What a topic's activation shares with the streams of its subscribers.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::queue::{EventId, Kept, Next, Queue, Text};
use crate::stream::backlog::Backlog;

/// A topic's subscribers and its latest events.
pub(crate) struct Hub {
    state: Mutex<State>,
    /// Where its events are counted with what waits elsewhere.
    backlog: Arc<Backlog>,
}

struct State {
    epoch: u64,
    taken: u64,
    recent: VecDeque<Kept>,
    recent_bytes: usize,
    subscribers: BTreeMap<u64, Subscriber>,
    next: u64,
    /// A publisher that waits for room.
    publisher: Option<Waker>,
}

struct Subscriber {
    queue: Queue,
    waker: Option<Waker>,
}

/// A topic at a glance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Figures {
    pub(crate) subscribers: u64,
    /// Events that wait for them, all together.
    pub(crate) waiting: u64,
    /// Events that those who subscribe now have missed, as far as that is known.
    pub(crate) missed: u64,
    /// Subscribers for whom publishers wait.
    pub(crate) holding: u64,
    /// Events since its activation began.
    pub(crate) published: u64,
}

/// A place among the subscribers, until it is dropped.
pub(crate) struct Seat {
    hub: Arc<Hub>,
    number: u64,
}

/// Returns the number of an activation that begins now: no other has it, also after a restart of the whole cluster, and it rises by the
/// second. It has 53 bits, as numbers that every language has.
pub(crate) fn life(wall: Duration, random: u64) -> u64 {
    let seconds = wall.as_secs() & (u64::MAX >> (u64::BITS - SECONDS_BITS));
    seconds << RANDOM_BITS | random >> (u64::BITS - RANDOM_BITS)
}

impl Hub {
    pub(crate) fn new(epoch: u64, backlog: Arc<Backlog>) -> Arc<Self> {
        let state = Mutex::new(State {
            epoch,
            taken: 0,
            recent: VecDeque::new(),
            recent_bytes: 0,
            subscribers: BTreeMap::new(),
            next: 0,
            publisher: None,
        });
        Arc::new(Self { state, backlog })
    }

    /// Takes a subscriber in, with the events from `from` on if they are still known, and says which event is next. `None` when
    /// there are as many as may be.
    pub(crate) fn subscribe(self: &Arc<Self>, mut queue: Queue, from: Option<EventId>) -> Option<(Seat, EventId)> {
        let mut state = self.lock();
        if state.subscribers.len() >= SUBSCRIBERS_MAX {
            return None;
        }
        let next = EventId { epoch: state.epoch, number: state.taken };
        if let Some(from) = from {
            // Of what an earlier activation took from there on, nothing is known.
            let begin = if from.epoch == state.epoch { from.number } else { 0 };
            let first = state.taken - state.recent.len() as u64;
            if from.epoch != state.epoch {
                queue.miss(None);
            } else if begin < first {
                queue.miss(Some(first - begin));
            }
            state.recent.iter().filter(|(id, _)| id.number >= begin).for_each(|event| queue.put(event.clone()));
        }
        let number = state.next;
        state.next += 1;
        state.subscribers.insert(number, Subscriber { queue, waker: None });
        Some((Seat { hub: self.clone(), number }, next))
    }

    /// Whether nobody keeps a publisher waiting.
    pub(crate) fn poll_room(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if !state.subscribers.values().any(|subscriber| subscriber.queue.is_in_the_way()) {
            return Poll::Ready(());
        }
        state.publisher = Some(context.waker().clone());
        Poll::Pending
    }

    /// Cuts off those that keep publishers waiting.
    pub(crate) fn cut_off_slow(&self) -> usize {
        let mut state = self.lock();
        let slow = state.subscribers.values_mut().filter(|subscriber| subscriber.queue.is_in_the_way());
        let wakers: Vec<_> = slow
            .map(|subscriber| {
                subscriber.queue.cut();
                subscriber.waker.take()
            })
            .collect();
        drop(state);
        wakers.into_iter().map(|waker| waker.map_or((), |waker| waker.wake())).count()
    }

    /// Gives an event to all subscribers: its name, and how many they are.
    pub(crate) fn publish(&self, event: String) -> (EventId, u64) {
        let event = Text::new(event, Some(&self.backlog));
        let mut state = self.lock();
        let id = EventId { epoch: state.epoch, number: state.taken };
        state.taken += 1;
        state.recent_bytes += event.len();
        state.recent.push_back((id, event.clone()));
        while state.recent.len() > RECENT_MAX || state.recent_bytes > RECENT_BYTES_MAX {
            let Some((_, oldest)) = state.recent.pop_front() else { break };
            state.recent_bytes -= oldest.len();
        }
        let over = self.backlog.is_over();
        let mut wakers = Vec::new();
        for subscriber in state.subscribers.values_mut() {
            subscriber.queue.put((id, event.clone()));
            if over {
                subscriber.queue.drop_if_cut();
            }
            wakers.extend(subscriber.waker.take());
        }
        let subscribers = state.subscribers.len() as u64;
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        (id, subscribers)
    }

    /// Whether all that was published has been taken by its subscribers.
    pub(crate) fn is_drained(&self) -> bool {
        self.lock().subscribers.values().all(|subscriber| subscriber.queue.is_empty())
    }

    /// How it is, for who looks.
    pub(crate) fn figures(&self) -> Figures {
        let state = self.lock();
        let queues = || state.subscribers.values().map(|subscriber| &subscriber.queue);
        Figures {
            subscribers: state.subscribers.len() as u64,
            waiting: queues().map(|queue| queue.len() as u64).sum(),
            missed: queues().map(Queue::missed_in_all).sum(),
            holding: queues().filter(|queue| queue.is_in_the_way()).count() as u64,
            published: state.taken,
        }
    }

    /// How many subscribe.
    pub(crate) fn subscribers(&self) -> u64 {
        self.lock().subscribers.len() as u64
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    /// What comes next for this subscriber.
    pub(crate) fn poll_next(&self, context: &Context<'_>) -> Poll<Next> {
        let mut state = self.hub.lock();
        let Some(subscriber) = state.subscribers.get_mut(&self.number) else { return Poll::Ready(Next::TooSlow) };
        let Some(next) = subscriber.queue.take() else {
            subscriber.waker = Some(context.waker().clone());
            return Poll::Pending;
        };
        let publisher = state.publisher.take();
        drop(state);
        if let Some(publisher) = publisher {
            publisher.wake();
        }
        Poll::Ready(next)
    }

    /// What comes next; waits for it.
    pub(crate) async fn next(&self) -> Next {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let (gone, publisher) = {
            let mut state = self.hub.lock();
            (state.subscribers.remove(&self.number), state.publisher.take())
        };
        drop(gone);
        if let Some(publisher) = publisher {
            publisher.wake();
        }
    }
}

/// Subscribers of one topic.
pub(crate) const SUBSCRIBERS_MAX: usize = 16_384;
/// Events that a topic remembers for those who come back.
const RECENT_MAX: usize = 256;
const RECENT_BYTES_MAX: usize = 256 << 10;

/// Bits of a life's second since 1970.
const SECONDS_BITS: u32 = 33;
/// Bits that tell lives of one second apart.
const RANDOM_BITS: u32 = 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topic::queue::Slow;

    fn events(seat: &Seat) -> Vec<Next> {
        let context = Context::from_waker(Waker::noop());
        std::iter::from_fn(|| match seat.poll_next(&context) {
            Poll::Ready(next) => Some(next),
            Poll::Pending => None,
        })
        .collect()
    }

    fn hub(epoch: u64) -> Arc<Hub> {
        Hub::new(epoch, Backlog::new(usize::MAX))
    }

    fn queue() -> Queue {
        Queue::new(Slow::DropOldest, 1000)
    }

    #[test]
    fn who_comes_back_gets_what_it_has_missed() {
        let hub = hub(3);
        (0..5).for_each(|number| _ = hub.publish(number.to_string()));
        let seat = hub.subscribe(queue(), Some(EventId { epoch: 3, number: 3 })).unwrap().0;
        let texts: Vec<_> = events(&seat)
            .into_iter()
            .map(|next| if let Next::Event((_, text)) = next { text.to_string() } else { "missed".to_owned() })
            .collect();
        assert_eq!(texts, ["3", "4"]);
    }

    #[test]
    fn who_comes_back_late_is_told_how_many_are_gone() {
        let hub = hub(3);
        (0..RECENT_MAX + 10).for_each(|_| _ = hub.publish("7".to_owned()));
        let seat = hub.subscribe(queue(), Some(EventId { epoch: 3, number: 2 })).unwrap().0;
        let events = events(&seat);
        assert_eq!((events.len(), &events[0]), (RECENT_MAX + 1, &Next::Missed(Some(8))));
    }

    #[test]
    fn who_comes_back_to_another_activation_is_told_that_nobody_knows() {
        let hub = hub(4);
        hub.publish("7".to_owned());
        let seat = hub.subscribe(queue(), Some(EventId { epoch: 3, number: 9 })).unwrap().0;
        assert_eq!(events(&seat)[0], Next::Missed(None));
    }

    #[test]
    fn a_subscriber_that_goes_is_in_nobodys_way() {
        let hub = hub(1);
        let seat = hub.subscribe(Queue::new(Slow::Backpressure, 1), None).unwrap().0;
        hub.publish("7".to_owned());
        let context = Context::from_waker(Waker::noop());
        assert!(hub.poll_room(&context).is_pending());
        drop(seat);
        assert!(hub.poll_room(&context).is_ready());
        assert_eq!(hub.subscribers(), 0);
    }

    #[test]
    fn lives_differ_and_rise_within_the_numbers_that_every_language_has() {
        let at = |seconds| Duration::from_secs(seconds);
        assert_ne!(life(at(1_800_000_000), 1 << 44), life(at(1_800_000_000), 2 << 44));
        assert!(life(at(1_800_000_001), 0) > life(at(1_800_000_000), u64::MAX));
        assert_eq!(life(at(8_589_934_591), u64::MAX), (1 << 53) - 1);
    }
}

//! Which ranges are whose, and what their owners must be told.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use super::{Action, Event, Now, Plan, Range, Wall};
use crate::checks::Checks;
use crate::directory::{RANGES, RangeId, owner};
use crate::node::{End, NodeId, Status, View};
use crate::time::Timestamp;

/// All ranges as one node keeps them, and the word that it owes to others' owners.
#[derive(Clone, Debug)]
pub struct Keeper<K, P> {
    me: NodeId,
    ranges: Vec<Range<K, P>>,
    owners: Vec<Option<NodeId>>,
    /// What the owners of ranges have not confirmed that they know: at most one entry a range.
    untold: BTreeMap<RangeId, Untold>,
    last: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Untold {
    wake: Wall,
    /// Names this word in its confirmation. What is added later is another word.
    word: u64,
    /// When it is said again.
    again: Timestamp,
}

/// A word for the owner of a range: a hint was made in it that comes up at `wake`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tell {
    /// The owner.
    pub to: NodeId,
    /// The range.
    pub range: RangeId,
    /// When the hint comes up.
    pub wake: Wall,
    /// To be sent back.
    pub word: u64,
}

impl<K: Clone + Eq + Debug, P: Plan> Keeper<K, P> {
    /// The ranges of a node that knows no view yet. The turns of one tick may take down `deaths_max` processes before it is parked.
    pub fn new(me: NodeId, checks: Checks, deaths_max: u32) -> Self {
        Self {
            me,
            ranges: (0..RANGES).map(|_| Range::new(checks, deaths_max)).collect(),
            owners: vec![None; usize::from(RANGES)],
            untold: BTreeMap::new(),
            last: 0,
        }
    }

    /// Takes in a view that follows `old`.
    pub fn view(&mut self, now: Now, old: &View, new: &View, out: &mut Vec<(RangeId, Action<K, P>)>) {
        let alive = |view: &View, node: &NodeId| view.members.get(node).is_some_and(|m| m.status == Status::Active);
        // Who has died may have owed us a word.
        let died = old.members.keys().any(|node| alive(old, node) && !alive(new, node));
        for range in (0..RANGES).map(RangeId) {
            let owner = owner(range, new);
            let after_death = match self.owners[usize::from(range.0)] {
                Some(before) => !alive(new, &before) && new.ends.get(&before) != Some(&End::Left),
                // This is the first view here. If others were there before, one of them owned the range.
                None => new.active().all(|(node, _)| node == self.me),
            };
            let events: &[_] = match owner == Some(self.me) {
                false => &[Event::Lose],
                true if !self.ranges[usize::from(range.0)].is_owned() => &[Event::Own { after_death }],
                true if died => &[Event::Rescan, Event::Retry],
                true => &[Event::Retry],
            };
            events.iter().for_each(|event| self.handle(now, range, event.clone(), out));
            assert_eq!(
                self.is_owned(range),
                owner == Some(self.me),
                "a range is kept that is another's, or is not kept"
            );
            self.owners[usize::from(range.0)] = owner;
        }
        for untold in self.untold.values_mut() {
            untold.again = Timestamp::default();
        }
    }

    /// Gives `event` to a range.
    pub fn handle(&mut self, now: Now, range: RangeId, event: Event<K, P>, out: &mut Vec<(RangeId, Action<K, P>)>) {
        let Some(here) = self.ranges.get_mut(usize::from(range.0)) else { return };
        let mut actions = Vec::new();
        here.handle(now, event, &mut actions);
        out.extend(actions.into_iter().map(|action| (range, action)));
    }

    /// A hint was made here that comes up at `wake`: its range's owner is to know.
    pub fn made(&mut self, now: Now, range: RangeId, wake: Wall, out: &mut Vec<(RangeId, Action<K, P>)>) {
        if self.is_owned(range) {
            return self.handle(now, range, Event::Noted { wake }, out);
        }
        assert!(range.0 < RANGES, "a hint was made in no range");
        self.last += 1;
        let known = self.untold.get(&range).map_or(Wall::NEVER, |untold| untold.wake);
        let untold = Untold { wake: wake.min(known), word: self.last, again: now.clock };
        self.untold.insert(range, untold);
    }

    /// Another node says that a hint was made; whether the word is to be confirmed.
    pub fn told(&mut self, now: Now, range: RangeId, wake: Wall, out: &mut Vec<(RangeId, Action<K, P>)>) -> bool {
        let owned = self.is_owned(range);
        if owned {
            self.handle(now, range, Event::Noted { wake }, out);
        }
        owned
    }

    /// The owner has confirmed a word.
    pub fn confirmed(&mut self, range: RangeId, word: u64) {
        if self.untold.get(&range).is_some_and(|untold| untold.word == word) {
            self.untold.remove(&range);
        }
    }

    /// Begins what is due, and gives the words that are to be sent.
    pub fn tick(&mut self, now: Now, out: &mut Vec<(RangeId, Action<K, P>)>) -> Vec<Tell> {
        for range in (0..RANGES).map(RangeId) {
            let due = self.ranges[usize::from(range.0)].deadline(now);
            if due.is_some_and(|due| due <= now.clock) {
                self.handle(now, range, Event::Tick, out);
            }
        }
        let mut tell = Vec::new();
        let mut ours = Vec::new();
        for (range, untold) in &mut self.untold {
            match self.owners[usize::from(range.0)] {
                Some(owner) if owner == self.me => ours.push((*range, untold.wake)),
                Some(to) if untold.again <= now.clock => {
                    untold.again = now.clock + SAY_AGAIN;
                    tell.push(Tell { to, range: *range, wake: untold.wake, word: untold.word });
                }
                _ => {}
            }
        }
        for (range, wake) in ours {
            self.untold.remove(&range);
            self.handle(now, range, Event::Noted { wake }, out);
        }
        tell
    }

    /// When [`Keeper::tick`] next has something to do.
    pub fn deadline(&self, now: Now) -> Option<Timestamp> {
        let ranges = self.ranges.iter().filter_map(|range| range.deadline(now));
        ranges.chain(self.untold.values().map(|untold| untold.again)).min()
    }

    /// Whether this node owns `range`.
    pub fn is_owned(&self, range: RangeId) -> bool {
        self.ranges.get(usize::from(range.0)).is_some_and(Range::is_owned)
    }

    /// As [`Range::behind`], of all ranges.
    pub fn behind(&self) -> Option<Wall> {
        self.ranges.iter().filter_map(Range::behind).min()
    }

    /// Ranges that this node owns, and hints of theirs in memory.
    pub fn counts(&self) -> (usize, usize) {
        let owned = self.ranges.iter().filter(|range| range.is_owned()).count();
        (owned, self.ranges.iter().map(Range::loaded).sum())
    }
}

/// Time after which a word that was not confirmed is said again.
const SAY_AGAIN: Duration = Duration::from_millis(500);

//! By which node the messages of one sender to one actor go, so that none overtakes another.
//!
//! A sender that does not know where an actor is sends to the node that owns the actor's part of the directory, which passes on
//! what is for others. Once it has learnt where the actor is, it could go straight; but what goes straight may overtake what still
//! goes round. So the sender keeps to the way that it has taken until all that went round has arrived: the answer to the last of
//! it says so, or the answer to a mark, which goes round behind the last. While a mark is under way, what follows is held back.
//!
//! The other way about, a sender that has gone straight does so as long as its messages may be under way: it forgets where an
//! actor is only after it has sent it nothing for [`KEPT`].
//!
//! This holds for an actor that stays where it is, over connections that last. Wrong news of where one is cost a hop.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::node::NodeId;
use crate::time::Timestamp;

/// What a sender knows of its ways to actors, by the actors' hashes. `T` is what it must know of an actor to send it a mark.
#[derive(Clone, Debug)]
pub struct Courses<T> {
    of: BTreeMap<u64, Course<T>>,
    /// With so many, those that nothing can be under way on any more are dropped.
    limit: usize,
}

/// By whom messages go.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Course<T> {
    /// `None` if only the directory can say.
    to: Option<NodeId>,
    used: Timestamp,
    /// `None` if the actor is there.
    round: Option<Box<Round<T>>>,
}

/// What is under way by the owner of an actor's part of the directory.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Round<T> {
    actor: T,
    /// The call that was sent last, if the last message was one.
    last: Option<u64>,
    /// The mark that is under way.
    mark: Option<u64>,
}

/// How the next message goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Nothing is known.
    Unknown,
    /// As the directory says, whatever the sender's reference knows: the actor has been found at the sender's own node, or is not
    /// where it was.
    Asks,
    /// To the node that has the actor.
    Straight(NodeId),
    /// To the node that others before it went to, which passes it on.
    Round(NodeId),
    /// Not now: a mark is under way.
    Held,
}

/// Where an actor is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Host {
    /// At the sender's own node.
    Here,
    /// At another one.
    There(NodeId),
}

impl<T> Default for Courses<T> {
    fn default() -> Self {
        Self { of: BTreeMap::new(), limit: DROPPED_MIN }
    }
}

impl<T> Courses<T> {
    /// How a message to `actor` goes that is sent now. A call is to be [told of](Self::called) once it has left.
    #[inline]
    pub fn next(&mut self, actor: u64, now: Timestamp) -> Next {
        let Some(course) = self.of.get_mut(&actor) else { return Next::Unknown };
        course.used = now;
        match (&mut course.round, course.to) {
            (_, None) => Next::Asks,
            (None, Some(host)) => Next::Straight(host),
            (Some(round), _) if round.mark.is_some() => Next::Held,
            (Some(round), Some(owner)) => {
                round.last = None;
                Next::Round(owner)
            }
        }
    }

    /// Whether messages to `actor` must keep to a way round, or wait: others before them may not have arrived.
    pub fn is_round(&self, actor: u64) -> bool {
        self.of.get(&actor).is_some_and(|course| course.round.is_some())
    }

    /// A message has gone to `host` of which nothing was known here, and which has the actor for all that its sender knows.
    pub fn went_straight(&mut self, actor: u64, host: NodeId, now: Timestamp) {
        if !self.is_round(actor) {
            self.enter(actor, Some(host), now, None);
        }
    }

    /// A message goes to `owner`, which may pass it on.
    pub fn goes_round(&mut self, actor: u64, owner: NodeId, now: Timestamp, what: T) {
        if !self.is_round(actor) {
            self.enter(actor, Some(owner), now, Some(Box::new(Round { actor: what, last: None, mark: None })));
        }
    }

    /// The message that went to `to` last is this call.
    pub fn called(&mut self, actor: u64, to: NodeId, call: u64) {
        if let Some(Course { to: by, round: Some(round), .. }) = self.of.get_mut(&actor)
            && *by == Some(to)
        {
            round.last = Some(call);
        }
    }

    /// Takes in where the actor is: who has it has answered `call`.
    #[must_use = "a mark may be due"]
    pub fn answered(&mut self, actor: u64, host: Host, call: u64, now: Timestamp) -> Option<(NodeId, &T)> {
        let arrived = match self.of.get(&actor) {
            // What is held goes first.
            Some(Course { round: Some(round), .. }) if round.mark.is_some() => return None,
            Some(Course { to, round: Some(round), .. }) => {
                to.map(Host::There) == Some(host) || round.last == Some(call)
            }
            _ => true,
        };
        if arrived {
            self.settle(actor, host, now);
            return None;
        }
        self.mark_due(actor)
    }

    /// The node `by` says that it has passed on a message. It may have come by there long ago.
    #[must_use = "a mark may be due"]
    pub fn passed_on(&mut self, actor: u64, by: NodeId) -> Option<(NodeId, &T)> {
        if self.of.get(&actor)?.to != Some(by) {
            return None;
        }
        self.doubt(actor);
        self.mark_due(actor)
    }

    /// To whom a mark is to be sent, behind all that went there, and what it must know of the actor.
    fn mark_due(&self, actor: u64) -> Option<(NodeId, &T)> {
        let Course { to, round, .. } = self.of.get(&actor)?;
        let round = round.as_ref().filter(|round| round.mark.is_none())?;
        Some(((*to)?, &round.actor))
    }

    /// The mark has left as this call.
    pub fn marked(&mut self, actor: u64, mark: u64) {
        if let Some(Course { round: Some(round), .. }) = self.of.get_mut(&actor) {
            round.mark = Some(mark);
        }
    }

    /// The mark was answered from where the actor is, or came to nothing: what is held goes on now.
    pub fn mark_ended(&mut self, actor: u64, mark: u64, host: Option<Host>, now: Timestamp) {
        let Some(Course { round: Some(round), .. }) = self.of.get_mut(&actor) else { return };
        if round.mark != Some(mark) {
            return;
        }
        match host {
            Some(host) => self.settle(actor, host, now),
            None => round.mark = None,
        }
    }

    /// No more can be held back: what is held goes on the way round, as does what follows.
    pub fn give_up(&mut self, actor: u64) {
        if let Some(Course { round: Some(round), .. }) = self.of.get_mut(&actor) {
            round.mark = None;
        }
    }

    /// There is no way to the node by which messages went.
    pub fn forget(&mut self, actor: u64) {
        self.of.remove(&actor);
    }

    /// What went straight was not answered, or not from where the actor is: perhaps it is elsewhere.
    pub fn doubt(&mut self, actor: u64) {
        if let Some(course) = self.of.get_mut(&actor)
            && course.round.is_none()
        {
            course.to = None;
        }
    }

    /// All that was sent has arrived.
    fn settle(&mut self, actor: u64, host: Host, now: Timestamp) {
        let to = match host {
            Host::There(host) => Some(host),
            Host::Here => None,
        };
        self.enter(actor, to, now, None);
    }

    fn enter(&mut self, actor: u64, to: Option<NodeId>, used: Timestamp, round: Option<Box<Round<T>>>) {
        if self.of.len() >= self.limit && !self.of.contains_key(&actor) {
            self.drop_unused(used);
        }
        self.of.insert(actor, Course { to, used, round });
    }

    /// Makes room. Beyond [`COURSES_MAX`], order gives way to memory.
    fn drop_unused(&mut self, now: Timestamp) {
        let mut kept = KEPT;
        loop {
            self.of.retain(|_, course| now.since(course.used) < kept);
            if self.of.len() <= COURSES_MAX / 2 {
                break;
            }
            kept /= 2;
        }
        self.limit = (self.of.len() * 2).max(DROPPED_MIN);
    }
}

/// No message is under way for so long: a node that stands still loses its lease before, and passes nothing on then.
pub const KEPT: Duration = Duration::from_secs(30);
/// Ways that one sender remembers at most, about.
pub const COURSES_MAX: usize = 1 << 20;
/// With fewer, none is dropped.
const DROPPED_MIN: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: NodeId = NodeId(2);
    const HOST: NodeId = NodeId(3);
    const THERE: Host = Host::There(HOST);
    const ACTOR: u64 = 7;
    const NOW: Timestamp = Timestamp::from_nanos(1);

    fn round() -> Courses<&'static str> {
        let mut courses = Courses::default();
        assert_eq!(courses.next(ACTOR, NOW), Next::Unknown);
        courses.goes_round(ACTOR, OWNER, NOW, "room/lobby");
        courses
    }

    #[test]
    fn the_answer_to_the_last_message_lets_the_next_go_straight() {
        let mut courses = round();
        courses.called(ACTOR, OWNER, 4);
        assert_eq!(courses.answered(ACTOR, THERE, 4, NOW), None);
        assert_eq!(courses.next(ACTOR, NOW), Next::Straight(HOST));
    }

    #[test]
    fn news_behind_which_something_is_under_way_send_a_mark_and_hold_what_follows() {
        let mut courses = round();
        courses.called(ACTOR, OWNER, 4);
        assert_eq!(courses.next(ACTOR, NOW), Next::Round(OWNER), "a one-way message behind the call");
        assert_eq!(courses.answered(ACTOR, THERE, 4, NOW), Some((OWNER, &"room/lobby")));
        courses.marked(ACTOR, 5);
        assert_eq!(courses.next(ACTOR, NOW), Next::Held);
        assert_eq!(courses.passed_on(ACTOR, OWNER), None, "one mark is enough");
        courses.mark_ended(ACTOR, 4, Some(THERE), NOW);
        assert_eq!(courses.next(ACTOR, NOW), Next::Held, "another's end");
        courses.mark_ended(ACTOR, 5, Some(THERE), NOW);
        assert_eq!(courses.next(ACTOR, NOW), Next::Straight(HOST));
    }

    #[test]
    fn the_answer_to_the_last_message_does_not_let_the_next_overtake_what_is_held() {
        let mut courses = round();
        courses.called(ACTOR, OWNER, 4);
        assert!(courses.passed_on(ACTOR, OWNER).is_some());
        courses.marked(ACTOR, 5);
        assert_eq!(courses.next(ACTOR, NOW), Next::Held);
        assert_eq!(courses.answered(ACTOR, THERE, 4, NOW), None);
        assert_eq!(courses.next(ACTOR, NOW), Next::Held);
    }

    #[test]
    fn a_mark_that_comes_to_nothing_changes_no_way() {
        let mut courses = round();
        assert!(courses.passed_on(ACTOR, OWNER).is_some());
        courses.marked(ACTOR, 5);
        courses.mark_ended(ACTOR, 5, None, NOW);
        assert_eq!(courses.next(ACTOR, NOW), Next::Round(OWNER));
        courses.marked(ACTOR, 6);
        courses.give_up(ACTOR);
        assert_eq!(courses.next(ACTOR, NOW), Next::Round(OWNER));
        courses.mark_ended(ACTOR, 6, Some(THERE), NOW);
        assert_eq!(courses.next(ACTOR, NOW), Next::Round(OWNER), "something has gone round behind it");
    }

    #[test]
    fn an_owner_that_has_the_actor_itself_is_as_straight_as_can_be() {
        let mut courses = round();
        courses.doubt(ACTOR);
        assert_eq!(courses.next(ACTOR, NOW), Next::Round(OWNER), "what goes round keeps to it");
        assert_eq!(courses.answered(ACTOR, Host::There(OWNER), 9, NOW), None);
        assert_eq!(courses.next(ACTOR, NOW), Next::Straight(OWNER));
        courses.doubt(ACTOR);
        assert_eq!(courses.next(ACTOR, NOW), Next::Asks);
        courses.goes_round(ACTOR, OWNER, NOW, "room/lobby");
        assert_eq!(courses.next(ACTOR, NOW), Next::Round(OWNER));
    }

    #[test]
    fn who_passes_on_what_came_straight_has_the_actor_no_more() {
        let mut courses = round();
        assert_eq!(courses.answered(ACTOR, Host::There(OWNER), 9, NOW), None);
        assert_eq!(courses.passed_on(ACTOR, HOST), None);
        assert_eq!(courses.next(ACTOR, NOW), Next::Straight(OWNER), "another one's news are old");
        assert_eq!(courses.passed_on(ACTOR, OWNER), None);
        assert_eq!(courses.next(ACTOR, NOW), Next::Asks);
    }

    #[test]
    fn what_turns_out_to_be_at_the_senders_node_is_the_directorys_to_know() {
        let mut courses = round();
        assert!(courses.passed_on(ACTOR, OWNER).is_some());
        courses.marked(ACTOR, 5);
        courses.mark_ended(ACTOR, 5, Some(Host::Here), NOW);
        assert_eq!(courses.next(ACTOR, NOW), Next::Asks);
    }

    #[test]
    fn only_ways_that_nothing_is_under_way_on_are_dropped() {
        let mut courses = Courses::<()>::default();
        let late = NOW + KEPT;
        let old = DROPPED_MIN as u64;
        (0..old).for_each(|actor| courses.went_straight(actor, HOST, NOW));
        assert_eq!(courses.next(3, late), Next::Straight(HOST));
        courses.went_straight(old, HOST, late);
        assert_eq!(courses.of.len(), 2);
        let many = (COURSES_MAX + DROPPED_MIN) as u64;
        (0..many).for_each(|actor| courses.went_straight(actor, HOST, late + Duration::from_nanos(actor)));
        assert!(courses.of.len() <= COURSES_MAX, "{}", courses.of.len());
    }
}

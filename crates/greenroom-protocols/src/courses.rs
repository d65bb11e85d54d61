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

use std::collections::HashMap;
use std::time::Duration;

use foldhash::fast::FixedState;

use crate::node::NodeId;
use crate::time::Timestamp;

/// What a sender knows of its ways to actors, by the actors' hashes. `T` is what it must know of an actor to send it a mark.
#[derive(Clone, Debug)]
pub struct Courses<T> {
    /// Those that were used since the last ones were dropped, and those that were not.
    used: ByActor<T>,
    unused: ByActor<T>,
    dropped: Timestamp,
}

type ByActor<T> = HashMap<u64, Course<T>, FixedState>;

/// By whom messages go.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Course<T> {
    /// `None` if only the directory can say.
    to: Option<NodeId>,
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

impl<T> Courses<T> {
    /// Knows nothing. The seed is what nobody can guess who chooses the keys of actors.
    pub fn new(seed: u64) -> Self {
        let empty = || HashMap::with_hasher(FixedState::with_seed(seed));
        Self { used: empty(), unused: empty(), dropped: Timestamp::default() }
    }

    /// How a message to `actor` goes that is sent now. A call is to be [told of](Self::called) once it has left.
    #[inline]
    pub fn next(&mut self, actor: u64) -> Next {
        let Some(course) = self.course(actor) else { return Next::Unknown };
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
        let course = self.used.get(&actor).or_else(|| self.unused.get(&actor));
        course.is_some_and(|course| course.round.is_some())
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
        if let Some(Course { to: by, round: Some(round) }) = self.course(actor)
            && *by == Some(to)
        {
            round.last = Some(call);
        }
    }

    /// Takes in where the actor is: who has it has answered `call`.
    #[must_use = "a mark may be due"]
    pub fn answered(&mut self, actor: u64, host: Host, call: u64, now: Timestamp) -> Option<(NodeId, &T)> {
        let arrived = match self.course(actor) {
            // What is held goes first.
            Some(Course { round: Some(round), .. }) if round.mark.is_some() => return None,
            Some(Course { to, round: Some(round) }) => to.map(Host::There) == Some(host) || round.last == Some(call),
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
        if self.course(actor)?.to != Some(by) {
            return None;
        }
        self.doubt(actor);
        self.mark_due(actor)
    }

    /// To whom a mark is to be sent, behind all that went there, and what it must know of the actor.
    fn mark_due(&mut self, actor: u64) -> Option<(NodeId, &T)> {
        let Course { to, round } = self.course(actor)?;
        let round = round.as_ref().filter(|round| round.mark.is_none())?;
        Some(((*to)?, &round.actor))
    }

    /// The mark has left as this call.
    pub fn marked(&mut self, actor: u64, mark: u64) {
        if let Some(Course { round: Some(round), .. }) = self.course(actor) {
            round.mark = Some(mark);
        }
    }

    /// The mark was answered from where the actor is, or came to nothing: what is held goes on now.
    pub fn mark_ended(&mut self, actor: u64, mark: u64, host: Option<Host>, now: Timestamp) {
        let Some(Course { round: Some(round), .. }) = self.course(actor) else { return };
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
        if let Some(Course { round: Some(round), .. }) = self.course(actor) {
            round.mark = None;
        }
    }

    /// There is no way to the node by which messages went.
    pub fn forget(&mut self, actor: u64) {
        self.used.remove(&actor);
        self.unused.remove(&actor);
    }

    /// What went straight was not answered, or not from where the actor is: perhaps it is elsewhere.
    pub fn doubt(&mut self, actor: u64) {
        if let Some(course) = self.course(actor)
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

    fn enter(&mut self, actor: u64, to: Option<NodeId>, now: Timestamp, round: Option<Box<Round<T>>>) {
        let course = Course { to, round };
        if let Some(known) = self.course(actor) {
            *known = course;
            return;
        }
        if self.used.len() >= DROPPED_MIN && now.since(self.dropped) >= KEPT || self.used.len() >= COURSES_MAX / 2 {
            self.drop_unused(now);
        }
        self.used.insert(actor, course);
    }

    /// What is known of `actor`, which is used by that.
    #[inline]
    fn course(&mut self, actor: u64) -> Option<&mut Course<T>> {
        if !self.unused.is_empty()
            && let Some(course) = self.unused.remove(&actor)
        {
            self.used.insert(actor, course);
        }
        self.used.get_mut(&actor)
    }

    /// Makes room. Where so many are used at once that it is done before [`KEPT`] has passed, order gives way to memory.
    fn drop_unused(&mut self, now: Timestamp) {
        let room = HashMap::with_hasher(self.used.hasher().clone());
        self.unused = std::mem::replace(&mut self.used, room);
        self.dropped = now;
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
    use proptest::prelude::*;

    use super::*;

    const OWNER: NodeId = NodeId(2);
    const HOST: NodeId = NodeId(3);
    const THERE: Host = Host::There(HOST);
    const ACTOR: u64 = 7;
    const NOW: Timestamp = Timestamp::from_nanos(1);

    fn round() -> Courses<&'static str> {
        let mut courses = Courses::new(1);
        assert_eq!(courses.next(ACTOR), Next::Unknown);
        courses.goes_round(ACTOR, OWNER, NOW, "room/lobby");
        courses
    }

    #[test]
    fn the_answer_to_the_last_message_lets_the_next_go_straight() {
        let mut courses = round();
        courses.called(ACTOR, OWNER, 4);
        assert_eq!(courses.answered(ACTOR, THERE, 4, NOW), None);
        assert_eq!(courses.next(ACTOR), Next::Straight(HOST));
    }

    #[test]
    fn news_behind_which_something_is_under_way_send_a_mark_and_hold_what_follows() {
        let mut courses = round();
        courses.called(ACTOR, OWNER, 4);
        assert_eq!(courses.next(ACTOR), Next::Round(OWNER), "a one-way message behind the call");
        assert_eq!(courses.answered(ACTOR, THERE, 4, NOW), Some((OWNER, &"room/lobby")));
        courses.marked(ACTOR, 5);
        assert_eq!(courses.next(ACTOR), Next::Held);
        assert_eq!(courses.passed_on(ACTOR, OWNER), None, "one mark is enough");
        courses.mark_ended(ACTOR, 4, Some(THERE), NOW);
        assert_eq!(courses.next(ACTOR), Next::Held, "another's end");
        courses.mark_ended(ACTOR, 5, Some(THERE), NOW);
        assert_eq!(courses.next(ACTOR), Next::Straight(HOST));
    }

    #[test]
    fn a_call_that_went_another_way_is_not_the_last_that_went_round() {
        let mut courses = round();
        courses.called(ACTOR, HOST, 4);
        let due = courses.answered(ACTOR, THERE, 4, NOW);
        assert_eq!(due, Some((OWNER, &"room/lobby")), "what went round may be under way: a mark follows it");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_way_is_remembered_for_as_long_as_something_may_be_under_way(
            pauses in proptest::collection::vec(0..30_000_u64, 1..12),
        ) {
            let mut courses = Courses::<()>::new(1);
            let (mut now, mut actors, mut used) = (NOW, 0, Vec::new());
            for pause in pauses {
                now = now + Duration::from_millis(pause);
                for _ in 0..=DROPPED_MIN {
                    courses.went_straight(actors, HOST, now);
                    actors += 1;
                }
                used.push((actors - 1, now));
                let recent = used.iter().filter(|(_, at)| now.since(*at) < KEPT);
                for (actor, at) in recent {
                    let is_known = courses.used.contains_key(actor) || courses.unused.contains_key(actor);
                    prop_assert!(is_known, "used at {at:?}, forgotten at {now:?}");
                }
            }
        }
    }

    #[test]
    fn the_answer_to_the_last_message_does_not_let_the_next_overtake_what_is_held() {
        let mut courses = round();
        courses.called(ACTOR, OWNER, 4);
        assert!(courses.passed_on(ACTOR, OWNER).is_some());
        courses.marked(ACTOR, 5);
        assert_eq!(courses.next(ACTOR), Next::Held);
        assert_eq!(courses.answered(ACTOR, THERE, 4, NOW), None);
        assert_eq!(courses.next(ACTOR), Next::Held);
    }

    #[test]
    fn a_mark_that_comes_to_nothing_changes_no_way() {
        let mut courses = round();
        assert!(courses.passed_on(ACTOR, OWNER).is_some());
        courses.marked(ACTOR, 5);
        courses.mark_ended(ACTOR, 5, None, NOW);
        assert_eq!(courses.next(ACTOR), Next::Round(OWNER));
        courses.marked(ACTOR, 6);
        courses.give_up(ACTOR);
        assert_eq!(courses.next(ACTOR), Next::Round(OWNER));
        courses.mark_ended(ACTOR, 6, Some(THERE), NOW);
        assert_eq!(courses.next(ACTOR), Next::Round(OWNER), "something has gone round behind it");
    }

    #[test]
    fn an_owner_that_has_the_actor_itself_is_as_straight_as_can_be() {
        let mut courses = round();
        courses.doubt(ACTOR);
        assert_eq!(courses.next(ACTOR), Next::Round(OWNER), "what goes round keeps to it");
        assert_eq!(courses.answered(ACTOR, Host::There(OWNER), 9, NOW), None);
        assert_eq!(courses.next(ACTOR), Next::Straight(OWNER));
        courses.doubt(ACTOR);
        assert_eq!(courses.next(ACTOR), Next::Asks);
        courses.goes_round(ACTOR, OWNER, NOW, "room/lobby");
        assert_eq!(courses.next(ACTOR), Next::Round(OWNER));
    }

    #[test]
    fn who_passes_on_what_came_straight_has_the_actor_no_more() {
        let mut courses = round();
        assert_eq!(courses.answered(ACTOR, Host::There(OWNER), 9, NOW), None);
        assert_eq!(courses.passed_on(ACTOR, HOST), None);
        assert_eq!(courses.next(ACTOR), Next::Straight(OWNER), "another one's news are old");
        assert_eq!(courses.passed_on(ACTOR, OWNER), None);
        assert_eq!(courses.next(ACTOR), Next::Asks);
    }

    #[test]
    fn what_turns_out_to_be_at_the_senders_node_is_the_directorys_to_know() {
        let mut courses = round();
        assert!(courses.passed_on(ACTOR, OWNER).is_some());
        courses.marked(ACTOR, 5);
        courses.mark_ended(ACTOR, 5, Some(Host::Here), NOW);
        assert_eq!(courses.next(ACTOR), Next::Asks);
    }

    #[test]
    fn only_ways_that_nothing_is_under_way_on_are_dropped() {
        let mut courses = Courses::<()>::new(1);
        let known = |courses: &Courses<()>| courses.used.len() + courses.unused.len();
        let old = DROPPED_MIN as u64;
        let late = NOW + KEPT;
        (0..old).for_each(|actor| courses.went_straight(actor, HOST, late));
        courses.went_straight(old, HOST, late + KEPT / 2);
        assert_eq!(known(&courses), DROPPED_MIN + 1, "those were used half of the time ago");
        assert_eq!(courses.next(3), Next::Straight(HOST));
        (old + 1..old * 2).for_each(|actor| courses.went_straight(actor, HOST, late + KEPT / 2));
        courses.went_straight(old * 2, HOST, late + KEPT + KEPT / 2);
        assert_eq!(courses.next(3), Next::Straight(HOST), "it was used");
        assert_eq!(courses.next(4), Next::Unknown, "and this was not");
        let many = (COURSES_MAX + DROPPED_MIN) as u64;
        (0..many).for_each(|actor| courses.went_straight(actor, HOST, late + KEPT + KEPT / 2));
        assert!(known(&courses) <= COURSES_MAX, "{}", known(&courses));
    }
}

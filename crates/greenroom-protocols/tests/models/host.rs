//! Exhausts hosts of one actor: two of them, two messages, three faults. No message is lost, doubled or taken from a host that acts no
//! more, and of two hosts never one acts while the node has given the actor to the other.
//!
//! Control plane and shard are threads: what they say to each other comes later. So does what lies in the buffers of a
//! connection, which each side may still read when it is broken. Time passes whenever it likes, and a host that is frozen is one
//! that takes no step. All this is so for the host that has the actor first; the other, its successor, does at once what comes to it.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use greenroom_protocols::host::{
    Activation, Bounds, Checks, ControlAction, ControlEvent, Cookie, Fate, LaneAction, LaneEvent, Lanes, Offer, Pulse,
    Seat, SessionId, Sessions, Settings, Shard, TurnNumber, Word,
};
use greenroom_protocols::time::Timestamp;
use greenroom_protocols::versions;
use stateright::{Checker, HasDiscoveries, Model, Property};

const FIRST: usize = 0;
const SUCCESSOR: usize = 1;
const ROOM: Activation = Activation(0);
const SHARD: Shard = Shard(0);
const LEASE: Duration = Duration::from_secs(2);

/// The host's rules.
#[derive(Clone, Copy)]
struct HostRules {
    /// It looks at its lease before it acts (L2).
    looks: bool,
    /// It drops all before each Hello (L5).
    drops: bool,
    /// Its lease counts from when it sent the Alive (L6).
    from_sent: bool,
}

#[derive(Clone)]
struct World {
    checks: Checks,
    host: HostRules,
    faults: u8,
    seconds: u8,
    sessions: u64,
    drains: bool,
    /// Between its messages the actor goes to another node.
    moves: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum ToHost {
    Activate(Seat, u8),
    Turn(TurnNumber, Seat, usize),
    Deactivate(Seat),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum ToNode {
    Activated(Seat),
    /// With what the instance held.
    Released(Seat, u8),
    /// The turn, and the state with it.
    Ended(TurnNumber, u8),
}

/// A host's end and the node's end of a session, and what is under way between them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Link {
    session: SessionId,
    pulse: Pulse,
    control_cut: bool,
    lane_cut: bool,
    /// The node has seen that the control lane is cut.
    control_seen: bool,
    alive: Option<u64>,
    dropped: bool,
    lease: Option<(u64, Duration)>,
    lane_lost: bool,
    to_host: VecDeque<ToHost>,
    to_node: VecDeque<ToNode>,
    /// What the host has in memory of each seat.
    seats: BTreeMap<Seat, u8>,
    running: Option<(TurnNumber, Seat)>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Host {
    link: Option<Link>,
    /// Sessions of before: what the node may still read of them, and, without L5, what still runs.
    before: Vec<Link>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    now: u8,
    sessions: Sessions,
    lanes: Lanes,
    words: VecDeque<Word>,
    reports: VecDeque<ControlEvent>,
    hosts: Vec<Host>,
    last_session: u64,
    faults: u8,
    has_drained: bool,
    /// Where the node has the actor.
    seat: Option<(SessionId, Seat)>,
    moves: bool,
    /// What came with its Released.
    released: Option<u8>,
    /// It is at another node, where its other message has run.
    is_elsewhere: bool,
    stored: u8,
    /// Turns whose end was taken.
    ends: u8,
    /// The message that is its turn, and its cookie.
    message: usize,
    cookies: BTreeMap<Cookie, usize>,
    last_cookie: u64,
    begun: [u8; 2],
    ended: [u8; 2],
    /// The end of a turn was taken that had been dealt with.
    is_stale: bool,
    wrong: Option<&'static str>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Step {
    Second,
    NodeLooks,
    ShardHears,
    ControlHears,
    Dial(usize),
    Alive(usize),
    NodeReadsControl(usize),
    HostReadsControl(usize),
    HostReadsLane(usize),
    NodeReadsLane(usize),
    /// The node reads what is left of a session of before.
    NodeReadsBefore(usize),
    Ends(usize),
    EndsBefore(usize),
    CutControl(usize),
    CutLane(usize),
    NodeSeesControl(usize),
    NodeSeesLane(usize),
    Rejoin(usize),
    Kill(usize),
    Drain(usize),
}

impl State {
    fn time(&self) -> Timestamp {
        Timestamp::from_nanos(u64::from(self.now) * 1_000_000_000)
    }

    fn control(&mut self, event: ControlEvent) {
        let mut out = Vec::new();
        self.sessions.handle(self.time(), event, &mut out);
        for action in out {
            match action {
                ControlAction::Tell(word) => self.words.push_back(word),
                ControlAction::Welcome { session, lease } => {
                    let pulse = Pulse::new(self.time(), lease);
                    if let Some(link) = self.link(session) {
                        link.pulse = pulse;
                    }
                }
                ControlAction::Lease { session, number, lease } => {
                    if let Some(link) = self.link(session).filter(|link| !link.control_cut) {
                        link.lease = Some((number, lease));
                    }
                }
                ControlAction::LaneLost { session, .. } => {
                    if let Some(link) = self.link(session).filter(|link| !link.control_cut) {
                        link.lane_lost = true;
                    }
                }
                ControlAction::Close { session, .. } => {
                    if let Some(link) = self.link(session) {
                        (link.control_cut, link.control_seen) = (true, true);
                    }
                }
                ControlAction::Offered { .. } | ControlAction::Row { .. } => {}
            }
        }
    }

    /// A session's link, if it is its host's.
    fn link(&mut self, session: SessionId) -> Option<&mut Link> {
        self.hosts.iter_mut().filter_map(|host| host.link.as_mut()).find(|link| link.session == session)
    }

    fn shard(&mut self, event: LaneEvent, value: u8) {
        let mut out = Vec::new();
        self.lanes.handle(self.time(), event, &mut out);
        let sent = |state: &mut Self, session: SessionId, frame: ToHost| {
            if let Some(link) = state.link(session).filter(|link| !link.lane_cut) {
                link.to_host.push_back(frame);
            }
        };
        for action in out {
            match action {
                LaneAction::Activate { session, seat, .. } => {
                    self.seat = Some((session, seat));
                    let stored = self.stored;
                    sent(self, session, ToHost::Activate(seat, stored));
                }
                LaneAction::Send { session, seat, turn, cookie } => {
                    let message = self.cookies.get(&cookie).copied().unwrap_or(1);
                    sent(self, session, ToHost::Turn(turn, seat, message));
                }
                LaneAction::Deactivate { session, seat, .. } => sent(self, session, ToHost::Deactivate(seat)),
                LaneAction::End { cookie } => {
                    self.stored = value;
                    self.ends += 1;
                    match self.cookies.get(&cookie) {
                        Some(message) => self.ended[*message] += 1,
                        None => self.is_stale = true,
                    }
                    self.follow(cookie);
                }
                LaneAction::Fail { cookie, fate } => match fate {
                    Fate::Again => self.begin(self.cookies[&cookie]),
                    Fate::Unknown => self.follow(cookie),
                    _ => self.wrong = Some("a turn is refused"),
                },
                LaneAction::Carried { .. } => self.go_elsewhere(),
                LaneAction::LaneBroken { session } => {
                    self.reports.push_back(ControlEvent::LaneBroken { session, shard: SHARD });
                }
                LaneAction::Drained { session } => {
                    self.reports.push_back(ControlEvent::Drained { session, shard: SHARD });
                }
                LaneAction::CloseLane { session, fault } => {
                    if fault.is_some() {
                        self.wrong = Some("a host that keeps to the protocol is at fault");
                    }
                    if let Some(link) = self.link(session) {
                        link.lane_cut = true;
                    }
                }
                _ => {}
            }
        }
    }

    fn begin(&mut self, message: usize) {
        self.last_cookie += 1;
        let cookie = Cookie(self.last_cookie);
        self.cookies.insert(cookie, message);
        let (activation, runs_again) = (ROOM, message == 1);
        self.shard(LaneEvent::Begin { activation, cookie, runs_again, len: 1 }, 0);
    }

    /// The message of this turn is dealt with: the next one follows.
    fn follow(&mut self, cookie: Cookie) {
        if self.cookies.get(&cookie) == Some(&self.message) && self.message < 2 {
            self.message += 1;
            match self.message {
                2 => {}
                _ if self.moves => self.shard(LaneEvent::Carry { activation: ROOM }, 0),
                message => self.begin(message),
            }
        }
    }

    /// The actor's next turn runs at another node, at once.
    fn go_elsewhere(&mut self) {
        if self.released.is_some_and(|released| released != self.stored) {
            self.wrong = Some("what is carried is not what its turns have made of it");
        }
        (self.seat, self.is_elsewhere, self.message) = (None, true, 2);
        self.begun[1] += 1;
        self.ended[1] += 1;
        self.stored += 1;
        self.ends += 1;
    }

    fn dial(&mut self, host: usize, drops: bool) {
        let before = self.hosts[host].link.take();
        let ended = before.as_ref().map(|link| link.session);
        if let Some(mut before) = before {
            if drops {
                before.seats.clear();
                before.running = None;
                before.to_host.clear();
            }
            (before.control_cut, before.lane_cut) = (true, true);
            self.hosts[host].before.push(before);
        }
        self.last_session += 1;
        let session = SessionId(self.last_session);
        let link = Link {
            session,
            pulse: Pulse::new(self.time(), Duration::ZERO),
            control_cut: false,
            lane_cut: false,
            control_seen: false,
            alive: None,
            dropped: false,
            lease: None,
            lane_lost: false,
            to_host: VecDeque::new(),
            to_node: VecDeque::new(),
            seats: BTreeMap::new(),
            running: None,
        };
        self.hosts[host].link = Some(link);
        self.control(ControlEvent::Connected { session });
        self.control(ControlEvent::Hello { session, ended, bounds: Bounds::default() });
        let offer = Offer { kind: "room".into(), versions: versions::Offer::FIRST, digest: "d".into() };
        self.control(ControlEvent::Offer { session, index: 0, offer, allowed: Ok(()), claimed: None });
        self.hosts[host].link.as_mut().expect("it was set").lane_cut = true;
    }

    /// A host begins or goes on with a turn of a seat.
    fn act(&mut self, session: SessionId, seat: Seat) {
        if self.seat != Some((session, seat)) {
            self.wrong = Some("a host acts for an actor that the node has given to another");
        }
    }

    /// What can make no difference any more.
    fn forget(&mut self) {
        let message = self.message;
        self.cookies.retain(|_, of| *of == message);
        let first = &mut self.hosts[FIRST];
        first.before.retain(|before| !before.to_node.is_empty() || before.running.is_some());
        if let Some(link) = &mut first.link {
            if link.control_cut {
                link.lease = None;
            }
            if link.control_seen {
                (link.alive, link.dropped) = (None, false);
            }
        }
    }

    /// Whether the host may act; if it may not, all that it has is gone.
    fn may_act(&mut self, host: usize, rules: HostRules) -> bool {
        let now = self.time();
        let Some(link) = &mut self.hosts[host].link else { return false };
        if rules.looks && !link.pulse.may_act(now) {
            link.seats.clear();
            link.running = None;
            link.to_host.clear();
            return false;
        }
        true
    }
}

impl World {
    /// The successor's steps.
    fn succeed(&self, state: &mut State) {
        let now = state.time();
        let link = state.hosts[SUCCESSOR].link.as_mut().expect("it stays");
        if link.pulse.due() <= now {
            let (session, number) = (link.session, link.pulse.send(now));
            state.control(ControlEvent::Alive { session, number });
            let link = state.hosts[SUCCESSOR].link.as_mut().expect("it stays");
            if let Some((number, lease)) = link.lease.take() {
                link.pulse.answered(number, lease);
            }
        }
        loop {
            let link = state.hosts[SUCCESSOR].link.as_mut().expect("it stays");
            let session = link.session;
            if let Some(frame) = link.to_node.pop_front() {
                self.node_reads(state, session, frame);
            } else if link.running.is_some() {
                self.ends(state, SUCCESSOR);
            } else if self.host_reads(state, SUCCESSOR).is_none() {
                return;
            }
        }
    }

    fn node_reads(&self, state: &mut State, session: SessionId, frame: ToNode) {
        match frame {
            ToNode::Activated(seat) => state.shard(LaneEvent::Activated { session, seat, is_ready: true }, 0),
            ToNode::Released(seat, value) => {
                if state.lanes.activation(session, seat).is_some() {
                    state.released = Some(value);
                }
                state.shard(LaneEvent::Released { session, seat }, 0);
            }
            ToNode::Ended(turn, value) => state.shard(LaneEvent::Ended { session, turn, stream: None }, value),
        }
    }

    fn host_reads(&self, state: &mut State, host: usize) -> Option<()> {
        let frame = state.hosts[host].link.as_mut()?.to_host.pop_front()?;
        if !state.may_act(host, self.host) {
            return Some(());
        }
        let link = state.hosts[host].link.as_mut()?;
        let session = link.session;
        let answer = match frame {
            ToHost::Activate(seat, value) => {
                // Rule or not, a host that finds an instance under the number keeps it.
                link.seats.entry(seat).or_insert(value);
                Some(ToNode::Activated(seat))
            }
            ToHost::Deactivate(seat) => {
                let value = link.seats.remove(&seat);
                if value.is_some() {
                    // The hook of its end.
                    state.act(session, seat);
                }
                value.map(|value| ToNode::Released(seat, value))
            }
            ToHost::Turn(turn, seat, message) => {
                link.running = Some((turn, seat));
                state.begun[message] += 1;
                state.act(session, seat);
                None
            }
        };
        let link = state.hosts[host].link.as_mut()?;
        if !link.lane_cut {
            link.to_node.extend(answer);
        }
        Some(())
    }

    fn ends(&self, state: &mut State, host: usize) -> Option<()> {
        state.hosts[host].link.as_ref()?.running?;
        if !state.may_act(host, self.host) {
            return Some(());
        }
        let link = state.hosts[host].link.as_mut()?;
        let (turn, seat) = link.running.take()?;
        let value = link.seats.get_mut(&seat)?;
        *value += 1;
        let (ended, session) = (ToNode::Ended(turn, *value), link.session);
        if !link.lane_cut {
            link.to_node.push_back(ended);
        }
        state.act(session, seat);
        Some(())
    }

    fn host_steps(&self, state: &State, host: usize, out: &mut Vec<Step>) {
        let one = &state.hosts[host];
        let can_dial = state.last_session < self.sessions;
        let Some(link) = &one.link else {
            return out.extend(can_dial.then_some(Step::Dial(host)));
        };
        let session = link.session;
        if !link.control_cut && link.alive.is_none() && link.pulse.due() <= state.time() {
            out.push(Step::Alive(host));
        }
        if link.lease.is_some() || link.lane_lost {
            out.push(Step::HostReadsControl(host));
        }
        if !link.to_host.is_empty() {
            out.push(Step::HostReadsLane(host));
        }
        if link.running.is_some() {
            out.push(Step::Ends(host));
        }
        if link.control_cut && can_dial {
            out.push(Step::Dial(host));
        }
        if link.lane_cut && !link.control_cut && state.lanes.may_join(session) {
            out.push(Step::Rejoin(host));
        }
        if !link.control_seen && (link.alive.is_some() || link.dropped) {
            out.push(Step::NodeReadsControl(host));
        }
        if !link.to_node.is_empty() {
            out.push(Step::NodeReadsLane(host));
        }
        if link.control_cut && !link.control_seen {
            out.push(Step::NodeSeesControl(host));
        }
        if link.lane_cut && !state.lanes.may_join(session) {
            out.push(Step::NodeSeesLane(host));
        }
        if state.faults < self.faults {
            out.extend((!link.control_cut).then_some(Step::CutControl(host)));
            out.extend((!link.lane_cut).then_some(Step::CutLane(host)));
            out.push(Step::Kill(host));
        }
        if self.drains && !state.has_drained && !link.control_cut {
            out.push(Step::Drain(host));
        }
    }
}

impl Model for World {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let settings =
            Settings { lease: LEASE, grace: Duration::from_secs(1_000), checks: self.checks, ..Settings::default() };
        let mut state = State {
            now: 0,
            sessions: Sessions::new(settings),
            lanes: Lanes::new(settings, 0),
            words: VecDeque::new(),
            reports: VecDeque::new(),
            hosts: vec![Host::default(); 2],
            last_session: 0,
            faults: 0,
            has_drained: false,
            seat: None,
            moves: self.moves,
            released: None,
            is_elsewhere: false,
            stored: 0,
            ends: 0,
            message: 0,
            cookies: BTreeMap::new(),
            last_cookie: 0,
            begun: [0; 2],
            ended: [0; 2],
            is_stale: false,
            wrong: None,
        };
        state.control(ControlEvent::NodeLease { until: Timestamp::NEVER });
        [FIRST, SUCCESSOR].into_iter().for_each(|host| state.dial(host, true));
        while let Some(word) = state.words.pop_front() {
            state.shard(LaneEvent::Word(word), 0);
        }
        for host in [FIRST, SUCCESSOR] {
            let link = state.hosts[host].link.as_mut().expect("it has dialed");
            link.lane_cut = false;
            let session = link.session;
            state.shard(LaneEvent::Joined { session }, 0);
        }
        state.shard(
            LaneEvent::Want { activation: ROOM, kind: "room".into(), wanted: versions::FIRST, is_patient: false },
            0,
        );
        state.begin(0);
        vec![state]
    }

    fn actions(&self, state: &State, out: &mut Vec<Step>) {
        if state.wrong.is_some() {
            return;
        }
        if state.now < self.seconds {
            out.push(Step::Second);
        }
        if state.sessions.deadline().is_some_and(|deadline| deadline <= state.time()) {
            out.push(Step::NodeLooks);
        }
        out.extend((!state.words.is_empty()).then_some(Step::ShardHears));
        out.extend((!state.reports.is_empty()).then_some(Step::ControlHears));
        self.host_steps(state, FIRST, out);
        if state.hosts[FIRST].before.iter().any(|before| !before.to_node.is_empty()) {
            out.push(Step::NodeReadsBefore(FIRST));
        }
        if state.hosts[FIRST].before.iter().any(|before| before.running.is_some()) {
            out.push(Step::EndsBefore(FIRST));
        }
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = last.clone();
        match step {
            Step::Second => state.now += 1,
            Step::NodeLooks => state.control(ControlEvent::Tick),
            Step::ShardHears => {
                let word = state.words.pop_front()?;
                state.shard(LaneEvent::Word(word), 0);
            }
            Step::ControlHears => {
                let report = state.reports.pop_front()?;
                state.control(report);
            }
            Step::Dial(host) => state.dial(host, self.host.drops),
            Step::Alive(host) => {
                let now = state.time();
                let link = state.hosts[host].link.as_mut()?;
                link.alive = Some(link.pulse.send(now));
            }
            Step::NodeReadsControl(host) => {
                let link = state.hosts[host].link.as_mut()?;
                let session = link.session;
                if std::mem::take(&mut link.dropped) {
                    state.control(ControlEvent::LaneDropped { session, shard: SHARD });
                } else {
                    let number = link.alive.take()?;
                    state.control(ControlEvent::Alive { session, number });
                }
            }
            Step::HostReadsControl(host) => {
                let now = state.time();
                let link = state.hosts[host].link.as_mut()?;
                if let Some((number, lease)) = link.lease.take() {
                    if self.host.from_sent {
                        link.pulse.answered(number, lease);
                    } else {
                        link.pulse = Pulse::new(now, lease);
                    }
                } else if std::mem::take(&mut link.lane_lost) {
                    link.seats.clear();
                    link.running = None;
                    link.to_host.clear();
                    link.lane_cut = true;
                    link.dropped = !link.control_cut;
                }
            }
            Step::HostReadsLane(host) => self.host_reads(&mut state, host)?,
            Step::NodeReadsLane(host) => {
                let link = state.hosts[host].link.as_mut()?;
                let (session, frame) = (link.session, link.to_node.pop_front()?);
                self.node_reads(&mut state, session, frame);
            }
            Step::NodeReadsBefore(host) => {
                let before = state.hosts[host].before.iter_mut().find(|before| !before.to_node.is_empty())?;
                let (session, frame) = (before.session, before.to_node.pop_front()?);
                self.node_reads(&mut state, session, frame);
            }
            Step::Ends(host) => self.ends(&mut state, host)?,
            Step::EndsBefore(host) => {
                let before = state.hosts[host].before.iter_mut().find(|before| before.running.is_some())?;
                let ((_, seat), session) = (before.running.take()?, before.session);
                state.act(session, seat);
            }
            Step::CutControl(host) => {
                state.faults += 1;
                state.hosts[host].link.as_mut()?.control_cut = true;
            }
            Step::CutLane(host) => {
                state.faults += 1;
                state.hosts[host].link.as_mut()?.lane_cut = true;
            }
            Step::NodeSeesControl(host) => {
                let link = state.hosts[host].link.as_mut()?;
                link.control_seen = true;
                (link.alive, link.dropped) = (None, false);
                let session = link.session;
                state.control(ControlEvent::Broken { session });
            }
            Step::NodeSeesLane(host) => {
                let link = state.hosts[host].link.as_mut()?;
                link.to_node.clear();
                let session = link.session;
                state.shard(LaneEvent::Broke { session }, 0);
            }
            Step::Rejoin(host) => {
                let link = state.hosts[host].link.as_mut()?;
                link.lane_cut = false;
                link.to_host.clear();
                link.to_node.clear();
                let session = link.session;
                state.shard(LaneEvent::Joined { session }, 0);
            }
            Step::Kill(host) => {
                state.faults += 1;
                let mut before = state.hosts[host].link.take()?;
                let session = before.session;
                before.seats.clear();
                before.running = None;
                before.to_host.clear();
                state.hosts[host].before.push(before);
                state.control(ControlEvent::ProcessGone { session });
            }
            Step::Drain(host) => {
                state.has_drained = true;
                let session = state.hosts[host].link.as_ref()?.session;
                state.control(ControlEvent::Drain { session });
            }
        }
        self.succeed(&mut state);
        state.forget();
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("of two hosts one acts", |_, state: &State| state.wrong.is_none()),
            Property::always("no total goes back", |_, state: &State| state.stored == state.ends),
            Property::always("what may not run again has run once", |_, state: &State| state.begun[0] <= 1),
            Property::always("each message counts once", |_, state: &State| {
                state.ended.iter().all(|ended| *ended <= 1) && !state.is_stale
            }),
            Property::sometimes("both count after a fault", |world: &World, state: &State| {
                state.ended == [1, 1] && state.faults == world.faults
            }),
            Property::sometimes("the actor has moved", |_, state: &State| {
                let is_at_another = state.seat.is_some_and(|(session, _)| session != SessionId(1));
                (state.is_elsewhere || is_at_another) && state.ended == [1, 1]
            }),
        ]
    }
}

fn world() -> World {
    let host = HostRules { looks: true, drops: true, from_sent: true };
    World { checks: Checks::default(), host, faults: 2, seconds: 3, sessions: 3, drains: false, moves: false }
}

#[track_caller]
fn exhaust(world: World) {
    let checker = world.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    println!("{} states", checker.unique_state_count());
    checker.assert_properties();
    assert!(checker.is_done(), "not all states were looked at");
}

/// Without a rule, `property` does not hold.
#[track_caller]
fn breaks(property: &'static str, world: World) {
    let checker = world.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    println!("{} states, {:?}", checker.unique_state_count(), checker.discoveries().keys());
    let found = checker.discovery(property);
    assert!(found.is_some(), "{property}: holds in {} states", checker.unique_state_count());
}

/// What one fault, or time alone, is enough for.
fn one_fault() -> World {
    World { faults: 1, ..world() }
}

fn without(off: impl Fn(&mut Checks)) -> World {
    let mut world = one_fault();
    off(&mut world.checks);
    world
}

#[test]
fn an_actor_is_at_one_host_and_its_messages_count_once() {
    exhaust(world());
    exhaust(World { faults: 3, seconds: 2, ..world() });
}

#[test]
fn a_seat_given_away_while_its_host_may_act_is_sat_in_twice() {
    breaks("of two hosts one acts", without(|checks| checks.held = false));
}

#[test]
fn a_frozen_host_that_does_not_look_at_its_lease_acts_beside_its_successor() {
    breaks("of two hosts one acts", World { host: HostRules { looks: false, ..world().host }, ..one_fault() });
}

#[test]
fn what_a_lost_host_has_said_would_be_saved_over_what_is_newer() {
    breaks("each message counts once", without(|checks| checks.live = false));
}

#[test]
fn a_host_that_dials_again_with_its_instances_runs_beside_its_successor() {
    breaks("of two hosts one acts", World { host: HostRules { drops: false, ..world().host }, ..one_fault() });
}

#[test]
fn a_lease_that_counts_from_its_arrival_is_too_long() {
    breaks("of two hosts one acts", World { host: HostRules { from_sent: false, ..world().host }, ..one_fault() });
}

#[test]
fn a_lost_turn_that_may_not_run_again_would() {
    breaks("what may not run again has run once", without(|checks| checks.again = false));
}

#[test]
fn a_draining_host_hands_its_actor_on() {
    exhaust(World { drains: true, faults: 1, ..world() });
}

#[test]
fn an_actor_goes_to_another_node_when_its_host_acts_for_it_no_more() {
    exhaust(World { moves: true, ..world() });
}

#[test]
fn an_actor_that_goes_to_another_node_while_its_lost_host_may_act_is_two() {
    let without = without(|checks| checks.held = false);
    breaks("of two hosts one acts", World { moves: true, ..without });
}

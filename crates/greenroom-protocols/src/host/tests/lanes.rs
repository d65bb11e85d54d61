//! Seats and turns of one shard.

mod moves;

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const A: SessionId = SessionId(1);
const B: SessionId = SessionId(2);
const ROOM: Activation = Activation(7);

/// A shard that two hosts have joined; each offers `room` in the version given, for callers of the first version on.
struct World {
    lanes: Lanes,
    ms: u64,
}

impl World {
    fn new(settings: Settings, hosts: &[(SessionId, u16)]) -> Self {
        let mut world = Self { lanes: Lanes::new(settings, 0), ms: 0 };
        for (session, version) in hosts {
            world.joins(*session, *version, Bounds::default());
        }
        world
    }

    fn joins(&mut self, session: SessionId, version: u16, bounds: Bounds) -> Vec<LaneAction> {
        self.tell(LaneEvent::Word(Word::Open { session, bounds }));
        let offer = offer("room", version, 1, "aa");
        self.tell(LaneEvent::Word(Word::Offers { session, index: 0, offer }));
        self.tell(LaneEvent::Joined { session })
    }

    fn tell(&mut self, event: LaneEvent) -> Vec<LaneAction> {
        let mut out = Vec::new();
        self.lanes.handle(at(self.ms), event, &mut out);
        out
    }

    /// Wants a seat, and has it made ready.
    fn seated(&mut self, activation: Activation) -> (SessionId, Seat) {
        let actions = self.tell(LaneEvent::Want { activation, kind: "room".into(), wanted: 1, is_patient: false });
        let [LaneAction::Activate { session, seat, .. }] = actions[..] else { panic!("{actions:?}") };
        self.ready(session, seat);
        (session, seat)
    }

    fn ready(&mut self, session: SessionId, seat: Seat) -> Vec<LaneAction> {
        self.tell(LaneEvent::Activated { session, seat, is_ready: true })
    }

    fn begin(&mut self, cookie: u64, runs_again: bool) -> Vec<LaneAction> {
        self.begin_at(ROOM, cookie, runs_again)
    }

    fn begin_at(&mut self, activation: Activation, cookie: u64, runs_again: bool) -> Vec<LaneAction> {
        self.tell(LaneEvent::Begin { activation, cookie: Cookie(cookie), runs_again, len: 10 })
    }

    fn ends(&mut self, session: SessionId, turn: u64) -> Vec<LaneAction> {
        self.tell(LaneEvent::Ended { session, turn: TurnNumber(turn), stream: None })
    }

    fn word(&mut self, word: Word) -> Vec<LaneAction> {
        self.tell(LaneEvent::Word(word))
    }
}

fn fail(cookie: u64, fate: Fate) -> LaneAction {
    LaneAction::Fail { cookie: Cookie(cookie), fate }
}

fn send(session: SessionId, seat: u64, turn: u64, cookie: u64) -> LaneAction {
    LaneAction::Send { session, seat: Seat(seat), turn: TurnNumber(turn), cookie: Cookie(cookie) }
}

fn activate(session: SessionId, seat: u64) -> LaneAction {
    LaneAction::Activate { session, seat: Seat(seat), activation: ROOM, offer: 0 }
}

#[test]
fn a_turn_waits_for_its_seat_is_sent_and_ends() {
    let mut world = World::new(Settings::default(), &[(A, 1)]);
    let actions = world.tell(LaneEvent::Want { activation: ROOM, kind: "room".into(), wanted: 1, is_patient: false });
    assert_eq!(actions, [activate(A, 1)]);
    assert_eq!(world.begin(1, false), []);
    assert_eq!(world.ready(A, Seat(1)), [LaneAction::Ready { activation: ROOM }, send(A, 1, 1, 1)]);
    assert_eq!(world.ends(A, 1), [LaneAction::End { cookie: Cookie(1) }]);
    assert_eq!(world.begin(2, false), [send(A, 1, 2, 2)]);
}

#[test]
fn l1_a_seat_is_held_until_its_host_can_act_no_more() {
    let after_loss = |settings| {
        let mut world = World::new(settings, &[(A, 1), (B, 1)]);
        let (session, _) = world.seated(ROOM);
        world.begin(1, true);
        world.tell(LaneEvent::Broke { session })
    };
    let held = after_loss(Settings::default());
    let unseated = LaneAction::Unseated { activation: ROOM };
    assert_eq!(held, [LaneAction::LaneBroken { session: A }, unseated, fail(1, Fate::Again)]);
    let mut early = World::new(with(|checks| checks.held = false), &[(A, 1), (B, 1)]);
    early.seated(ROOM);
    early.begin(1, true);
    early.tell(LaneEvent::Broke { session: A });
    assert_eq!(early.begin(2, true), [activate(B, 1)], "the first host still has the turn in its buffer");
    for word in [Word::Dropped { session: A, shard: Shard(0) }, Word::Over { session: A }] {
        let mut world = World::new(Settings::default(), &[(A, 1), (B, 1)]);
        world.seated(ROOM);
        world.tell(LaneEvent::Broke { session: A });
        assert_eq!(world.begin(1, true), []);
        assert!(!world.lanes.has_dropped(A), "nothing tells yet that the host is alive");
        let is_alive = matches!(word, Word::Dropped { .. });
        assert_eq!(world.word(word), [activate(B, 1)]);
        assert_eq!(world.lanes.has_dropped(A), is_alive);
    }
}

#[test]
fn l1_a_lost_session_holds_its_seats_too() {
    let mut world = World::new(Settings::default(), &[(A, 1), (B, 1)]);
    world.seated(ROOM);
    let lost = world.word(Word::Lost { session: A });
    let close = LaneAction::CloseLane { session: A, fault: None };
    assert_eq!(lost, [close, LaneAction::Unseated { activation: ROOM }]);
    assert_eq!(world.begin(1, true), []);
    assert_eq!(world.word(Word::Over { session: A }), [activate(B, 1)]);
}

#[test]
fn what_nobody_calls_gets_its_next_seat_with_its_next_turn() {
    let mut world = World::new(Settings::default(), &[(A, 1)]);
    world.seated(ROOM);
    world.word(Word::Lost { session: A });
    assert_eq!(world.word(Word::Over { session: A }), []);
    assert_eq!(world.joins(B, 1, Bounds::default()), [], "a host that comes back is not asked for all at once");
    assert_eq!(world.lanes.deadline(), None, "and nothing is given up for that nobody waits");
    assert_eq!(world.begin(1, false), [activate(B, 1)]);
    let mut world = World::new(Settings::default(), &[(A, 1)]);
    world.tell(LaneEvent::Want { activation: ROOM, kind: "room".into(), wanted: 1, is_patient: false });
    world.word(Word::Over { session: A });
    assert_eq!(world.joins(B, 1, Bounds::default()), [activate(B, 1)], "but what is wanted is made");
}

#[test]
fn l3_what_a_lost_host_says_does_not_count() {
    let late = |settings| {
        let mut world = World::new(settings, &[(A, 1)]);
        world.seated(ROOM);
        world.begin(1, true);
        world.word(Word::Lost { session: A });
        world.ends(A, 1)
    };
    assert_eq!(late(Settings::default()), []);
    assert_eq!(late(with(|checks| checks.live = false)), [LaneAction::End { cookie: Cookie(1) }], "it is saved twice");
}

#[test]
fn l7_numbers_rise_over_all_lanes_of_a_session() {
    let numbers = |settings| {
        let mut world = World::new(settings, &[(A, 1)]);
        world.seated(ROOM);
        world.begin(1, true);
        world.tell(LaneEvent::Broke { session: A });
        assert!(!world.lanes.may_join(A), "the old seats are not dropped yet");
        world.word(Word::Dropped { session: A, shard: Shard(0) });
        world.tell(LaneEvent::Joined { session: A });
        let begun = world.begin(2, true);
        let [LaneAction::Activate { seat, .. }] = begun[..] else { panic!("{begun:?}") };
        let ready = world.ready(A, seat);
        let [_, LaneAction::Send { turn, .. }] = ready[..] else { panic!("{ready:?}") };
        (seat.0, turn.0)
    };
    assert_eq!(numbers(Settings::default()), (2, 2));
    assert_eq!(numbers(with(|checks| checks.rising = false)).0, 1, "the host finds the old instance under it");
}

#[test]
fn l8_a_turn_that_waits_gives_its_place_back() {
    let bounds = Bounds { turns_max: 1, bytes_max: 10, ..Bounds::default() };
    let called = |settings| {
        let mut world = World::new(settings, &[]);
        world.joins(A, 1, bounds);
        world.seated(ROOM);
        world.seated(Activation(8));
        assert_eq!(world.begin(1, false), [send(A, 1, 1, 1)]);
        assert_eq!(world.begin_at(Activation(8), 2, false), [], "there is room for one");
        (world.tell(LaneEvent::Waits { cookie: Cookie(1) }), world)
    };
    let (sent, mut world) = called(Settings::default());
    assert_eq!(sent, [send(A, 2, 2, 2)]);
    world.tell(LaneEvent::GoesOn { cookie: Cookie(1) });
    assert_eq!(world.lanes.load(A), (2, 2, 2));
    let (stuck, _) = called(with(|checks| checks.waits = false));
    assert_eq!(stuck, [], "none can begin that the first waits for");
}

#[test]
fn l11_a_turn_that_was_dropped_is_named_in_vain_and_its_end_does_not_count() {
    let mut world = World::new(Settings::default(), &[(A, 1)]);
    world.seated(ROOM);
    world.begin(1, true);
    assert_eq!(world.lanes.turn(A, TurnNumber(1)), Named::Live(Cookie(1)));
    let left = world.tell(LaneEvent::Leave { activation: ROOM, is_abandon: true });
    let deactivate =
        LaneAction::Deactivate { session: A, seat: Seat(1), activation: ROOM, is_carry: false, is_abandon: true };
    assert_eq!(left, [fail(1, Fate::Abandoned), deactivate]);
    assert_eq!(world.lanes.turn(A, TurnNumber(1)), Named::Gone);
    assert_eq!(world.ends(A, 1), []);
    let released = world.tell(LaneEvent::Released { session: A, seat: Seat(1) });
    assert_eq!(released, [LaneAction::Left { activation: ROOM }]);
    assert!(world.ends(A, 1).contains(&LaneAction::CloseLane { session: A, fault: Some(Fault::Turn) }));
}

#[test]
fn l15_of_lost_turns_only_those_run_again_that_may() {
    let fates = |settings| {
        let mut world = World::new(settings, &[(A, 1)]);
        world.seated(ROOM);
        world.begin(1, true);
        world.begin(2, false);
        world.word(Word::Lost { session: A })
    };
    let lost = fates(Settings::default());
    assert!(lost.contains(&fail(1, Fate::Again)) && lost.contains(&fail(2, Fate::Unknown)), "{lost:?}");
    let charged_twice = fates(with(|checks| checks.again = false));
    assert!(charged_twice.contains(&fail(2, Fate::Again)));
}

#[test]
fn l16_what_was_not_sent_waits_for_the_next_host() {
    let lost = |settings| {
        let mut world = World::new(settings, &[]);
        world.joins(A, 1, Bounds { turns_max: 1, ..Bounds::default() });
        world.seated(ROOM);
        world.begin(1, true);
        world.begin(2, true);
        world.begin(3, true);
        let lost = world.word(Word::Lost { session: A });
        (lost, world)
    };
    let (fates, mut world) = lost(Settings::default());
    assert!(!fates.iter().any(|action| matches!(action, LaneAction::Fail { cookie: Cookie(2 | 3), .. })), "{fates:?}");
    world.word(Word::Over { session: A });
    world.joins(B, 1, Bounds::default());
    let sent = world.ready(B, Seat(1));
    assert_eq!(sent[1..], [send(B, 1, 1, 2), send(B, 1, 2, 3)], "in their order");
    let (tried, _) = lost(with(|checks| checks.unsent = false));
    assert!(tried.contains(&fail(2, Fate::Unknown)), "a try is counted of what never began");
}

#[test]
fn l16_without_a_host_nothing_begins_and_that_is_said() {
    let mut world = World::new(Settings::default(), &[]);
    assert_eq!(world.tell(LaneEvent::Want { activation: ROOM, kind: "room".into(), wanted: 1, is_patient: false }), []);
    world.begin(1, true);
    assert_eq!(world.lanes.deadline(), Some(at(8_000)));
    world.ms = 8_000;
    assert_eq!(
        world.tell(LaneEvent::Tick),
        [fail(1, Fate::NoHost), LaneAction::NoHost { activation: ROOM, is_full: false }]
    );
    assert_eq!(world.lanes.deadline(), None);
}

#[test]
fn l16_who_is_patient_waits_for_a_host_that_comes_or_has_room_however_late() {
    let mut world = World::new(Settings::default(), &[]);
    let want = LaneEvent::Want { activation: ROOM, kind: "room".into(), wanted: 1, is_patient: true };
    assert_eq!(world.tell(want), []);
    assert_eq!(world.begin(1, true), []);
    world.ms = 3_600_000;
    assert_eq!((world.tell(LaneEvent::Tick), world.lanes.deadline()), (vec![], None));
    assert_eq!(world.joins(A, 1, Bounds { seats_max: 0, ..Bounds::default() }), []);
    assert_eq!(world.joins(B, 1, Bounds::default()), [activate(B, 1)]);
    world.ready(B, Seat(1));
    world.word(Word::Lost { session: B });
    assert_eq!(world.word(Word::Over { session: B }), []);
    world.ms = 7_200_000;
    assert_eq!((world.tell(LaneEvent::Tick), world.lanes.deadline()), (vec![], None));
}

#[test]
fn l16_who_is_patient_gets_a_seat_as_soon_as_one_is_free() {
    let mut world = World::new(Settings::default(), &[]);
    world.joins(A, 1, Bounds { seats_max: 1, ..Bounds::default() });
    let (session, seat) = world.seated(ROOM);
    let other = Activation(8);
    let want = LaneEvent::Want { activation: other, kind: "room".into(), wanted: 1, is_patient: true };
    assert_eq!(world.tell(want), [], "the only seat is taken");
    world.tell(LaneEvent::Leave { activation: ROOM, is_abandon: false });
    let out = world.tell(LaneEvent::Released { session, seat });
    let next = LaneAction::Activate { session: A, seat: Seat(2), activation: other, offer: 0 };
    assert_eq!(out, [next, LaneAction::Left { activation: ROOM }]);
}

#[test]
fn l16_who_is_patient_waits_for_a_place_on_a_crowded_lane() {
    let mut world = World::new(Settings::default(), &[]);
    world.joins(A, 1, Bounds { turns_max: 1, ..Bounds::default() });
    let want = LaneEvent::Want { activation: ROOM, kind: "room".into(), wanted: 1, is_patient: true };
    assert_eq!(world.tell(want), [activate(A, 1)]);
    world.ready(A, Seat(1));
    let sent: Vec<_> = (1..=18).flat_map(|cookie| world.begin(cookie, true)).collect();
    assert_eq!(sent, [send(A, 1, 1, 1)], "the others wait, and no partition is recovered");
    let after: Vec<_> = (1..=17).flat_map(|turn| world.ends(A, turn)).collect();
    assert_eq!(after.last(), Some(&send(A, 1, 18, 18)));
}

#[test]
fn l18_a_request_names_turns_of_its_own_lane_only() {
    let named = |settings| {
        let mut world = World::new(settings, &[(A, 1), (B, 1)]);
        world.seated(ROOM);
        world.begin(1, false);
        world.lanes.turn(B, TurnNumber(1))
    };
    assert_eq!(named(Settings::default()), Named::Gone);
    let stolen = named(with(|checks| checks.own_turns = false));
    assert_eq!(stolen, Named::Live(Cookie(1)), "the call has the rights of another host's turn");
}

#[test]
fn l19_streams_end_with_their_seat() {
    let lost = |settings| {
        let mut world = World::new(settings, &[(A, 1)]);
        world.seated(ROOM);
        world.begin(1, false);
        world.tell(LaneEvent::Ended { session: A, turn: TurnNumber(1), stream: Some(Stream(5)) });
        world.word(Word::Lost { session: A })
    };
    let ended = LaneAction::StreamLost { session: A, stream: Stream(5) };
    assert!(lost(Settings::default()).contains(&ended));
    assert!(!lost(with(|checks| checks.streams = false)).contains(&ended), "its consumer hangs");
}

#[test]
fn l19_a_lane_has_no_more_streams_than_it_may() {
    let mut world = World::new(Settings::default(), &[(A, 1)]);
    world.seated(ROOM);
    for number in 1..=STREAMS_MAX as u64 + 1 {
        world.begin(number, false);
        let stream = Some(Stream(number));
        let out = world.tell(LaneEvent::Ended { session: A, turn: TurnNumber(number), stream });
        let is_over = number > STREAMS_MAX as u64;
        assert_eq!(out.contains(&LaneAction::CloseLane { session: A, fault: Some(Fault::Stream) }), is_over);
    }
}

#[test]
fn l23_an_actor_goes_to_the_newer_version_at_a_turn_boundary_and_never_back() {
    let moved = |settings| {
        let mut world = World::new(settings, &[(A, 1)]);
        world.seated(ROOM);
        world.begin(1, false);
        assert_eq!(world.joins(B, 2, Bounds::default()), [], "a turn runs");
        world.begin(2, false);
        (world.ends(A, 1), world)
    };
    let (ended, mut world) = moved(Settings::default());
    let deactivate =
        LaneAction::Deactivate { session: A, seat: Seat(1), activation: ROOM, is_carry: true, is_abandon: false };
    assert_eq!(ended, [LaneAction::End { cookie: Cookie(1) }, deactivate]);
    let released = world.tell(LaneEvent::Released { session: A, seat: Seat(1) });
    assert_eq!(released, [activate(B, 1)]);
    let ready = world.ready(B, Seat(1));
    assert_eq!(ready[1], send(B, 1, 1, 2));
    world.word(Word::Lost { session: B });
    assert_eq!(world.word(Word::Over { session: B }), [], "the older version is there, and is not taken");
    let (stays, mut world) = moved(with(|checks| checks.versions = false));
    assert_eq!(stays, [LaneAction::End { cookie: Cookie(1) }], "two versions take turns");
    world.word(Word::Lost { session: A });
}

#[test]
fn l23_callers_that_the_newer_version_does_not_serve_keep_the_older_one() {
    let mut world = World::new(Settings::default(), &[(A, 1)]);
    world.seated(ROOM);
    world.word(Word::Open { session: B, bounds: Bounds::default() });
    let newer = offer("room", 2, 2, "bb");
    world.word(Word::Offers { session: B, index: 0, offer: newer });
    assert_eq!(world.tell(LaneEvent::Joined { session: B }), []);
    let other = Activation(8);
    let wants = world.tell(LaneEvent::Want { activation: other, kind: "room".into(), wanted: 2, is_patient: false });
    assert!(matches!(wants[..], [LaneAction::Activate { session: B, .. }]));
}

#[test]
fn a_draining_host_is_left_seat_by_seat_at_turn_boundaries_with_what_is_carried() {
    let mut world = World::new(Settings::default(), &[(A, 1)]);
    (0..100).for_each(|number| _ = world.seated(Activation(number)));
    world.begin_at(Activation(0), 1, false);
    let left = world.word(Word::Draining { session: A });
    assert_eq!(left.len(), LEAVING_MAX);
    assert!(
        left.iter().all(|action| matches!(action, LaneAction::Deactivate { is_carry: true, is_abandon: false, .. }))
    );
    world.joins(B, 1, Bounds::default());
    let ended = world.ends(A, 1);
    assert!(matches!(ended[..], [LaneAction::End { .. }, LaneAction::Deactivate { activation: Activation(0), .. }]));
    for seat in 1..=100 {
        let event = LaneEvent::Released { session: A, seat: Seat(seat) };
        let released = world.tell(event);
        let drained = released.contains(&LaneAction::Drained { session: A });
        assert_eq!(drained, seat == 100, "{seat}: {released:?}");
        let begun = world.begin_at(Activation(seat - 1), 1 + seat, false);
        assert!(matches!(begun[..], [LaneAction::Activate { session: B, .. }]), "{seat}: {begun:?}");
    }
    assert_eq!(world.lanes.load(A), (0, 0, 0));
    assert_eq!(
        World::new(Settings::default(), &[(A, 1)]).word(Word::Draining { session: A }),
        [LaneAction::Drained { session: A }]
    );
}

#[test]
fn a_turn_that_comes_while_its_seat_is_left_runs_in_the_next_one() {
    let mut world = World::new(Settings::default(), &[(A, 1), (B, 1)]);
    world.seated(ROOM);
    world.word(Word::Draining { session: A });
    assert_eq!(world.begin(1, false), []);
    world.tell(LaneEvent::Released { session: A, seat: Seat(1) });
    assert_eq!(world.ready(B, Seat(1))[1], send(B, 1, 1, 1));
}

#[test]
fn seats_go_to_the_less_full_host_by_their_weights() {
    let mut world = World::new(Settings::default(), &[]);
    world.joins(A, 1, Bounds { weight: 3, ..Bounds::default() });
    world.joins(B, 1, Bounds { seats_max: 20, ..Bounds::default() });
    (0..40).for_each(|number| _ = world.seated(Activation(number)));
    assert_eq!((world.lanes.load(A).0, world.lanes.load(B).0), (30, 10));
    (40..100).for_each(|number| _ = world.seated(Activation(number)));
    assert_eq!((world.lanes.load(A).0, world.lanes.load(B).0), (80, 20), "who is full gets no more");
}

#[test]
fn what_finds_all_hosts_full_is_overloaded() {
    let mut world = World::new(Settings::default(), &[]);
    world.joins(A, 1, Bounds { seats_max: 0, ..Bounds::default() });
    let want = LaneEvent::Want { activation: ROOM, kind: "room".into(), wanted: 1, is_patient: false };
    let full = LaneAction::NoHost { activation: ROOM, is_full: true };
    let refused = world.tell(want);
    assert_eq!(refused, std::slice::from_ref(&full));
    world.joins(B, 1, Bounds { seats_max: 1, ..Bounds::default() });
    world.seated(ROOM);
    world.word(Word::Over { session: B });
    assert_eq!(world.begin(1, false), [fail(1, Fate::Overloaded), full]);
}

#[test]
fn more_open_turns_than_a_lane_may_have_are_refused() {
    let mut world = World::new(Settings::default(), &[]);
    world.joins(A, 1, Bounds { turns_max: 1, ..Bounds::default() });
    world.seated(ROOM);
    let fates: Vec<_> = (1..=18).flat_map(|cookie| world.begin(cookie, false)).collect();
    assert_eq!(fates, [send(A, 1, 1, 1), fail(17, Fate::Overloaded), fail(18, Fate::Overloaded)]);
    assert_eq!(world.tell(LaneEvent::Cancel { cookie: Cookie(2) }), [fail(2, Fate::Cancelled)]);
    let cancel = LaneAction::CancelTurn { session: A, turn: TurnNumber(1) };
    assert_eq!(world.tell(LaneEvent::Cancel { cookie: Cookie(1) }), [cancel]);
    assert_eq!(world.ends(A, 1)[1], send(A, 1, 2, 3), "who has given up is passed over");
}

#[test]
fn a_host_that_names_what_is_not_there_loses_its_lane() {
    let events = [
        LaneEvent::Activated { session: A, seat: Seat(9), is_ready: true },
        LaneEvent::Activated { session: A, seat: Seat(1), is_ready: true },
        LaneEvent::Released { session: A, seat: Seat(1) },
        LaneEvent::Ended { session: A, turn: TurnNumber(9), stream: None },
    ];
    for event in events {
        let mut world = World::new(Settings::default(), &[(A, 1)]);
        world.seated(ROOM);
        let out = world.tell(event.clone());
        assert!(matches!(out[0], LaneAction::CloseLane { fault: Some(_), .. }), "{event:?}: {out:?}");
        assert_eq!(out[1..], [LaneAction::LaneBroken { session: A }, LaneAction::Unseated { activation: ROOM }]);
    }
}

#[test]
fn an_instance_that_cannot_be_made_frees_its_seat() {
    let mut world = World::new(Settings::default(), &[(A, 1)]);
    world.tell(LaneEvent::Want { activation: ROOM, kind: "room".into(), wanted: 1, is_patient: false });
    world.begin(1, false);
    let out = world.tell(LaneEvent::Activated { session: A, seat: Seat(1), is_ready: false });
    assert_eq!(out, [fail(1, Fate::Unseated), LaneAction::NotMade { activation: ROOM }]);
    assert_eq!(world.seated(ROOM), (A, Seat(2)), "and it may be wanted again");
}

#[test]
fn a_host_that_dies_while_it_makes_a_reliable_activation_is_counted_and_one_that_lives_is_not() {
    let want = |is_patient| LaneEvent::Want { activation: ROOM, kind: "room".into(), wanted: 1, is_patient };
    let mut world = World::new(Settings::default(), &[(A, 1), (B, 1)]);
    world.tell(want(true));
    world.begin(1, true);
    world.word(Word::Lost { session: A });
    let out = world.word(Word::Over { session: A });
    assert_eq!(out, [fail(1, Fate::Unseated), LaneAction::NotMade { activation: ROOM }], "its partition counts");
    world.tell(want(true));
    assert_eq!(world.tell(LaneEvent::Broke { session: B })[1..], [LaneAction::Unseated { activation: ROOM }]);
    let out = world.word(Word::Dropped { session: B, shard: Shard(0) });
    assert!(!out.contains(&LaneAction::NotMade { activation: ROOM }), "the host has not died: {out:?}");
    let mut world = World::new(Settings::default(), &[(A, 1), (B, 1)]);
    world.tell(want(false));
    let out = world.word(Word::Over { session: A });
    assert_eq!(out[1..], [activate(B, 1)], "callers of other kinds wait for the next host");
}

#[test]
fn an_activation_leaves_wherever_it_is() {
    let leave = LaneEvent::Leave { activation: ROOM, is_abandon: false };
    let mut world = World::new(Settings::default(), &[]);
    world.tell(LaneEvent::Want { activation: ROOM, kind: "room".into(), wanted: 1, is_patient: false });
    world.begin(1, false);
    assert_eq!(world.tell(leave.clone()), [fail(1, Fate::Unseated), LaneAction::Left { activation: ROOM }]);
    world.joins(A, 1, Bounds::default());
    world.seated(ROOM);
    world.begin(2, false);
    assert_eq!(world.tell(leave.clone()), [], "a turn runs");
    assert_eq!(world.begin(3, false), [fail(3, Fate::Unseated)]);
    world.word(Word::Lost { session: A });
    assert_eq!(world.word(Word::Over { session: A }), [LaneAction::Left { activation: ROOM }], "not before it is free");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_turn_takes_room_as_long_as_none_of_its_requests_is_open(steps in proptest::collection::vec((0u64..3, 0u8..5), 1..40)) {
        let mut world = World::new(Settings::default(), &[(A, 1)]);
        for turn in 0..3 {
            world.seated(Activation(turn));
            world.begin_at(Activation(turn), turn, false);
        }
        let mut requests: BTreeMap<u64, u32> = (0..3).map(|turn| (turn, 0)).collect();
        for (turn, step) in steps {
            let Some(open) = requests.get_mut(&turn) else { continue };
            match step {
                0 | 1 => {
                    *open += 1;
                    world.tell(LaneEvent::Waits { cookie: Cookie(turn) });
                }
                2 | 3 => {
                    *open = open.saturating_sub(1);
                    world.tell(LaneEvent::GoesOn { cookie: Cookie(turn) });
                }
                _ => {
                    requests.remove(&turn);
                    world.ends(A, turn + 1);
                }
            }
            let (_, running, _) = world.lanes.load(A);
            prop_assert_eq!(running, requests.values().filter(|open| **open == 0).count());
        }
    }
}

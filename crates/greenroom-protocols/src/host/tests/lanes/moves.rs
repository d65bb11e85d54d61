//! Activations that leave their seats with what they hold, to go to another node.

use super::*;

const CARRY: LaneEvent = LaneEvent::Carry { activation: ROOM };
const CARRIED: LaneAction = LaneAction::Carried { activation: ROOM };

fn deactivate(session: SessionId, is_carry: bool) -> LaneAction {
    LaneAction::Deactivate { session, seat: Seat(1), activation: ROOM, is_carry, is_abandon: false }
}

#[test]
fn an_activation_carries_once_its_turn_is_over_and_may_stay_after_all() {
    let mut world = World::new(Settings::default(), &[(A, 1)]);
    world.seated(ROOM);
    world.begin(1, false);
    assert_eq!(world.tell(CARRY), [], "a turn runs");
    assert_eq!(world.ends(A, 1), [LaneAction::End { cookie: Cookie(1) }, deactivate(A, true)]);
    let released = LaneEvent::Released { session: A, seat: Seat(1) };
    assert_eq!(world.tell(released), [CARRIED]);
    // It has no seat, and carries once more what it has; then a turn comes, and it is given another.
    assert_eq!(world.tell(CARRY), [CARRIED]);
    assert_eq!(world.begin(2, false), [activate(A, 2)]);
    assert_eq!(world.ready(A, Seat(2))[1], send(A, 2, 2, 2), "and nothing of the wish is left");
}

#[test]
fn an_activation_that_has_carried_leaves_for_good() {
    let mut world = World::new(Settings::default(), &[(A, 1)]);
    world.seated(ROOM);
    assert_eq!(world.tell(CARRY), [deactivate(A, true)]);
    world.tell(LaneEvent::Released { session: A, seat: Seat(1) });
    let leave = LaneEvent::Leave { activation: ROOM, is_abandon: false };
    assert_eq!(world.tell(leave), [LaneAction::Left { activation: ROOM }]);
}

#[test]
fn l1_an_activation_carries_nothing_away_while_its_lost_host_may_act() {
    let after_loss = |settings| {
        let mut world = World::new(settings, &[(A, 1)]);
        world.seated(ROOM);
        assert_eq!(world.tell(CARRY), [deactivate(A, true)]);
        let lost = world.word(Word::Lost { session: A });
        (world, lost.contains(&CARRIED))
    };
    let (mut world, early) = after_loss(Settings::default());
    assert!(!early, "its host may be in the hook of its end");
    assert_eq!(world.word(Word::Over { session: A }), [CARRIED]);
    let (_, early) = after_loss(with(|checks| checks.held = false));
    assert!(early, "without the rule it would be made elsewhere beside its host");
}

#[test]
fn an_activation_whose_seat_is_being_made_or_given_back_carries_after_that() {
    let mut world = World::new(Settings::default(), &[(A, 1)]);
    world.tell(LaneEvent::Want { activation: ROOM, kind: "room".into(), wanted: 1, is_patient: false });
    assert_eq!(world.tell(CARRY), []);
    assert_eq!(world.ready(A, Seat(1)), [LaneAction::Ready { activation: ROOM }, deactivate(A, true)]);
    assert_eq!(world.tell(CARRY), [], "it is on its way out already");
    assert_eq!(world.tell(LaneEvent::Released { session: A, seat: Seat(1) }), [CARRIED]);
}

#[test]
fn a_kind_has_a_seat_where_a_session_takes_more_of_it() {
    let mut world = World::new(Settings::default(), &[]);
    assert!(!world.lanes.has_seat_for("room"));
    world.joins(A, 1, Bounds { seats_max: 1, ..Bounds::default() });
    assert!(world.lanes.has_seat_for("room") && !world.lanes.has_seat_for("user"));
    world.seated(ROOM);
    assert!(!world.lanes.has_seat_for("room"), "it is full");
    world.joins(B, 1, Bounds::default());
    assert!(world.lanes.has_seat_for("room"));
    world.word(Word::Draining { session: B });
    assert!(!world.lanes.has_seat_for("room"), "who is left drains");
}

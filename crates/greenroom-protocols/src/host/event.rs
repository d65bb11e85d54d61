//! What the two machines of a node are told, and what they want done.

use std::time::Duration;

use super::{Activation, Cookie, Digest, KindName, Offer, Seat, SessionId, Shard, Stream, TurnNumber};

/// What the control plane's machine is told.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ControlEvent {
    /// Somebody has connected, under a number that this node never gives twice.
    Connected {
        /// The session that it may become.
        session: SessionId,
    },
    /// Its Hello has come, from somebody who may in.
    Hello {
        /// The session.
        session: SessionId,
        /// The session of before whose seats it has dropped, and whose secret it knows.
        ended: Option<SessionId>,
        /// How it is bounded, within what the node allows.
        bounds: super::Bounds,
    },
    /// One of its offers, whose description the node knows. What was refused may be offered again.
    Offer {
        /// The session.
        session: SessionId,
        /// The offer's index in the Hello.
        index: u32,
        /// The kind, version and digest.
        offer: Offer,
        /// Whether this node may host the kind for this host.
        allowed: Result<(), super::NotAllowed>,
        /// The digest that the view has of this kind and version, if it has one.
        claimed: Option<Digest>,
    },
    /// An Alive.
    Alive {
        /// The session.
        session: SessionId,
        /// The Alive's number.
        number: u64,
    },
    /// The host wants to go.
    Drain {
        /// The session.
        session: SessionId,
    },
    /// The host has dropped all and goes.
    Goodbye {
        /// The session.
        session: SessionId,
    },
    /// The control lane has broken, or said what is none of the protocol.
    Broken {
        /// The session.
        session: SessionId,
    },
    /// The host's process is known to be gone.
    ProcessGone {
        /// The session.
        session: SessionId,
    },
    /// A shard says that a user lane has broken.
    LaneBroken {
        /// The session.
        session: SessionId,
        /// The shard.
        shard: Shard,
    },
    /// The host has dropped all seats of a lane.
    LaneDropped {
        /// The session.
        session: SessionId,
        /// The shard.
        shard: Shard,
    },
    /// A shard says that a draining session has no seat left there.
    Drained {
        /// The session.
        session: SessionId,
        /// The shard.
        shard: Shard,
    },
    /// How long the node itself may act: no host is told that it may act for longer.
    NodeLease {
        /// Until when.
        until: crate::time::Timestamp,
    },
    /// Time has passed.
    Tick,
}

/// What the control plane's machine wants done, in this order.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ControlAction {
    /// Answer the Hello.
    Welcome {
        /// The session.
        session: SessionId,
        /// Its lease, as if the Hello had been an Alive.
        lease: Duration,
    },
    /// Say what became of an offer.
    Offered {
        /// The session.
        session: SessionId,
        /// The offer's index.
        index: u32,
        /// What became of it.
        verdict: super::Verdict,
    },
    /// Answer an Alive.
    Lease {
        /// The session.
        session: SessionId,
        /// The Alive's number.
        number: u64,
        /// How long the host may act, from when it sent the Alive.
        lease: Duration,
    },
    /// Tell the host that a lane of its has broken.
    LaneLost {
        /// The session.
        session: SessionId,
        /// The shard.
        shard: Shard,
    },
    /// Say goodbye on the control lane, if it is still there, and close it.
    Close {
        /// The session.
        session: SessionId,
        /// Why.
        why: super::Close,
    },
    /// Tell every shard, in the order of these actions.
    Tell(Word),
    /// What the node offers has changed: write [`Sessions::row`](super::Sessions::row) into the membership table.
    Row {
        /// The kinds, each with the newest version that is offered.
        kinds: Vec<Offer>,
    },
}

/// What the control plane tells shards of a session. They come in order.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Word {
    /// A session is open: its lane may join.
    Open {
        /// The session.
        session: SessionId,
        /// How it is bounded.
        bounds: super::Bounds,
    },
    /// It offers a kind, which the node has taken.
    Offers {
        /// The session.
        session: SessionId,
        /// The offer's index in the Hello.
        index: u32,
        /// The kind and version.
        offer: Offer,
    },
    /// It gets no new seats, and its seats are to be left.
    Draining {
        /// The session.
        session: SessionId,
    },
    /// It is lost: nothing that it says counts any more, and its seats are held.
    Lost {
        /// The session.
        session: SessionId,
    },
    /// The host can act no more: what it held may be given away, and the session is forgotten.
    Over {
        /// The session.
        session: SessionId,
    },
    /// The host has dropped all seats of its lane to this shard, and may join it again.
    Dropped {
        /// The session.
        session: SessionId,
        /// The shard.
        shard: Shard,
    },
}

/// What a shard's machine is told.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum LaneEvent {
    /// What the control plane says.
    Word(Word),
    /// A lane has been joined that [may be](super::Lanes::may_join), by who knows the session's secret.
    Joined {
        /// The session.
        session: SessionId,
    },
    /// A lane has broken, or was closed.
    Broke {
        /// The session.
        session: SessionId,
    },
    /// An activation needs a seat. Turns may be [begun](LaneEvent::Begin) at once: they wait for it.
    Want {
        /// The activation.
        activation: Activation,
        /// Its kind.
        kind: KindName,
        /// The version of the interface that its first caller speaks; [`ANY`](crate::versions::ANY) serves anyone.
        wanted: u16,
        /// Whether it waits for a host however long none comes: what it is to do is kept elsewhere, and is not given up.
        is_patient: bool,
    },
    /// The host has made the instance, or could not: then it has dropped the seat.
    Activated {
        /// Whose lane said so.
        session: SessionId,
        /// The seat.
        seat: Seat,
        /// Whether it is ready.
        is_ready: bool,
    },
    /// The host has dropped a seat.
    Released {
        /// Whose lane said so.
        session: SessionId,
        /// The seat.
        seat: Seat,
    },
    /// A turn is to begin.
    Begin {
        /// The activation.
        activation: Activation,
        /// The turn, as the shard knows it: never used for another.
        cookie: Cookie,
        /// Whether it may run a second time if its host is lost: reads, and reliable turns.
        runs_again: bool,
        /// Bytes of its frame, about.
        len: u64,
    },
    /// The caller of a turn does not wait any more.
    Cancel {
        /// The turn.
        cookie: Cookie,
    },
    /// A turn has ended at its host.
    Ended {
        /// Whose lane said so.
        session: SessionId,
        /// The turn.
        turn: TurnNumber,
        /// The stream that its reply begins.
        stream: Option<Stream>,
    },
    /// A turn waits for the answer to a request of its.
    Waits {
        /// The turn.
        cookie: Cookie,
    },
    /// It waits no more.
    GoesOn {
        /// The turn.
        cookie: Cookie,
    },
    /// A stream has ended, or its consumer has given it up.
    StreamEnded {
        /// Whose.
        session: SessionId,
        /// The stream.
        stream: Stream,
    },
    /// The activation leaves its seat for good, or is to be made anew: it has [left](LaneAction::Left) before it may want again.
    Leave {
        /// The activation.
        activation: Activation,
        /// Whether turns that run are abandoned; otherwise they end first.
        is_abandon: bool,
    },
    /// The activation is to leave its seat with what it holds, once no turn of it runs: it has none when it
    /// [has carried](LaneAction::Carried), and gets another if a turn waits for that.
    Carry {
        /// The activation.
        activation: Activation,
    },
    /// Time has passed.
    Tick,
}

/// What a shard's machine wants done, in this order.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum LaneAction {
    /// Send an Activate.
    Activate {
        /// On whose lane.
        session: SessionId,
        /// The seat.
        seat: Seat,
        /// The activation.
        activation: Activation,
        /// The offer's index in the session's Hello.
        offer: u32,
    },
    /// The activation's seat is ready.
    Ready {
        /// The activation.
        activation: Activation,
    },
    /// The host could not make the instance; the activation has no seat and wants none any more.
    NotMade {
        /// The activation.
        activation: Activation,
    },
    /// The activation has lost its seat; it gets another when a turn waits for that. What it had in memory is gone.
    Unseated {
        /// The activation.
        activation: Activation,
    },
    /// No host came for the activation in time, or all are full: it has no seat and wants none any more.
    NoHost {
        /// The activation.
        activation: Activation,
        /// Whether there are hosts, and they are full.
        is_full: bool,
    },
    /// Send a Turn.
    Send {
        /// On whose lane.
        session: SessionId,
        /// In which seat.
        seat: Seat,
        /// Its number.
        turn: TurnNumber,
        /// The turn.
        cookie: Cookie,
    },
    /// Send a CancelTurn.
    CancelTurn {
        /// On whose lane.
        session: SessionId,
        /// The turn.
        turn: TurnNumber,
    },
    /// The turn's end counts: what it changed is to be written, and its reply may leave then.
    End {
        /// The turn.
        cookie: Cookie,
    },
    /// The turn came to nothing.
    Fail {
        /// The turn.
        cookie: Cookie,
        /// How.
        fate: super::Fate,
    },
    /// Send a Deactivate.
    Deactivate {
        /// On whose lane.
        session: SessionId,
        /// The seat.
        seat: Seat,
        /// The activation.
        activation: Activation,
        /// Whether the activation stays, and is to carry what it has to its next seat.
        is_carry: bool,
        /// Whether turns that run are abandoned.
        is_abandon: bool,
    },
    /// The activation has no seat any more, as it wished.
    Left {
        /// The activation.
        activation: Activation,
    },
    /// The activation has no seat, as was [wanted](LaneEvent::Carry), and its host acts for it no more. What it held came with its
    /// Released, or is gone with its host.
    Carried {
        /// The activation.
        activation: Activation,
    },
    /// A stream ends with its seat, its last items unsent.
    StreamLost {
        /// Whose.
        session: SessionId,
        /// The stream.
        stream: Stream,
    },
    /// Tell the control plane that a lane has broken ([`ControlEvent::LaneBroken`]).
    LaneBroken {
        /// The session.
        session: SessionId,
    },
    /// Tell the control plane that a draining session has no seat left here ([`ControlEvent::Drained`]).
    Drained {
        /// The session.
        session: SessionId,
    },
    /// Close the lane, if it is there: the session is lost or over, or the host has broken the protocol.
    CloseLane {
        /// The session.
        session: SessionId,
        /// What it has done; `None` if nothing.
        fault: Option<super::Fault>,
    },
}

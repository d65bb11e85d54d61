//! Frames that hosts send on their user lanes.

use std::io;

use bytes::{Buf, Bytes};
use greenroom_protocols::host::{LaneEvent, SessionId, TurnNumber};
use greenroom_wire::host::{Ask, Closing, FromHost, Operation, TurnEnd};

use super::ask::Asked;
use super::lane::{End, Made};
use super::on_shard::OnShard;
use super::refusals::RequestOrigin;
use super::seats::State;
use super::state;
use crate::shard::Shard;

/// Handles the whole frames that a lane has. On an error the lane is to end.
pub(super) fn handle(shard: &Shard, part: &OnShard, session: u64) -> Result<(), String> {
    // Turns that begin here write onto lanes, this one too: so nothing of it stays borrowed.
    let (mut input, mut decoder) = {
        let mut state = part.state.borrow_mut();
        let Some(wire) = state.lanes.get_mut(&session).and_then(|lane| lane.wire.as_mut()) else { return Ok(()) };
        (std::mem::take(&mut wire.input), wire.decoder.clone())
    };
    let mut rest = &input[..];
    let result = loop {
        let before = rest.len();
        match decoder.next::<FromHost<'_>>(&mut rest) {
            Ok(Some(frame)) => {
                if let Err(reason) = take(shard, part, session, frame, before - rest.len()) {
                    break Err(reason);
                }
            }
            Ok(None) => break Ok(()),
            Err(error) => break Err(error.to_string()),
        }
    };
    let consumed = input.len() - rest.len();
    input.advance(consumed);
    if let Some(wire) = part.state.borrow_mut().lanes.get_mut(&session).and_then(|lane| lane.wire.as_mut()) {
        if input.is_empty() {
            input.clear();
        }
        (wire.input, wire.decoder) = (input, decoder);
    }
    result
}

fn take(shard: &Shard, part: &OnShard, session: u64, frame: FromHost<'_>, len: usize) -> Result<(), String> {
    match frame {
        FromHost::TurnEnd(end) => turn_end(shard, part, session, end),
        FromHost::Call(call) => part.call(shard, session, &call, len),
        FromHost::Define { route, kind, method, version } => {
            part.define_route(shard, session, route, kind, method, version)
        }
        FromHost::CancelCall { request } => {
            part.cancel_call(shard, session, request);
            Ok(())
        }
        FromHost::Ask(ask) => asked(shard, part, session, ask, len),
        FromHost::Activated { seat, status, payload } => {
            part.activated(shard, session, seat, status, payload);
            Ok(())
        }
        FromHost::Released { seat, status, payload } => {
            part.released(shard, session, seat, status, payload);
            Ok(())
        }
        FromHost::Goodbye { reason, .. } => Err(format!("the host said goodbye: {reason}")),
        FromHost::StreamItem { stream, number, payload } => part.produced_item(session, stream, number, payload, len),
        FromHost::StreamEnd { stream, number, status, payload } => {
            part.produced_end(session, stream, number, status, payload)
        }
        FromHost::StreamCredit { stream, window, consumed } => {
            part.consumed_credit(session, stream, window, consumed);
            Ok(())
        }
        FromHost::Unknown { .. } => Ok(()),
        _ => Err("a frame of the control lane came on a user lane".to_owned()),
    }
}

fn turn_end(shard: &Shard, part: &OnShard, session: u64, end: TurnEnd<'_>) -> Result<(), String> {
    let changes = end.changes.map(|fields| state::changes(&fields)).unwrap_or_default();
    let made = Made { changes, jump: end.jump.map(str::to_owned), is_halt: end.is_halt };
    {
        let mut state = part.state.borrow_mut();
        // Of one that is not live, the machine knows whether its host may still end it.
        let cookie = state.turn(session, end.turn);
        let State { lanes, turns, .. } = &mut *state;
        let running = cookie.and_then(|cookie| turns.get_mut(&cookie));
        match (running, end.stream, lanes.get_mut(&session)) {
            (Some(running), stream, Some(lane)) => {
                let seat = running.sent.as_ref().map_or(0, |sent| sent.seat);
                let produce = |stream| lane.produce(shard, seat, stream, running.actor.to_string());
                let stream = stream.map(produce).transpose()?;
                let payload = Bytes::copy_from_slice(end.payload);
                running.end = Some(End::Said { status: end.status, payload, made, stream });
            }
            (None, Some(stream), Some(lane)) => lane.refuse_stream(stream),
            _ => {}
        }
    }
    let (session, turn) = (SessionId(session), TurnNumber(end.turn));
    part.tell(shard, LaneEvent::Ended { session, turn, stream: None });
    Ok(())
}

fn asked(shard: &Shard, part: &OnShard, session: u64, ask: Ask<'_>, len: usize) -> Result<(), String> {
    let Ask { request, turn, seat, operation, payload } = ask;
    let origin = RequestOrigin { session, request, turn, seat };
    part.note_request(shard, session, request, turn, len)?;
    if let Operation::Other(number) = operation {
        let failure = crate::actor::error::Refusal::Invalid {
            field: String::new(),
            message: format!("this node knows no operation {number}"),
        };
        part.refuse(shard, origin, part.requester(origin), &format_args!("operation {number}"), failure.into());
        return Ok(());
    }
    if operation == Operation::OpenStream {
        part.answer_open(shard, origin, payload);
        return Ok(());
    }
    part.ask(shard, Asked { origin, operation, payload: Bytes::copy_from_slice(payload) });
    Ok(())
}

/// Writes out what the round has put on a lane.
pub(super) fn flush(shard: &Shard, session: u64) {
    let part = OnShard::of(shard);
    let failed = {
        let mut state = part.state.borrow_mut();
        let Some(wire) = state.lanes.get_mut(&session).and_then(|lane| lane.wire.as_mut()) else { return };
        match wire.flush() {
            Ok(()) if wire.is_overfull() => Some("the host does not read what it is sent".to_owned()),
            Ok(()) => None,
            Err(error) => Some(error.to_string()),
        }
    };
    if let Some(reason) = failed {
        part.lose(shard, session, Closing::BadFrame, &reason);
    }
}

/// Reads what has come on a lane, and writes what waits.
pub(super) fn visit(shard: &Shard, session: u64) {
    let part = OnShard::of(shard);
    for visit in 0..=READS_A_VISIT {
        let read = {
            let mut state = part.state.borrow_mut();
            let Some(wire) = state.lanes.get_mut(&session).and_then(|lane| lane.wire.as_mut()) else { return };
            if visit == 0 {
                wire.flag().lower();
            }
            if visit == READS_A_VISIT {
                // There may be more: it is looked at again when others have had their go.
                wire.flag().clone().raise();
                break;
            }
            if wire.is_stalled() { Ok(false) } else { wire.read() }
        };
        let handled = match read {
            Ok(true) => handle(shard, part, session),
            Ok(false) => break,
            // A host that goes in order closes its lanes, too, maybe before its control lane is heard.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return part.lose(shard, session, Closing::Done, "its host has closed it");
            }
            Err(error) => Err(error.to_string()),
        };
        if let Err(reason) = handled {
            return part.lose(shard, session, Closing::BadFrame, &reason);
        }
    }
    flush(shard, session);
}

/// Reads from one lane before others have their go.
const READS_A_VISIT: usize = 4;

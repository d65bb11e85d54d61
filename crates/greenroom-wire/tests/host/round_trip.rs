//! What is written is read back, and no bytes at all make a decoder panic or ask for memory.

use std::time::Duration;

use bytes::{BufMut, BytesMut};
use greenroom_wire::host::{
    Activate, Ask, Call, Closing, Decoder, FRAME_LEN_MAX, Fields, FieldsWriter, FromHost, FromNode, LaneFrame, Leave,
    Operation, Turn, TurnEnd,
};
use greenroom_wire::{ExtensionView, Status};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::{Written, hello};

/// Numbers of every length in bits.
fn number() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0..64_u32).prop_map(|(value, shift)| value >> shift)
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..100)
}

fn time() -> impl Strategy<Value = Option<Duration>> {
    number().prop_map(|micros| (micros != 0).then_some(Duration::from_micros(micros)))
}

fn fields() -> impl Strategy<Value = FieldsWriter> {
    let field = ("[a-z]{0,8}", any::<bool>(), vec((".{1,9}", option::of(bytes())), 0..4), bytes());
    vec(field, 0..4).prop_map(|fields| {
        let mut writer = FieldsWriter::new();
        for (name, is_whole, entries, value) in fields {
            if is_whole {
                writer.whole(&name, &value).unwrap();
            } else {
                let entries = entries.iter().map(|(name, value)| (name.as_str(), value.as_deref()));
                writer.entries(&name, entries).unwrap();
            }
        }
        writer
    })
}

fn read_host(frame: &FromHost<'_>) -> Result<(), TestCaseError> {
    let mut decoder = Decoder::new(FRAME_LEN_MAX);
    decoder.next::<FromHost<'_>>(&mut &hello()[..]).unwrap();
    let written = frame.written();
    let read = decoder.next(&mut &written[..]);
    prop_assert_eq!(read.as_ref(), Ok(&Some(frame.clone())));
    Ok(())
}

fn read_node(frame: &FromNode<'_>) -> Result<(), TestCaseError> {
    let written = frame.written();
    let mut decoder = Decoder::joined(FRAME_LEN_MAX);
    let read = decoder.next(&mut &written[..]);
    prop_assert_eq!(read.as_ref(), Ok(&Some(frame.clone())));
    Ok(())
}

/// The frames that `pieces` give, rewritten, and whether they end in an error.
fn drain<'a, F: LaneFrame<'a> + std::fmt::Debug>(mut decoder: Decoder, mut rest: &'a [u8]) -> (Vec<String>, bool) {
    let mut frames = Vec::new();
    loop {
        match decoder.next::<F>(&mut rest) {
            Ok(Some(frame)) => frames.push(format!("{frame:?}")),
            Ok(None) => return (frames, false),
            Err(error) => {
                assert_eq!(decoder.next::<F>(&mut rest).map(|_| ()), Err(error), "an error is final");
                return (frames, true);
            }
        }
    }
}

proptest! {
    #[test]
    fn turns_and_calls_are_read_as_they_were_written(
        (a, b, c) in (number(), number(), any::<u32>()),
        flags in any::<[bool; 3]>(),
        left in time(),
        key in ".{0,50}",
        payload in bytes(),
    ) {
        let [is_awaited, is_read, is_tick] = flags;
        let extension = ExtensionView::EMPTY;
        let payload = &payload[..];
        let turn = Turn { turn: a, seat: b, method: c, is_awaited, is_read, is_tick, left, extension, payload };
        read_node(&FromNode::Turn(turn))?;
        read_host(&FromHost::Call(Call { request: a, turn: b, route: c, key: &key, left, extension, payload }))?;
    }

    #[test]
    fn fields_are_read_as_they_were_written(
        (a, b, status) in (number(), number(), any::<u8>()),
        fields in fields(),
        (name, carried, stream, is_halt) in (option::of("[a-z]{1,9}"), option::of(bytes()), option::of(number()), any::<bool>()),
        payload in bytes(),
    ) {
        let (all, state, payload) = (fields.fields(), name.as_deref(), &payload[..]);
        let (carried, status) = (carried.as_deref(), Status::from_byte(status));
        let activate = Activate { seat: a, offer: 3, epoch: b, state, carried, key: "k", fields: all };
        read_node(&FromNode::Activate(activate))?;
        let changes = (!all.is_empty()).then_some(all);
        read_host(&FromHost::TurnEnd(TurnEnd { turn: a, status, changes, jump: state, is_halt, stream, payload }))?;
        let written = fields.to_bytes();
        prop_assert_eq!(Fields::parse(&written), Ok(all));
    }

    #[test]
    fn small_frames_are_read_as_they_were_written(a in number(), b in number(), byte in any::<u8>(), payload in bytes()) {
        let (status, payload) = (Status::from_byte(byte), &payload[..]);
        let operation = Operation::from_byte(byte);
        read_host(&FromHost::Ask(Ask { request: a, turn: b, seat: a, operation, payload }))?;
        read_host(&FromHost::Released { seat: a, status, payload })?;
        read_host(&FromHost::StreamItem { stream: a, number: b, payload })?;
        read_host(&FromHost::Goodbye { code: Closing::from_byte(byte), reason: "r" })?;
        read_node(&FromNode::Lease { number: a, ms: b })?;
        read_node(&FromNode::Reply { request: a, status, payload })?;
        read_node(&FromNode::StreamEnd { stream: a, number: b, status, payload })?;
        let why = Leave::from_byte(byte);
        read_node(&FromNode::Deactivate { seat: a, why, is_carry: byte & 1 == 1, is_abandon: byte & 2 == 2 })?;
    }

    #[test]
    fn any_bytes_are_read_or_refused(data in vec(any::<u8>(), 0..300)) {
        drain::<FromHost<'_>>(Decoder::new(FRAME_LEN_MAX), &data);
        drain::<FromNode<'_>>(Decoder::new(FRAME_LEN_MAX), &data);
        drain::<FromNode<'_>>(Decoder::joined(FRAME_LEN_MAX), &data);
    }

    #[test]
    fn frames_of_any_type_and_body_are_read_or_refused(
        frames in vec((0..64_u8, vec(any::<u8>(), 0..60)), 0..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut stream = BytesMut::new();
        for (frame_type, body) in &frames {
            stream.put_u32_le(1 + body.len() as u32);
            stream.put_u8(*frame_type);
            stream.put_slice(body);
        }
        let (whole, fails) = drain::<FromNode<'_>>(Decoder::joined(FRAME_LEN_MAX), &stream);
        let part = &stream[..cut.index(stream.len() + 1)];
        let (begun, fails_too) = drain::<FromNode<'_>>(Decoder::joined(FRAME_LEN_MAX), part);
        prop_assert!(whole.starts_with(&begun), "what has come is read, whatever comes behind it");
        prop_assert!(fails || !fails_too);
        let mut greeted = hello();
        greeted.unsplit(stream);
        drain::<FromHost<'_>>(Decoder::new(FRAME_LEN_MAX), &greeted);
    }
}

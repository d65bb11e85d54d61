//! Bytes from outside that must be refused, each by name.

use bytes::{BufMut, BytesMut};
use greenroom_wire::host::{
    DESCRIPTION_LEN_MAX, Decoder, FIELDS_MAX, FRAME_LEN_MAX, FieldsWriter, FromHost, FromNode, Hello, HelloMap,
    OFFERS_MAX, OfferMap,
};
use greenroom_wire::{EncodeError, FrameError, Status};

use crate::{Written, hello};

fn framed(frame_type: u8, body: &[u8]) -> BytesMut {
    let mut frame = BytesMut::new();
    frame.put_u32_le(1 + body.len() as u32);
    frame.put_u8(frame_type);
    frame.put_slice(body);
    frame
}

fn host_error(frame_type: u8, body: &[u8]) -> FrameError {
    let mut decoder = Decoder::new(FRAME_LEN_MAX);
    decoder.next::<FromHost<'_>>(&mut &hello()[..]).unwrap();
    decoder.next::<FromHost<'_>>(&mut &framed(frame_type, body)[..]).unwrap_err()
}

fn node_error(frame_type: u8, body: &[u8]) -> FrameError {
    Decoder::joined(FRAME_LEN_MAX).next::<FromNode<'_>>(&mut &framed(frame_type, body)[..]).unwrap_err()
}

fn first_error(bytes: &[u8]) -> FrameError {
    Decoder::new(FRAME_LEN_MAX).next::<FromHost<'_>>(&mut &bytes[..]).unwrap_err()
}

#[test]
fn a_lane_begins_with_a_greeting() {
    assert_eq!(first_error(&[200, 0, 0, 0, 40]), FrameError::HelloExpected { found: 40 });
    let error = Decoder::new(FRAME_LEN_MAX).next::<FromNode<'_>>(&mut &[9, 0, 0, 0, 36][..]).unwrap_err();
    assert_eq!(error, FrameError::HelloExpected { found: 36 });
    assert!(matches!(first_error(b"GET / HTTP/1.1\r\n"), FrameError::FrameTooLong { max: 65_536, .. }));
    assert_eq!(first_error(&framed(1, b"GRRM\x01\0\x01\0\x80")), FrameError::WrongHostMagic { found: *b"GRRM" });
}

#[test]
fn a_lane_is_greeted_once() {
    let mut decoder = Decoder::new(FRAME_LEN_MAX);
    decoder.next::<FromHost<'_>>(&mut &hello()[..]).unwrap();
    assert_eq!(decoder.next::<FromHost<'_>>(&mut &hello()[..]), Err(FrameError::HelloRepeated));
}

#[test]
fn a_hello_that_lacks_its_name_is_refused_with_it() {
    let FrameError::Map { frame: "Hello", what } = first_error(&framed(1, b"GRHP\x01\0\x01\0\x80")) else { panic!() };
    assert!(what.contains("name"), "{what}");
}

#[test]
fn names_of_later_versions_are_skipped() {
    let mut body = b"GRHP\x01\0\x09\0\x82\xa4name\xa1c\xa5moods\x92\x01\x02".to_vec();
    body.extend(b"and what comes behind it");
    let frame = framed(1, &body);
    let Ok(Some(FromHost::Hello(hello))) = Decoder::new(FRAME_LEN_MAX).next(&mut &frame[..]) else { panic!() };
    assert_eq!((hello.map, hello.versions.max), (HelloMap::new("c"), 9));
}

#[test]
fn a_common_version_is_the_highest_or_there_is_none() {
    let with = |min, max| Hello { versions: greenroom_wire::Versions { min, max }, map: HelloMap::new("c") }.version();
    assert_eq!((with(1, 9), with(1, 1), with(2, 9), with(0, 0)), (Some(1), Some(1), None, None));
}

#[test]
fn more_offers_than_a_session_may_have_are_refused() {
    let offer = OfferMap { kind: "k".into(), version: 1, compatible: 1, digest: "d".into() };
    let mut map = HelloMap::new("c");
    map.offers = vec![offer; OFFERS_MAX + 1];
    let expected = FrameError::OutOfBounds { field: "Hello offers", value: 257, max: 256 };
    assert_eq!(first_error(&FromHost::Hello(Hello::new(map)).written()), expected);
}

#[test]
fn a_description_has_its_bound_on_both_sides() {
    let json = vec![b' '; DESCRIPTION_LEN_MAX + 1];
    let mut batch = BytesMut::from("before");
    let frame = FromHost::Describe { kind: "k", version: 1, json: &json };
    assert!(matches!(frame.write(&mut batch, FRAME_LEN_MAX), Err(EncodeError::TextTooLong { .. })));
    assert_eq!(&batch[..], b"before");
    let body = [b"\x01k\x01", &json[..]].concat();
    assert!(matches!(host_error(2, &body), FrameError::OutOfBounds { field: "description", .. }));
}

#[test]
fn a_frame_has_its_bound_on_both_sides() {
    let frame = FromNode::Reply { request: 1, status: Status::Ok, payload: &[0; 100] };
    assert!(matches!(frame.write(&mut BytesMut::new(), 100), Err(EncodeError::FrameTooLong { len: 103, max: 100 })));
    let error = Decoder::joined(100).next::<FromNode<'_>>(&mut &frame.written()[..]).unwrap_err();
    assert_eq!(error, FrameError::FrameTooLong { len: 103, max: 100 });
}

#[test]
fn unknown_flags_are_refused() {
    assert_eq!(node_error(36, &[1, 1, 1, 8, 0, 0]), FrameError::UnknownFlags { flags: 8 });
    assert_eq!(node_error(34, &[1, 0, 4]), FrameError::UnknownFlags { flags: 4 });
    assert_eq!(node_error(32, &[1, 0, 1, 4, 0, 0]), FrameError::UnknownFlags { flags: 4 });
    assert_eq!(host_error(37, &[1, 0, 16]), FrameError::UnknownFlags { flags: 16 });
}

#[test]
fn unknown_frames_and_what_is_behind_a_known_body_are_skipped() {
    let frames = [framed(200, b"later"), framed(38, &[9, 1, 2, 3])].concat();
    let (mut decoder, mut rest) = (Decoder::joined(FRAME_LEN_MAX), &frames[..]);
    assert_eq!(decoder.next(&mut rest), Ok(Some(FromNode::Unknown { frame_type: 200 })));
    assert_eq!(decoder.next(&mut rest), Ok(Some(FromNode::CancelTurn { turn: 9 })));
    assert!(rest.is_empty());
}

#[test]
fn fields_that_are_not_there_are_refused_before_anything_is_made_for_them() {
    let declared = [1, 0, 1, 0, 0];
    assert_eq!(node_error(32, &declared), FrameError::Truncated { field: "fields" });
    let many = [&declared[..], &[0xff, 0xff, 0x03]].concat();
    let max = FIELDS_MAX as u64;
    assert_eq!(node_error(32, &many), FrameError::OutOfBounds { field: "fields", value: 0xffff, max });
    let entries = [&declared[..], &[1, 0, 1, 0xff, 0xff, 0xff, 0xff, 0x0f]].concat();
    assert_eq!(node_error(32, &entries), FrameError::Truncated { field: "entry name" });
    let form = [&declared[..], &[1, 0, 2]].concat();
    assert_eq!(node_error(32, &form), FrameError::OutOfBounds { field: "field form", value: 2, max: 1 });
    let presence = [&declared[..], &[1, 0, 1, 1, 1, b'e', 2]].concat();
    assert_eq!(node_error(32, &presence), FrameError::OutOfBounds { field: "entry presence", value: 2, max: 1 });
    // Without a name it would be taken for a field as a whole.
    let nameless = [&declared[..], &[1, 0, 1, 1, 0, 0]].concat();
    let refused = FrameError::OutOfBounds { field: "entry name length", value: 0, max: 512 };
    assert_eq!(node_error(32, &nameless), refused);
}

#[test]
fn more_fields_than_a_frame_may_have_are_not_written() {
    let mut fields = FieldsWriter::new();
    (0..FIELDS_MAX).for_each(|_| fields.whole("f", b"").unwrap());
    assert!(fields.whole("f", b"").is_err());
    assert_eq!(fields.fields().len(), FIELDS_MAX);
    let long = "e".repeat(513);
    let mut fields = FieldsWriter::new();
    assert!(fields.entries("f", [(long.as_str(), None)].into_iter()).is_err());
    assert!(fields.fields().is_empty() && fields.to_bytes()[..] == [0]);
}

#[test]
fn a_secret_of_another_length_is_refused() {
    let body = b"GRHP\x01\0\x83\xa7session\x01\xa6secret\xc4\x02ab\xa5shard\x00";
    let FrameError::Map { frame: "Join", what } = first_error(&framed(16, body)) else { panic!() };
    assert!(what.contains("secret"), "{what}");
}

#[test]
fn a_secret_shows_itself_in_no_log() {
    assert_eq!(format!("{:?}", greenroom_wire::host::Secret(*b"0123456789abcdef")), "Secret(..)");
}

#[test]
fn a_long_reason_is_cut_between_characters() {
    let reason = "é".repeat(600) + "x";
    let written = FromNode::Goodbye { code: greenroom_wire::host::Closing::BadFrame, reason: &reason }.written();
    let Ok(Some(FromNode::Goodbye { reason: cut, .. })) = Decoder::new(FRAME_LEN_MAX).next(&mut &written[..]) else {
        panic!()
    };
    assert_eq!(cut, "é".repeat(512));
}

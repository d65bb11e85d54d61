//! The bytes of every frame. They are a promise to hosts in all languages: a change here is a change of the protocol's version.
//!
//! `sdk/golden.json` holds the same, for the tests of the SDKs. Their encoders need not write maps in the same bytes, but
//! must read these.

use std::time::Duration;

use bytes::BytesMut;
use greenroom_wire::extension::tag;
use greenroom_wire::host::{
    ABANDONED, Activate, Ask, Call, Closing, Decoder, Ended, FRAME_LEN_MAX, Fields, FieldsWriter, FromHost, FromNode,
    Hello, HelloMap, Join, JoinMap, Leave, NodeMap, NodesMap, OfferMap, OfferStatus, Operation, Secret, Turn, TurnEnd,
    Welcome, WelcomeMap,
};
use greenroom_wire::{Extension, ExtensionView, ExtensionWriter, Status};
use serde_json::{Value, json};

use crate::written::{hex, host_frame, node_frame};
use crate::{Written, hello};

const SECRET: Secret = Secret([0xab; 16]);
/// A payload: `{}` in MessagePack, of type version 1.
const NOTHING: &[u8] = &[1, 1, 0x80];
/// A payload: `true` in MessagePack, of type version 1.
const YES: &[u8] = &[1, 1, 0xc3];

fn full_hello() -> Hello {
    let mut map = HelloMap::new("chat");
    map.sdk = "python 0.1.0".into();
    map.token = Some("t".into());
    map.ended = Some(Ended { session: 300, secret: SECRET });
    map.spread = "all".into();
    let digest = "00".repeat(32);
    map.offers = vec![OfferMap { kind: "chat_room".into(), version: 2, compatible: 1, digest }];
    Hello::new(map)
}

fn welcome() -> Welcome {
    let mut map = WelcomeMap::new("music", 7, 300, SECRET, 5_000);
    map.shards = vec![0, 1];
    map.unknown = vec!["00".repeat(32)];
    Welcome { version: 1, map }
}

fn fields() -> FieldsWriter {
    let mut fields = FieldsWriter::new();
    fields.whole("self", NOTHING).unwrap();
    let entries: [(&str, Option<&[u8]>); 2] = [("a1", Some(YES)), ("b2", None)];
    fields.entries("seats", entries.into_iter()).unwrap();
    fields
}

fn extension() -> Extension {
    let mut extension = ExtensionWriter::new();
    extension.put(tag::CONTEXT, b"\x01k\x01v").unwrap();
    extension.finish()
}

/// The cases of one direction: a name, the frame, its bytes.
type Cases<'a, F> = Vec<(&'static str, F, &'static str)>;

#[rustfmt::skip]
fn from_host<'a>(fields: Fields<'a>, extension: ExtensionView<'a>) -> Cases<'a, FromHost<'a>> {
    let end = TurnEnd { turn: 9, status: Status::Ok, changes: None, jump: None, is_halt: false, stream: None, payload: YES };
    let call = Call {
        request: 5, turn: 9, route: 0, key: "ada", left: Some(Duration::from_millis(250)), extension, payload: NOTHING,
    };
    vec![
        ("hello_of_a_host", FromHost::Hello(full_hello()), "1d010000 01 47524850010001008ca46e616d65a463686174a373646bac707974686f6e20302e312e30a5746f6b656ea174a5656e64656482a773657373696f6ecd012ca6736563726574c410ababababababababababababababababa56c616e657304a6636f64656373920102a973656174735f6d6178ce000186a0a97475726e735f6d6178cd0400a962797465735f6d6178ce00800000a677656967687401a6737072656164a3616c6ca66f66666572739184a46b696e64a9636861745f726f6f6da776657273696f6e02aa636f6d70617469626c6501a6646967657374d94030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030"),
        ("hello_of_a_client", FromHost::Hello(Hello::new(HelloMap::new("c"))), "6a000000 01 47524850010001008aa46e616d65a163a373646ba0a56c616e657304a6636f64656373920102a973656174735f6d6178ce000186a0a97475726e735f6d6178cd0400a962797465735f6d6178ce00800000a677656967687401a6737072656164a0a66f666665727390"),
        ("describe", FromHost::Describe { kind: "chat_room", version: 2, json: b"{\"greenroom\":1}" }, "1b000000 02 09636861745f726f6f6d027b22677265656e726f6f6d223a317d"),
        ("alive", FromHost::Alive { number: 128 }, "03000000 04 8001"),
        ("drain", FromHost::Drain, "01000000 07"),
        ("goodbye_of_a_host", FromHost::Goodbye { code: Closing::Done, reason: "done" }, "07000000 08 0004646f6e65"),
        ("lane_dropped", FromHost::LaneDropped { shard: 1 }, "02000000 0a 01"),
        ("join", FromHost::Join(Join { version: 1, map: JoinMap { session: 300, secret: SECRET, shard: 1 } }), "33000000 10 47524850010083a773657373696f6ecd012ca6736563726574c410ababababababababababababababababa5736861726401"),
        ("activated", FromHost::Activated { seat: 1, status: Status::Ok, payload: b"" }, "03000000 21 0100"),
        ("activated_with_an_error", FromHost::Activated { seat: 1, status: Status::Panicked, payload: YES }, "06000000 21 01050101c3"),
        ("released", FromHost::Released { seat: 1, status: Status::Ok, payload: b"" }, "03000000 23 0100"),
        ("released_with_what_is_carried", FromHost::Released { seat: 300, status: Status::Ok, payload: NOTHING }, "07000000 23 ac0200010180"),
        ("turn_end", FromHost::TurnEnd(end), "07000000 25 0900000101c3"),
        ("turn_end_with_everything", FromHost::TurnEnd(TurnEnd {
            changes: Some(fields), jump: Some("open"), is_halt: true, stream: Some(300), ..end
        }), "2d000000 25 09000f020473656c660003010180057365617473010202613101030101c302623200046f70656eac020101c3"),
        ("turn_end_that_was_abandoned", FromHost::TurnEnd(TurnEnd { status: ABANDONED, payload: b"", ..end }), "04000000 25 091000"),
        ("define", FromHost::Define { route: 0, kind: "user", method: "may_post", version: 1 }, "11000000 27 000475736572086d61795f706f737401"),
        ("call", FromHost::Call(call), "15000000 28 0509000361646190a10f060104016b0176010180"),
        ("one_way_call_outside_of_turns", FromHost::Call(Call {
            request: 0, turn: 0, left: None, extension: ExtensionView::EMPTY, ..call
        }), "0d000000 28 000000036164610000010180"),
        ("call_with_an_idempotency_key", FromHost::Call(Call {
            turn: 0, left: None, extension: ExtensionView::parse(b"\x01\x04\x01k\x01v\x0e\x0217").unwrap(), ..call
        }), "17000000 28 0500000361646100 0a 0104016b01760e023137 010180"),
        ("call_of_a_hook", FromHost::Call(Call {
            turn: 0, left: None, extension: ExtensionView::parse(b"\x01\x04\x01k\x01v\x0f\x02\xac\x02").unwrap(), ..call
        }), "17000000 28 0500000361646100 0a 0104016b01760f02ac02 010180"),
        ("cancel_call", FromHost::CancelCall { request: 5 }, "02000000 2a 05"),
        ("ask", FromHost::Ask(Ask { request: 6, turn: 9, seat: 1, operation: Operation::Reload, payload: NOTHING }), "08000000 2b 06090102010180"),
        ("stream_item_of_a_host", FromHost::StreamItem { stream: 3, number: 128, payload: YES }, "07000000 30 0380010101c3"),
        ("stream_credit_of_a_host", FromHost::StreamCredit { stream: 3, window: 64, consumed: 128 }, "05000000 31 03408001"),
        ("stream_end_of_a_host", FromHost::StreamEnd { stream: 3, number: 129, status: Status::Ok, payload: b"" }, "05000000 32 03810100"),
    ]
}

#[rustfmt::skip]
fn from_node<'a>(fields: Fields<'a>, extension: ExtensionView<'a>) -> Cases<'a, FromNode<'a>> {
    let activate = Activate {
        seat: 1, offer: 0, epoch: 300, state: None, carried: None, key: "lobby", fields: Fields::NONE,
    };
    let turn = Turn {
        turn: 9, seat: 1, method: 2, is_awaited: true, is_read: false, is_tick: false,
        left: Some(Duration::from_secs(30)), extension: ExtensionView::EMPTY, payload: NOTHING,
    };
    let nodes = vec![NodeMap { node: 7, name: "a".into(), ways: vec!["unix:a.sock".into()] }];
    vec![
        ("welcome", FromNode::Welcome(welcome()), "c2000000 01 475248500100010089a7636c7573746572a56d75736963a46e6f646507a773657373696f6ecd012ca6736563726574c410ababababababababababababababababa86c656173655f6d73cd1388a6736861726473920001ad6672616d655f6c656e5f6d6178ce00800000a677696e646f77ce00100000a7756e6b6e6f776e91d94030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030303030"),
        ("offered", FromNode::Offered { offer: 0, kind: "chat_room", status: OfferStatus::Taken, reason: "" }, "0e000000 03 0009636861745f726f6f6d0000"),
        ("offered_and_refused", FromNode::Offered {
            offer: 1, kind: "topics", status: OfferStatus::Refused, reason: "no",
        }, "0d000000 03 0106746f7069637302026e6f"),
        ("lease", FromNode::Lease { number: 128, ms: 5_000 }, "05000000 05 80018827"),
        ("nodes", FromNode::Nodes(NodesMap { nodes }), "29000000 06 81a56e6f6465739183a46e6f646507a46e616d65a161a47761797391ab756e69783a612e736f636b"),
        ("goodbye_of_a_node", FromNode::Goodbye { code: Closing::NotLetIn, reason: "no" }, "05000000 08 05026e6f"),
        ("lane_lost", FromNode::LaneLost { shard: 1 }, "02000000 09 01"),
        ("activate", FromNode::Activate(activate), "0d000000 20 0100ac0200056c6f62627900"),
        ("activate_with_everything", FromNode::Activate(Activate {
            state: Some("open"), carried: Some(YES), fields, ..activate
        }), "34000000 20 0100ac0203056c6f626279046f70656e030101c3020473656c660003010180057365617473010202613101030101c302623200"),
        ("deactivate", FromNode::Deactivate { seat: 1, why: Leave::Migrating, is_carry: true, is_abandon: false }, "04000000 22 010401"),
        ("deactivate_at_once", FromNode::Deactivate { seat: 1, why: Leave::Stopped, is_carry: false, is_abandon: true }, "04000000 22 010902"),
        ("turn", FromNode::Turn(turn), "0d000000 24 090102018087a70e00010180"),
        ("turn_of_a_read_by_a_tick", FromNode::Turn(Turn {
            is_awaited: false, is_read: true, is_tick: true, left: None, extension, ..turn
        }), "10000000 24 0901020600060104016b0176010180"),
        ("cancel_turn", FromNode::CancelTurn { turn: 9 }, "02000000 26 09"),
        ("reply", FromNode::Reply { request: 5, status: Status::Refused, payload: YES }, "06000000 29 05020101c3"),
        ("operation_refused", FromNode::OperationRefused { turn: 9, actor: "room/a", operation: "SetTimer", reason: "no" }, "15000000 2c 0906726f6f6d2f610853657454696d6572026e6f"),
        ("stream_item_of_a_node", FromNode::StreamItem { stream: 3, number: 0, payload: YES }, "06000000 30 03000101c3"),
        ("stream_credit_of_a_node", FromNode::StreamCredit { stream: 3, window: 64, consumed: 0 }, "04000000 31 034000"),
        ("stream_end_of_a_node", FromNode::StreamEnd { stream: 3, number: 1, status: Status::Unknown, payload: YES }, "07000000 32 0301030101c3"),
        ("credit", FromNode::Credit { granted: 1 << 20 }, "04000000 38 808040"),
    ]
}

#[test]
fn every_frame_keeps_its_bytes() {
    let (fields, extension) = (fields(), extension());
    for (name, frame, golden) in from_host(fields.fields(), extension.view()) {
        let bytes = frame.written();
        assert_eq!(hex(&bytes), golden.replace(' ', ""), "{name}");
        let mut decoder = Decoder::new(FRAME_LEN_MAX);
        if !matches!(frame, FromHost::Hello(_) | FromHost::Join(_)) {
            decoder.next::<FromHost<'_>>(&mut &hello()[..]).unwrap();
        }
        let mut rest = &bytes[..];
        assert_eq!(decoder.next(&mut rest), Ok(Some(frame)), "{name}");
        assert!(rest.is_empty(), "{name}");
    }
    for (name, frame, golden) in from_node(fields.fields(), extension.view()) {
        let bytes = frame.written();
        assert_eq!(hex(&bytes), golden.replace(' ', ""), "{name}");
        let is_first = matches!(frame, FromNode::Welcome(_));
        let mut decoder = if is_first { Decoder::new(FRAME_LEN_MAX) } else { Decoder::joined(FRAME_LEN_MAX) };
        let mut rest = &bytes[..];
        assert_eq!(decoder.next(&mut rest), Ok(Some(frame)), "{name}");
        assert!(rest.is_empty(), "{name}");
    }
}

/// What the tests of the SDKs read.
fn document() -> Value {
    let (fields, extension) = (fields(), extension());
    let case = |from: &str, name: &str, (frame, body): (&str, Value), bytes: BytesMut| json!({ "name": name, "from": from, "type": bytes[4], "frame": frame, "body": body, "hex": hex(&bytes) });
    let hosts = from_host(fields.fields(), extension.view());
    let nodes = from_node(fields.fields(), extension.view());
    let hosts = hosts.iter().map(|(name, frame, _)| case("host", name, host_frame(frame), frame.written()));
    let nodes = nodes.iter().map(|(name, frame, _)| case("node", name, node_frame(frame), frame.written()));
    let frames: Vec<Value> = hosts.chain(nodes).collect();
    json!({ "protocol": 1, "frames": frames })
}

#[test]
fn what_the_sdks_test_against_is_what_is_written() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk/golden.json");
    let written = format!("{:#}\n", document());
    if std::env::var_os("GREENROOM_WRITE_GOLDEN").is_some() {
        std::fs::write(path, &written).unwrap();
    }
    let golden = std::fs::read_to_string(path).unwrap_or_default();
    assert!(golden == written, "sdk/golden.json is another; GREENROOM_WRITE_GOLDEN=1 writes it, if that is meant");
}

#[test]
fn every_byte_that_says_something_keeps_its_meaning() {
    for byte in 0..=u8::MAX {
        assert_eq!(Closing::from_byte(byte).to_byte(), byte);
        assert_eq!(Leave::from_byte(byte).to_byte(), byte);
        assert_eq!(Operation::from_byte(byte).to_byte(), byte);
        assert_eq!(OfferStatus::from_byte(byte).to_byte(), byte);
    }
    assert_eq!((Closing::NotLetIn.to_byte(), Closing::from_byte(6)), (5, Closing::Other(6)));
    assert_eq!((Operation::Save.to_byte(), Operation::Chosen.to_byte()), (1, 17));
    assert_eq!((Leave::Stopped.to_byte(), OfferStatus::Refused.to_byte(), ABANDONED.to_byte()), (9, 2, 16));
}

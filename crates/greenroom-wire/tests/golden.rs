//! The bytes of every frame and codec. They are a promise to nodes and stored payloads of this version: a change here
//! is a change of the protocol's version.

use std::fmt::Write;
use std::time::Duration;

use bytes::{BufMut, BytesMut};
use greenroom_wire::carried::{self, PrincipalView, TickView, TraceView};
use greenroom_wire::codec::{self, Codec, Payload};
use greenroom_wire::extension::tag;
use greenroom_wire::{
    Call, CallHeader, CallId, Cancel, CancelView, Chain, ChainView, Control, Credit, Decoder, Define, EncodeError,
    Encoder, Extension, ExtensionView, ExtensionWriter, Flow, Frame, FrameClass, Grant, Hello, HelloBody, Lane, Reply,
    Status, StreamCredit, StreamEnd, StreamItem, classify, frame_len,
};
use serde::{Deserialize, Serialize};

const ID: CallId = CallId { shard: 1, index: 300, generation: 2 };

/// `write` gives the bytes `hex`, and they decode to `frame`.
fn assert_golden(hex: &str, frame: Frame, class: FrameClass, write: impl FnOnce(&Encoder, &mut BytesMut)) {
    let mut batch = BytesMut::new();
    write(&Encoder::default(), &mut batch);
    assert_eq!(to_hex(&batch), hex.replace(' ', ""));
    assert_eq!(classify(&batch), class);
    assert_eq!(frame_len(&batch), Some(batch.len() as u64));
    let mut decoder = Decoder::default();
    if !matches!(frame, Frame::Hello(_)) {
        let mut hello = BytesMut::new();
        Encoder::default().hello(&mut hello, &Hello::new(HelloBody::new("", 0, "", Lane::Control))).unwrap();
        decoder.decode(&mut hello).unwrap();
    }
    assert_eq!(decoder.decode(&mut batch), Ok(Some(frame)));
    assert!(batch.is_empty());
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}

fn payload(batch: &mut BytesMut) -> Result<(), EncodeError> {
    batch.put_slice(b"pay");
    Ok(())
}

#[test]
fn hello() {
    let hello = Hello::new(HelloBody::new("music", 7, "node-a", Lane::User { shard: 1, shards: 2 }).expecting(9));
    let hex = "54000000 01 4752524d 0100 0100 \
        85 a7636c7573746572 a56d75736963 a46e6f6465 07 a46e616d65 a66e6f64652d61 \
        ad65787065637465645f70656572 09 a46c616e65 81 a475736572 82 a57368617264 01 a6736861726473 02";
    assert_golden(hex, Frame::Hello(hello.clone()), FrameClass::Essential, |encoder, batch| {
        encoder.hello(batch, &hello).unwrap();
    });
}

#[test]
fn hello_on_the_control_lane() {
    let hello = Hello::new(HelloBody::new("c", 1, "", Lane::Control));
    let hex = "3c000000 01 4752524d 0100 0100 \
        85 a7636c7573746572 a163 a46e6f6465 01 a46e616d65 a0 ad65787065637465645f70656572 c0 a46c616e65 a7636f6e74726f6c";
    assert_golden(hex, Frame::Hello(hello.clone()), FrameClass::Essential, |encoder, batch| {
        encoder.hello(batch, &hello).unwrap();
    });
}

#[test]
fn define() {
    let frame = Frame::Define(Define { route: 300, kind: "chat_room".into(), method: "post".into() });
    let hex = "12000000 02 ac02 09 636861745f726f6f6d 04 706f7374";
    assert_golden(hex, frame, FrameClass::Essential, |encoder, batch| {
        encoder.define(batch, 300, "chat_room", "post").unwrap();
    });
}

#[test]
fn the_shortest_call_has_a_header_of_nine_bytes() {
    let header = CallHeader { key: "k", ..CallHeader::one_way(5) };
    let frame = Frame::Call(call(&header, Chain::EMPTY));
    assert_golden("08000000 03 00 05 01 6b 706179", frame, FrameClass::User, |encoder, batch| {
        encoder.call(batch, &header, ChainView::EMPTY, payload).unwrap();
    });
}

#[test]
fn the_common_call() {
    let header = CallHeader {
        id: Some(ID),
        key: "lobby",
        deadline: Some(Duration::from_micros(29_999_999)),
        ..CallHeader::one_way(5)
    };
    let frame = Frame::Call(call(&header, Chain::EMPTY));
    let hex = "14000000 03 09 01 ac02 02 05 05 6c6f626279 ff86a70e 706179";
    assert_golden(hex, frame, FrameClass::User, |encoder, batch| {
        encoder.call(batch, &header, ChainView::EMPTY, payload).unwrap();
    });
}

#[test]
fn a_call_with_everything() {
    let header = CallHeader {
        id: Some(CallId { shard: u16::MAX, index: u32::MAX, generation: u32::MAX }),
        origin: Some(u64::MAX),
        hops: 255,
        route: 5,
        key: "clé",
        deadline: Some(Duration::ZERO),
        grant: Some(Grant { epoch: 1, view: 128, grantor: 1 << 63 }),
        extension: ExtensionView::EMPTY,
    };
    let chain = Chain::EMPTY.extended("user", "ada").unwrap().extended("room", "").unwrap();
    let frame = Frame::Call(call(&header, chain.clone()));
    let hex = "41000000 03 3f ffff03 ffffffff0f ffffffff0f ffffffffffffffffff01 ff 05 04 636cc3a9 00 \
        01 8001 80808080808080808001 0f 04 75736572 03 616461 04 726f6f6d 00 706179";
    assert_golden(hex, frame, FrameClass::User, |encoder, batch| {
        encoder.call(batch, &header, chain.view(), payload).unwrap();
    });
}

#[test]
fn a_call_with_an_extension() {
    let mut extension = ExtensionWriter::new();
    extension.put(tag::CONTEXT, b"ctx").unwrap();
    extension.put(tag::PRINCIPAL, b"").unwrap();
    extension.put(300, b"later").unwrap();
    let extension = extension.finish();
    let header = CallHeader { key: "k", extension: extension.view(), ..CallHeader::one_way(5) };
    let mut call = call(&header, Chain::EMPTY);
    call.extension = extension.clone();
    let hex = "18000000 03 80 05 01 6b 0f 01 03 637478 07 00 ac02 05 6c61746572 706179";
    assert_golden(hex, Frame::Call(call), FrameClass::User, |encoder, batch| {
        encoder.call(batch, &header, ChainView::EMPTY, payload).unwrap();
    });
}

#[test]
fn a_request_context_and_a_trace_context() {
    let mut out = BytesMut::new();
    let pairs = [("tenant", "a"), ("x", "")];
    carried::put_pairs(pairs, &mut out);
    assert_eq!(to_hex(&out), "0674656e616e7401610178".to_owned() + "00");
    assert_eq!(carried::pairs(&out), Ok(pairs.to_vec()));
    let trace = TraceView { trace: [0xab; 16], span: [0xcd; 8], flags: 1, state: "a=b" };
    let mut out = BytesMut::new();
    trace.put(&mut out);
    assert_eq!(to_hex(&out), "ab".repeat(16) + &"cd".repeat(8) + "0103613d62");
    assert_eq!(TraceView::parse(&out), Ok(trace));
}

#[test]
fn a_principal() {
    let principal = PrincipalView { name: "ada", roles: vec!["team", "user"] };
    let mut out = BytesMut::new();
    principal.put(&mut out);
    assert_eq!(to_hex(&out), "03616461047465616d0475736572");
    assert_eq!(PrincipalView::parse(&out), Ok(principal));
}

#[test]
fn who_has_named_a_principal() {
    assert_eq!(tag::PRINCIPAL_ISSUER, 13);
    assert_eq!(tag::IDEMPOTENCY_KEY, 14);
    assert_eq!(carried::principal_issuer(b"https://id"), Ok("https://id"));
}

#[test]
fn an_interface_version() {
    for (version, hex) in [(0, "00"), (2, "02"), (300, "ac02"), (u16::MAX, "ffff03")] {
        let mut out = BytesMut::new();
        carried::put_version(version, &mut out);
        assert_eq!((to_hex(&out).as_str(), carried::version(&out)), (hex, Ok(version)));
    }
}

#[test]
fn a_call_by_the_second_version_of_an_interface() {
    let mut version = BytesMut::new();
    carried::put_version(2, &mut version);
    let mut extension = ExtensionWriter::new();
    extension.put(tag::INTERFACE_VERSION, &version).unwrap();
    let extension = extension.finish();
    let header = CallHeader { key: "k", extension: extension.view(), ..CallHeader::one_way(5) };
    let mut call = call(&header, Chain::EMPTY);
    call.extension = extension.clone();
    let hex = "0c000000 03 80 05 01 6b 03 03 01 02 706179";
    assert_golden(hex, Frame::Call(call), FrameClass::User, |encoder, batch| {
        encoder.call(batch, &header, ChainView::EMPTY, payload).unwrap();
    });
}

#[test]
fn every_extension_tag_keeps_its_number() {
    let tags = [
        tag::CONTEXT,
        tag::TRACE,
        tag::INTERFACE_VERSION,
        tag::STREAM_WINDOW,
        tag::TIME_SPENT,
        tag::REMINDER_TICK,
        tag::PRINCIPAL,
        tag::GRANTED_HOST,
        tag::CALLING_CLUSTER,
    ];
    assert_eq!(tags, [1, 2, 3, 4, 5, 6, 7, 8, 12]);
}

fn call(header: &CallHeader<'_>, chain: Chain) -> Call {
    Call {
        extension: Extension::EMPTY,
        id: header.id,
        origin: header.origin,
        hops: header.hops,
        route: header.route,
        key: header.key.into(),
        deadline: header.deadline,
        grant: header.grant,
        chain,
        payload: "pay".into(),
    }
}

#[test]
fn reply() {
    let frame = Frame::Reply(Reply { id: ID, status: Status::Refused, payload: "pay".into() });
    assert_golden("09000000 04 01 ac02 02 02 706179", frame, FrameClass::User, |encoder, batch| {
        encoder.reply(batch, ID, Status::Refused, payload).unwrap();
    });
}

#[test]
fn every_status_keeps_its_byte() {
    let statuses = [
        Status::Ok,
        Status::ActorError,
        Status::Refused,
        Status::Unknown,
        Status::Cycle,
        Status::Panicked,
        Status::Invalid,
        Status::Expired,
        Status::Other(8),
    ];
    for (byte, status) in statuses.into_iter().enumerate() {
        assert_eq!((status.to_byte(), Status::from_byte(byte as u8)), (byte as u8, status));
    }
}

#[test]
fn control() {
    let frame = Frame::Control(Control { channel: 7, payload: "pay".into() });
    assert_golden("05000000 05 07 706179", frame, FrameClass::Control, |encoder, batch| {
        encoder.control(batch, 7, payload).unwrap();
    });
}

#[test]
fn hello_on_the_geo_lane() {
    let hello = Hello::new(HelloBody::new("c", 1, "", Lane::Geo));
    let hex = "38000000 01 4752524d 0100 0100 \
        85 a7636c7573746572 a163 a46e6f6465 01 a46e616d65 a0 ad65787065637465645f70656572 c0 a46c616e65 a367656f";
    assert_golden(hex, Frame::Hello(hello.clone()), FrameClass::Essential, |encoder, batch| {
        encoder.hello(batch, &hello).unwrap();
    });
}

#[test]
fn letter() {
    assert_golden("04000000 14 706179", Frame::Letter("pay".into()), FrameClass::User, |encoder, batch| {
        encoder.letter(batch, payload).unwrap();
    });
}

#[test]
fn state_letter() {
    assert_golden("04000000 15 706179", Frame::StateLetter("pay".into()), FrameClass::User, |encoder, batch| {
        encoder.state_letter(batch, payload).unwrap();
    });
}

#[test]
fn ping_and_pong() {
    assert_golden(
        "09000000 06 0807060504030201",
        Frame::Ping(0x0102_0304_0506_0708),
        FrameClass::Control,
        |e, batch| {
            e.ping(batch, 0x0102_0304_0506_0708);
        },
    );
    assert_golden("09000000 07 0100000000000000", Frame::Pong(1), FrameClass::Control, |e, batch| e.pong(batch, 1));
}

#[test]
fn goodbye() {
    assert_golden("06000000 08 04 73746f70", Frame::Goodbye("stop".into()), FrameClass::Essential, |e, batch| {
        e.goodbye(batch, "stop");
    });
}

#[test]
fn cancel() {
    let origin = Some(300);
    let left = Duration::from_micros(128);
    let frame = Frame::Cancel(Cancel { id: ID, origin, left, kind: "room".into(), key: "a".into() });
    assert_golden("10000000 09 01 ac02 02 ac02 8001 04 726f6f6d 01 61", frame, FrameClass::User, |encoder, batch| {
        encoder.cancel(batch, &CancelView { id: ID, origin, left, kind: "room", key: "a" }).unwrap();
    });
}

#[test]
fn credit() {
    let frame = Frame::Credit(Credit { granted: 300, clock: 1_000_000 });
    assert_golden("06000000 0d ac02 c0843d", frame, FrameClass::Essential, |encoder, batch| {
        encoder.credit(batch, Credit { granted: 300, clock: 1_000_000 });
    });
}

#[test]
fn hello_that_gives_credit() {
    let body = HelloBody::new("c", 1, "", Lane::Control).giving(Flow::new(4 << 20, 7));
    let hex = "55000000 01 4752524d 0100 0100 \
        86 a7636c7573746572 a163 a46e6f6465 01 a46e616d65 a0 ad65787065637465645f70656572 c0 a46c616e65 a7636f6e74726f6c \
        a4666c6f77 82 a677696e646f77 ce00400000 a5636c6f636b 07";
    let hello = Hello::new(body);
    assert_golden(hex, Frame::Hello(hello.clone()), FrameClass::Essential, |encoder, batch| {
        encoder.hello(batch, &hello).unwrap();
    });
}

#[test]
fn stream_item() {
    let frame = Frame::StreamItem(StreamItem { consumer: ID, number: 128, payload: "pay".into() });
    assert_golden("0a000000 0a 01 ac02 02 8001 706179", frame, FrameClass::Essential, |encoder, batch| {
        encoder.stream_item(batch, ID, 128, payload).unwrap();
    });
}

#[test]
fn stream_credit() {
    let credit = StreamCredit {
        stream: CallId { shard: 0, index: 3, generation: 1 },
        token: 0x0102_0304_0506_0708,
        consumer: ID,
        codec: 1,
        window: 64,
        consumed: 300,
    };
    let hex = "14000000 0b 00 03 01 0807060504030201 01 ac02 02 01 40 ac02";
    assert_golden(hex, Frame::StreamCredit(credit), FrameClass::Essential, |encoder, batch| {
        encoder.stream_credit(batch, &credit);
    });
}

#[test]
fn stream_end() {
    let end = StreamEnd { consumer: ID, number: 5, status: Status::Unknown, payload: "pay".into() };
    assert_golden(
        "0a000000 0c 01 ac02 02 05 03 706179",
        Frame::StreamEnd(end),
        FrameClass::Essential,
        |encoder, batch| {
            encoder.stream_end(batch, ID, 5, Status::Unknown, payload).unwrap();
        },
    );
}

#[test]
fn an_unknown_frame_is_essential_to_the_simulated_network() {
    assert_eq!(classify(&[1, 0, 0, 0, 99]), FrameClass::Essential);
    assert_eq!(classify(&[]), FrameClass::Essential);
    assert_eq!(frame_len(&[1, 0, 0]), None);
    assert_eq!(frame_len(&[0xff; 4]), Some((1 << 32) + 3));
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Post {
    user: String,
    weight: Option<u32>,
    how: How,
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
enum How {
    Loud,
    Times(u8),
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct NoArguments {}

fn assert_payload<T>(codec: Codec, hex: &str, value: T)
where
    T: Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug,
{
    let mut batch = BytesMut::new();
    codec::encode(codec, 3, &value, &mut batch).unwrap();
    assert_eq!(to_hex(&batch), hex.replace(' ', ""));
    assert_eq!(codec::parse(&batch), Ok(Payload { codec, type_version: 3, value: &batch[2..] }));
    assert_eq!(codec::decode(&batch), Ok(value));
}

#[test]
fn message_pack() {
    let hex = "01 03 83 a475736572 a3616461 a6776569676874 cc80 a3686f77 81 a554696d6573 02";
    assert_payload(Codec::MessagePack, hex, Post { user: "ada".into(), weight: Some(128), how: How::Times(2) });
    let hex = "01 03 83 a475736572 a0 a6776569676874 c0 a3686f77 a44c6f7564";
    assert_payload(Codec::MessagePack, hex, Post { user: String::new(), weight: None, how: How::Loud });
    assert_payload(Codec::MessagePack, "01 03 80", NoArguments {});
    assert_payload(Codec::MessagePack, "01 03 c0", ());
    assert_payload(Codec::MessagePack, "01 03 92 07 c3", (7, true));
}

#[test]
fn json() {
    let mut batch = BytesMut::new();
    codec::encode(Codec::Json, 1, &Post { user: "a".into(), weight: None, how: How::Times(2) }, &mut batch).unwrap();
    assert_eq!(&batch[..], b"\x02\x01{\"user\":\"a\",\"weight\":null,\"how\":{\"Times\":2}}");
    assert_payload(Codec::Json, "02 03 7b7d", NoArguments {});
}

#[test]
fn the_tick_of_a_reminder() {
    let tick = TickView { registration: 0x0102_0304_0506_0708, due_millis: 300, missed: 2, name: "daily" };
    let mut out = BytesMut::new();
    tick.put(&mut out);
    let golden = [8, 7, 6, 5, 4, 3, 2, 1, 0xac, 2, 2, 5, b'd', b'a', b'i', b'l', b'y'];
    assert_eq!(out[..], golden);
    assert_eq!(TickView::parse(&golden), Ok(tick));
    for cut in 0..golden.len() {
        assert!(TickView::parse(&golden[..cut]).is_err(), "cut at {cut}");
    }
}

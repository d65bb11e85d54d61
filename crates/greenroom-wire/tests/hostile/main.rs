//! Bytes from outside that must be refused, each by name.

mod payloads;

use bytes::{BufMut, Bytes, BytesMut};
use greenroom_wire::carried::{self, PrincipalView, TraceView};
use greenroom_wire::limit::{
    CHAIN_MAX, CONTEXT_LEN_MAX, CONTEXT_PAIRS_MAX, EXTENSION_FIELDS_MAX, EXTENSION_LEN_MAX, KEY_LEN_MAX, NAME_LEN_MAX,
    ROUTES_MAX,
};
use greenroom_wire::{
    CallHeader, Chain, ChainError, ChainView, Decoder, EncodeError, Encoder, ExtensionError, ExtensionView,
    ExtensionWriter, Frame, FrameError, Hello, HelloBody, HelloError, Lane, Limits, RouteEncoder, RouteError,
    RouteTable, Versions, negotiate,
};

fn hello() -> Hello {
    Hello::new(HelloBody::new("music", 7, "node-a", Lane::Control))
}

/// A decoder that has had its Hello.
fn greeted(limits: Limits) -> Decoder {
    let mut decoder = Decoder::new(limits);
    let mut buf = BytesMut::new();
    Encoder::default().hello(&mut buf, &hello()).unwrap();
    decoder.decode(&mut buf).unwrap();
    decoder
}

fn framed(frame_type: u8, body: &[u8]) -> BytesMut {
    let mut buf = BytesMut::new();
    buf.put_u32_le(1 + body.len() as u32);
    buf.put_u8(frame_type);
    buf.put_slice(body);
    buf
}

fn error_of(frame_type: u8, body: &[u8]) -> FrameError {
    let mut buf = framed(frame_type, body);
    let views = greeted(Limits::default()).views(&buf.clone()).next().unwrap_err();
    let error = greeted(Limits::default()).decode(&mut buf).unwrap_err();
    assert_eq!(error, views);
    error
}

fn first_error(mut bytes: BytesMut) -> FrameError {
    Decoder::default().decode(&mut bytes).unwrap_err()
}

#[test]
fn a_frame_over_the_limit_is_refused_by_its_length_alone() {
    let mut decoder = greeted(Limits { frame_len_max: 100 });
    let mut buf = BytesMut::from(&[101, 0, 0, 0][..]);
    assert_eq!(decoder.decode(&mut buf), Err(FrameError::FrameTooLong { len: 101, max: 100 }));
}

#[test]
fn the_largest_length_is_refused_by_default() {
    let mut buf = BytesMut::from(&[0xff; 4][..]);
    let error = greeted(Limits::default()).decode(&mut buf).unwrap_err();
    assert_eq!(error, FrameError::FrameTooLong { len: u32::MAX, max: 16 << 20 });
}

#[test]
fn a_frame_at_the_limit_is_taken() {
    let mut decoder = greeted(Limits { frame_len_max: 100 });
    assert!(matches!(decoder.decode(&mut framed(5, &[0; 99])), Ok(Some(Frame::Control(_)))));
}

#[test]
fn a_length_of_zero_is_refused() {
    assert_eq!(greeted(Limits::default()).decode(&mut BytesMut::from(&[0; 4][..])), Err(FrameError::Empty));
}

#[test]
fn a_declared_length_allocates_nothing() {
    let mut buf = BytesMut::with_capacity(64);
    buf.put_u32_le(16 << 20);
    buf.put_u8(3);
    let capacity = buf.capacity();
    assert_eq!(greeted(Limits::default()).decode(&mut buf), Ok(None));
    assert_eq!(buf.capacity(), capacity);
}

#[test]
fn an_error_is_final() {
    let mut decoder = greeted(Limits::default());
    let error = decoder.decode(&mut framed(3, &[0x40])).unwrap_err();
    assert_eq!(decoder.decode(&mut framed(6, &[0; 8])), Err(error.clone()));
    assert_eq!(decoder.views(&framed(6, &[0; 8])).next(), Err(error));
}

#[test]
fn a_first_frame_that_is_no_hello_is_refused_before_it_is_whole() {
    let bytes = BytesMut::from(&[200, 0, 0, 0, 3][..]);
    assert_eq!(first_error(bytes), FrameError::HelloExpected { found: 3 });
}

#[test]
fn a_first_frame_over_64_kib_is_refused() {
    let bytes = BytesMut::from(&[1, 0, 1, 0][..]);
    assert_eq!(first_error(bytes), FrameError::FrameTooLong { len: 65_537, max: 65_536 });
}

#[test]
fn a_second_hello_is_refused() {
    let mut buf = BytesMut::new();
    Encoder::default().hello(&mut buf, &hello()).unwrap();
    assert_eq!(greeted(Limits::default()).decode(&mut buf), Err(FrameError::HelloRepeated));
}

#[test]
fn wrong_magic_is_refused() {
    assert_eq!(first_error(framed(1, b"HTTP/1.1")), FrameError::WrongMagic { found: *b"HTTP" });
}

#[test]
fn an_http_request_is_refused() {
    assert!(matches!(first_error(BytesMut::from("GET / HTTP/1.1\r\n")), FrameError::FrameTooLong { .. }));
}

#[test]
fn an_unreadable_hello_body_names_the_versions_and_the_field() {
    let body = b"GRRM\x02\0\x09\0\x82\xa7cluster\xa1c\xa4node\xa1n";
    let FrameError::HelloBody { min: 2, max: 9, what } = first_error(framed(1, body)) else { panic!() };
    assert!(what.contains("`node`"), "{what}");
}

#[test]
fn a_future_hello_is_read_and_its_additions_skipped() {
    let mut body = b"GRRM\x01\0\x09\0\x83\xa7cluster\xa1c\xa4node\x05\xa5moods\x92\x01\x02".to_vec();
    body.extend_from_slice(b"what comes after it too");
    let Ok(Some(Frame::Hello(theirs))) = Decoder::default().decode(&mut framed(1, &body)) else { panic!() };
    assert_eq!(theirs.versions, Versions { min: 1, max: 9 });
    assert_eq!((theirs.body.node, theirs.body.lane, theirs.body.expected_peer), (5, Lane::Control, None));
}

#[test]
fn negotiation_takes_the_highest_common_version() {
    let with = |min, max| Hello { versions: Versions { min, max }, body: hello().body };
    assert_eq!(negotiate(&with(1, 3), &with(2, 9)), Ok(3));
    assert_eq!(negotiate(&with(2, 9), &with(1, 3)), Ok(3));
    let error = negotiate(&with(1, 3), &with(4, 9)).unwrap_err();
    assert!(matches!(error, HelloError::NoCommonVersion { .. }));
    assert!(matches!(negotiate(&with(3, 1), &with(1, 3)), Err(HelloError::NoCommonVersion { .. })));
}

#[test]
fn another_cluster_is_refused() {
    let theirs = Hello::new(HelloBody::new("film", 8, "node-b", Lane::Control));
    assert!(matches!(negotiate(&hello(), &theirs), Err(HelloError::WrongCluster { .. })));
}

#[test]
fn another_incarnation_is_refused_by_both_sides() {
    let theirs = Hello::new(HelloBody::new("music", 8, "node-b", Lane::Control).expecting(6));
    let expected = Err(HelloError::WrongIncarnation { expected: 6, found: 7 });
    assert_eq!(negotiate(&hello(), &theirs), expected);
    assert_eq!(negotiate(&theirs, &hello()), expected);
    let theirs = Hello::new(HelloBody::new("music", 8, "node-b", Lane::Control).expecting(7));
    assert_eq!(negotiate(&hello(), &theirs), Ok(1));
}

#[test]
fn a_shard_that_the_peer_does_not_have_is_refused() {
    let theirs = Hello::new(HelloBody::new("music", 8, "node-b", Lane::User { shard: 2, shards: 2 }));
    assert_eq!(negotiate(&hello(), &theirs), Err(HelloError::WrongLane { shard: 2, shards: 2 }));
}

#[test]
fn a_truncated_varint_is_refused() {
    assert_eq!(error_of(3, &[0, 0x80]), FrameError::Truncated { field: "call route" });
    assert_eq!(error_of(3, &[0]), FrameError::Truncated { field: "call route" });
}

#[test]
fn an_overlong_varint_is_refused_near_the_end_and_far_from_it() {
    let bad = FrameError::BadVarint { field: "call route" };
    assert_eq!(error_of(3, &[0, 0x81, 0x00]), bad);
    assert_eq!(error_of(3, &[0, 0x81, 0x00, 0, 0, 0, 0, 0, 0, 0, 0]), bad);
    assert_eq!(error_of(3, &[0, 0x81, 0x80, 0x00, 0, 0, 0, 0, 0, 0, 0]), bad);
}

#[test]
fn a_varint_over_64_bits_is_refused() {
    let bad = FrameError::BadVarint { field: "call origin" };
    let mut body = vec![0x02];
    body.extend([0xff; 9]);
    body.push(0x02);
    assert_eq!(error_of(3, &body), bad);
    assert_eq!(error_of(3, &[&[0x02][..], &[0xff; 20]].concat()), bad);
}

#[test]
fn a_route_over_16_bits_is_refused() {
    let out = FrameError::OutOfBounds { field: "call route", value: 65_536, max: 65_535 };
    assert_eq!(error_of(3, &[0, 0x80, 0x80, 0x04]), out);
}

#[test]
fn a_key_over_its_limit_is_refused_though_its_bytes_are_there() {
    let mut body = vec![0, 0, 0x81, 0x08];
    body.extend([b'k'; KEY_LEN_MAX + 1]);
    assert_eq!(error_of(3, &body), FrameError::OutOfBounds { field: "call key", value: 1025, max: 1024 });
}

#[test]
fn a_key_that_is_not_there_is_refused() {
    assert_eq!(error_of(3, &[0, 0, 5, b'k']), FrameError::Truncated { field: "call key" });
}

#[test]
fn a_key_that_is_not_utf8_is_refused() {
    assert_eq!(error_of(3, &[0, 0, 1, 0xff]), FrameError::NotUtf8 { field: "call key" });
}

#[test]
fn the_free_call_flag_is_refused() {
    assert_eq!(error_of(3, &[0x41]), FrameError::UnknownFlags { flags: 0x41 });
}

#[test]
fn an_unknown_field_of_a_calls_extension_is_skipped() {
    let Ok(Some(Frame::Call(call))) =
        greeted(Limits::default()).decode(&mut framed(3, &[0x80, 9, 1, b'k', 3, 0x63, 1, 0xad, b'p']))
    else {
        panic!()
    };
    assert_eq!((call.route, &*call.key, &*call.payload), (9, "k", &b"p"[..]));
    assert_eq!((call.extension.view().find(0x63), call.extension.view().find(1)), (Some(&[0xad][..]), None));
    assert_eq!(error_of(3, &[0x80, 9, 1, b'k', 2, 0xde]), FrameError::Truncated { field: "call extension" });
}

#[test]
fn half_a_field_of_an_extension_is_refused() {
    assert_eq!(error_of(3, &[0x80, 9, 1, b'k', 1, 7]), FrameError::Truncated { field: "extension field" });
    assert_eq!(error_of(3, &[0x80, 9, 1, b'k', 2, 7, 1, 0xad]), FrameError::Truncated { field: "extension field" });
    assert_eq!(error_of(3, &[0x80, 9, 1, b'k', 1, 0x80]), FrameError::Truncated { field: "extension tag" });
}

#[test]
fn a_tag_that_comes_twice_or_out_of_order_is_refused() {
    for tag in [1, 2] {
        let error = FrameError::Extension(ExtensionError::OutOfOrder { tag });
        assert_eq!(ExtensionView::parse(&[2, 0, tag as u8, 0]), Err(error));
        let mut writer = ExtensionWriter::new();
        writer.put(2, b"").unwrap();
        assert_eq!(writer.put(tag, b""), Err(ExtensionError::OutOfOrder { tag }));
        assert_eq!(writer.view().as_bytes(), [2, 0]);
    }
}

#[test]
fn a_context_over_its_bounds_is_refused() {
    assert_eq!(carried::pairs(&[1, b'k']), Err(FrameError::Truncated { field: "context value" }));
    assert_eq!(carried::version(&[]), Err(FrameError::Truncated { field: "interface version" }));
    assert!(matches!(carried::version(&[0x80, 0x80, 4]), Err(FrameError::OutOfBounds { value: 65_536, .. })));
    assert_eq!(carried::pairs(&[1, 0xff, 0]), Err(FrameError::NotUtf8 { field: "context key" }));
    let many = [0, 0].repeat(CONTEXT_PAIRS_MAX);
    assert!(carried::pairs(&many).is_ok());
    let error = carried::pairs(&[many, vec![0, 0]].concat()).unwrap_err();
    assert_eq!(error, FrameError::OutOfBounds { field: "context pairs", value: 65, max: 64 });
    let mut out = BytesMut::new();
    let half = "v".repeat(CONTEXT_LEN_MAX / 2);
    carried::put_pairs([("a", &*half), ("b", &*half)], &mut out);
    assert_eq!(carried::pairs(&out), Err(FrameError::OutOfBounds { field: "context", value: 8194, max: 8192 }));
}

#[test]
fn a_short_trace_context_is_refused() {
    assert_eq!(TraceView::parse(&[0; 24]), Err(FrameError::Truncated { field: "trace flags" }));
    assert_eq!(TraceView::parse(&[0; 25]), Err(FrameError::Truncated { field: "trace state" }));
    let error = TraceView::parse(&[&[0; 25][..], &[0x81, 0x04], &[b'a'; 513]].concat()).unwrap_err();
    assert_eq!(error, FrameError::OutOfBounds { field: "trace state", value: 513, max: 512 });
}

#[test]
fn an_extension_over_its_bounds_is_refused_on_both_sides() {
    let mut writer = ExtensionWriter::new();
    let mut bytes = Vec::new();
    for tag in 0..EXTENSION_FIELDS_MAX as u64 {
        writer.put(tag, b"").unwrap();
        bytes.extend([tag as u8, 0]);
    }
    assert_eq!(writer.put(100, b""), Err(ExtensionError::TooMany));
    assert_eq!(ExtensionView::parse(&bytes), Ok(writer.view()));
    bytes.extend([100, 0]);
    assert_eq!(ExtensionView::parse(&bytes), Err(ExtensionError::TooMany.into()));

    let mut writer = ExtensionWriter::new();
    let long = vec![0; EXTENSION_LEN_MAX - 2];
    assert_eq!(writer.put(1, &long), Err(ExtensionError::TooLong { len: EXTENSION_LEN_MAX + 1 }));
    writer.put(1, &long[1..]).unwrap();
    let max = EXTENSION_LEN_MAX as u64;
    let out = FrameError::OutOfBounds { field: "call extension", value: max + 1, max };
    assert_eq!(ExtensionView::parse(&vec![0; EXTENSION_LEN_MAX + 1]), Err(out.clone()));
    assert_eq!(error_of(3, &[0x80, 9, 1, b'k', 0x81, 0x80, 0x01]), out);
}

#[test]
fn an_unknown_frame_is_skipped() {
    let mut buf = framed(200, b"later");
    buf.unsplit(framed(6, &[0; 8]));
    let mut decoder = greeted(Limits::default());
    let Ok(Some(Frame::Unknown(unknown))) = decoder.decode(&mut buf) else { panic!() };
    assert_eq!((unknown.frame_type, &*unknown.body), (200, &b"later"[..]));
    assert_eq!(decoder.decode(&mut buf), Ok(Some(Frame::Ping(0))));
}

#[test]
fn bytes_after_a_known_body_are_ignored() {
    let mut decoder = greeted(Limits::default());
    assert_eq!(decoder.decode(&mut framed(7, &[1, 0, 0, 0, 0, 0, 0, 0, 99])), Ok(Some(Frame::Pong(1))));
    assert!(matches!(decoder.decode(&mut framed(8, b"\x01x and more")), Ok(Some(Frame::Goodbye(why))) if &*why == "x"));
    assert!(matches!(decoder.decode(&mut framed(2, b"\0\x01k\x01m and more")), Ok(Some(Frame::Define(_)))));
}

#[test]
fn a_short_ping_control_reply_or_define_is_refused() {
    assert_eq!(error_of(6, &[0; 7]), FrameError::Truncated { field: "ping nonce" });
    assert_eq!(error_of(5, &[]), FrameError::Truncated { field: "control channel" });
    assert_eq!(error_of(4, &[0, 0, 0]), FrameError::Truncated { field: "reply status" });
    assert_eq!(error_of(2, &[0, 1, b'k']), FrameError::Truncated { field: "define method" });
    assert_eq!(error_of(9, &[0, 0, 0, 0, 0, 1, b'k']), FrameError::Truncated { field: "cancel key" });
    assert_eq!(error_of(9, &[0, 0, 0, 0, 0, 1, 0xff]), FrameError::NotUtf8 { field: "cancel kind" });
}

#[test]
fn a_short_frame_of_a_stream_is_refused() {
    assert_eq!(error_of(10, &[1, 2, 3]), FrameError::Truncated { field: "stream item number" });
    assert_eq!(error_of(11, &[1, 2, 3, 0, 0, 0]), FrameError::Truncated { field: "stream token" });
    let credit = [1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 4, 5, 6, 1, 0];
    assert_eq!(error_of(11, &credit), FrameError::Truncated { field: "stream consumed" });
    assert_eq!(error_of(12, &[1, 2, 3, 4]), FrameError::Truncated { field: "stream status" });
}

#[test]
fn a_window_over_32_bits_is_refused() {
    let credit = [1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 4, 5, 6, 1, 0x80, 0x80, 0x80, 0x80, 0x10, 0];
    assert!(matches!(error_of(11, &credit), FrameError::OutOfBounds { field: "stream window", .. }));
}

#[test]
fn what_follows_a_stream_credit_is_ignored() {
    let credit = [1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 4, 5, 6, 1, 8, 0, 99, 99];
    let frame = greeted(Limits::default()).decode(&mut framed(11, &credit));
    assert!(matches!(frame, Ok(Some(Frame::StreamCredit(credit))) if credit.window == 8));
}

#[test]
fn a_name_over_its_limit_is_refused() {
    let mut body = vec![0, 0x81, 0x01];
    body.extend([b'k'; NAME_LEN_MAX + 1]);
    assert_eq!(error_of(2, &body), FrameError::OutOfBounds { field: "define kind", value: 129, max: 128 });
}

#[test]
fn a_chain_over_its_depth_is_refused() {
    let chain = [1, b'a', 1, b'b'].repeat(CHAIN_MAX + 1);
    assert_eq!(ChainView::parse(&chain), Err(ChainError::TooDeep.into()));
    assert!(ChainView::parse(&chain[4..]).is_ok());
    let empty_names = vec![0; 2 * (CHAIN_MAX + 1)];
    assert_eq!(ChainView::parse(&empty_names), Err(ChainError::TooDeep.into()));
}

#[test]
fn half_an_entry_is_no_chain() {
    assert_eq!(ChainView::parse(&[1, b'a']), Err(FrameError::Truncated { field: "chain key" }));
    assert_eq!(Chain::from_bytes(Bytes::from_static(&[9])), Err(FrameError::Truncated { field: "chain kind" }));
    assert_eq!(error_of(3, &[0x20, 0, 0, 2, 1, b'a']), FrameError::Truncated { field: "chain key" });
}

#[test]
fn a_full_chain_does_not_grow() {
    let mut chain = Chain::EMPTY;
    for n in 0..CHAIN_MAX {
        chain = chain.extended("kind", &n.to_string()).unwrap();
    }
    assert_eq!(chain.extended("kind", "64"), Err(ChainError::TooDeep));
    assert!(chain.view().contains("kind", "63"));
    assert!(!chain.view().contains("kind", "64"));
    let long = "k".repeat(NAME_LEN_MAX + 1);
    assert_eq!(Chain::EMPTY.extended(&long, ""), Err(ChainError::TooLong { field: "kind", len: 129, max: 128 }));
}

#[test]
fn a_call_for_an_undefined_route_is_refused() {
    let mut table = RouteTable::new();
    assert_eq!(table.resolve(0), Err(RouteError::Undefined { route: 0 }));
    table.define(0, "post").unwrap();
    assert_eq!(table.resolve(0), Ok(&"post"));
    assert_eq!(table.define(0, "read"), Err(RouteError::OutOfOrder { route: 0, next: 1 }));
    assert_eq!(table.define(2, "read"), Err(RouteError::OutOfOrder { route: 2, next: 1 }));
}

#[test]
fn routes_run_out_on_both_sides_at_the_same_number() {
    let (mut routes, mut table) = (RouteEncoder::new(), RouteTable::new());
    let mut batch = BytesMut::new();
    for n in 0..ROUTES_MAX {
        batch.clear();
        let route = routes.route(&Encoder::default(), &mut batch, "kind", &n.to_string()).unwrap();
        table.define(route, ()).unwrap();
    }
    batch.clear();
    assert_eq!(routes.route(&Encoder::default(), &mut batch, "kind", "more"), Err(RouteError::Full));
    assert_eq!(table.define(ROUTES_MAX as u16, ()), Err(RouteError::Full));
    assert_eq!(routes.route(&Encoder::default(), &mut batch, "kind", "7"), Ok(7));
    assert!(batch.is_empty());
}

#[test]
fn what_cannot_be_encoded_leaves_the_batch_as_it_was() {
    let encoder = Encoder::new(Limits { frame_len_max: 64 });
    let mut batch = BytesMut::from("before");
    let long = "k".repeat(KEY_LEN_MAX + 1);
    let nothing = |_: &mut BytesMut| Ok::<(), EncodeError>(());
    let header = CallHeader { key: &long, ..CallHeader::one_way(0) };
    let error = encoder.call(&mut batch, &header, ChainView::EMPTY, nothing).unwrap_err();
    assert_eq!(error, EncodeError::TextTooLong { field: "key", len: 1025, max: 1024 });
    let error = encoder
        .call(&mut batch, &CallHeader::one_way(0), ChainView::EMPTY, |batch| {
            batch.put_bytes(0, 61);
            Ok::<(), EncodeError>(())
        })
        .unwrap_err();
    assert_eq!(error, EncodeError::FrameTooLong { len: 65, max: 64 });
    let refusal = EncodeError::Value { codec: "none", what: "no".into() };
    let refused = encoder.control(&mut batch, 1, |batch| {
        batch.put_u8(9);
        Err(refusal.clone())
    });
    assert_eq!(refused, Err(refusal));
    assert!(encoder.define(&mut batch, 0, &long, "m").is_err());
    let whale = Hello::new(HelloBody::new("c".repeat(70_000), 1, "n", Lane::Control));
    assert!(Encoder::default().hello(&mut batch, &whale).is_err());
    assert_eq!(&batch[..], b"before");
}

#[test]
fn a_long_reason_is_cut_between_characters() {
    let mut batch = BytesMut::new();
    Encoder::default().goodbye(&mut batch, &"é".repeat(600).replacen('é', "e", 1));
    let Ok(Some(Frame::Goodbye(reason))) = greeted(Limits::default()).decode(&mut batch) else { panic!() };
    assert_eq!(reason.len(), 1023);
}

#[test]
fn a_principal_is_within_its_bounds() {
    assert!(PrincipalView::parse(&[0]).is_ok());
    assert_eq!(PrincipalView::parse(&[]), Err(FrameError::Truncated { field: "principal name" }));
    assert_eq!(PrincipalView::parse(&[1, b'a', 2, b'b']), Err(FrameError::Truncated { field: "principal role" }));
    assert_eq!(PrincipalView::parse(&[1, 0xff]), Err(FrameError::NotUtf8 { field: "principal name" }));
    let many = [vec![1, b'a'], [1, b'r'].repeat(33)].concat();
    assert!(PrincipalView::parse(&many[..66]).is_ok());
    assert_eq!(
        PrincipalView::parse(&many),
        Err(FrameError::OutOfBounds { field: "principal roles", value: 33, max: 32 })
    );
    let long = [vec![0x81, 2], vec![b'a'; 257]].concat();
    assert!(PrincipalView::parse(&long).is_err());
    assert!(carried::principal_issuer(&[b'a'; 257]).is_err() && carried::principal_issuer(&[0xff]).is_err());
}

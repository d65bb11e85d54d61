//! What is encoded is decoded, however the bytes arrive.

mod shapes;

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use greenroom_wire::codec::{self, Codec};
use greenroom_wire::{
    Call, CallHeader, CallId, Cancel, CancelView, Chain, Control, Decoder, Define, EncodeError, Encoder, Extension,
    ExtensionWriter, Frame, FrameError, FrameView, Grant, Hello, HelloBody, Lane, Reply, RouteEncoder, RouteTable,
    Status, StreamCredit, StreamEnd, StreamItem,
};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

fn call_id() -> impl Strategy<Value = CallId> {
    (any::<u16>(), any::<u32>(), any::<u32>()).prop_map(|(shard, index, generation)| CallId {
        shard,
        index,
        generation,
    })
}

/// Numbers of every length in bits.
fn number() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0..64_u32).prop_map(|(value, shift)| value >> shift)
}

fn bytes() -> impl Strategy<Value = Bytes> {
    prop::collection::vec(any::<u8>(), 0..200).prop_map(Bytes::from)
}

fn chain() -> impl Strategy<Value = Chain> {
    prop::collection::vec((".{0,20}", ".{0,150}"), 0..4)
        .prop_map(|entries| entries.iter().fold(Chain::EMPTY, |chain, (kind, key)| chain.extended(kind, key).unwrap()))
}

fn extension() -> impl Strategy<Value = Extension> {
    prop::collection::btree_map(number(), prop::collection::vec(any::<u8>(), 0..100), 0..4).prop_map(|fields| {
        let mut writer = ExtensionWriter::new();
        fields.iter().for_each(|(tag, bytes)| writer.put(*tag, bytes).unwrap());
        assert!(writer.view().fields().eq(fields.iter().map(|(tag, bytes)| (*tag, &bytes[..]))));
        writer.finish()
    })
}

fn call() -> impl Strategy<Value = Call> {
    let grant = (number(), number(), number()).prop_map(|(epoch, view, grantor)| Grant { epoch, view, grantor });
    let id_to_route = (prop::option::of(call_id()), prop::option::of(number()), any::<u8>(), any::<u16>());
    let rest = (".{0,100}", prop::option::of(number()), prop::option::of(grant), chain(), extension(), bytes());
    (id_to_route, rest).prop_map(|((id, origin, hops, route), (key, deadline, grant, chain, extension, payload))| {
        Call {
            id,
            origin,
            hops,
            route,
            key: key.into(),
            deadline: deadline.map(Duration::from_micros),
            grant,
            chain,
            extension,
            payload,
        }
    })
}

fn frame() -> impl Strategy<Value = Frame> {
    prop_oneof![
        call().prop_map(Frame::Call),
        (call_id(), any::<u8>(), bytes()).prop_map(|(id, status, payload)| {
            Frame::Reply(Reply { id, status: Status::from_byte(status), payload })
        }),
        (any::<u16>(), ".{0,30}", ".{0,30}").prop_map(|(route, kind, method)| {
            Frame::Define(Define { route, kind: kind.into(), method: method.into() })
        }),
        (any::<u8>(), bytes()).prop_map(|(channel, payload)| Frame::Control(Control { channel, payload })),
        (call_id(), number(), number(), ".{0,30}", ".{0,100}").prop_map(|(id, origin, left, kind, key)| {
            let (origin, left) = (Some(origin).filter(|origin| *origin != 0), Duration::from_micros(left));
            Frame::Cancel(Cancel { id, origin, left, kind: kind.into(), key: key.into() })
        }),
        bytes().prop_map(Frame::Letter),
        bytes().prop_map(Frame::StateLetter),
        any::<u64>().prop_map(Frame::Ping),
        any::<u64>().prop_map(Frame::Pong),
        ".{0,100}".prop_map(|reason| Frame::Goodbye(reason.into())),
        (call_id(), number(), bytes())
            .prop_map(|(consumer, number, payload)| { Frame::StreamItem(StreamItem { consumer, number, payload }) }),
        (call_id(), any::<u64>(), call_id(), any::<u8>(), any::<u32>(), number()).prop_map(
            |(stream, token, consumer, codec, window, consumed)| {
                Frame::StreamCredit(StreamCredit { stream, token, consumer, codec, window, consumed })
            }
        ),
        (call_id(), number(), any::<u8>(), bytes()).prop_map(|(consumer, number, status, payload)| {
            Frame::StreamEnd(StreamEnd { consumer, number, status: Status::from_byte(status), payload })
        }),
    ]
}

fn encode(frame: &Frame, batch: &mut BytesMut) {
    let encoder = Encoder::default();
    let put = |payload: Bytes| {
        move |batch: &mut BytesMut| {
            batch.put(payload);
            Ok::<(), EncodeError>(())
        }
    };
    match frame {
        Frame::Cancel(Cancel { id, origin, left, kind, key }) => {
            let cancel = CancelView { id: *id, origin: *origin, left: *left, kind, key };
            encoder.cancel(batch, &cancel).unwrap();
        }
        Frame::Call(Call { id, origin, hops, route, key, deadline, grant, chain, extension, payload }) => {
            let header = CallHeader {
                id: *id,
                origin: *origin,
                hops: *hops,
                route: *route,
                key,
                deadline: *deadline,
                grant: *grant,
                extension: extension.view(),
            };
            encoder.call(batch, &header, chain.view(), put(payload.clone())).unwrap();
        }
        Frame::Reply(reply) => encoder.reply(batch, reply.id, reply.status, put(reply.payload.clone())).unwrap(),
        Frame::Define(define) => encoder.define(batch, define.route, &define.kind, &define.method).unwrap(),
        Frame::Control(control) => encoder.control(batch, control.channel, put(control.payload.clone())).unwrap(),
        Frame::Letter(payload) => encoder.letter(batch, put(payload.clone())).unwrap(),
        Frame::StateLetter(payload) => encoder.state_letter(batch, put(payload.clone())).unwrap(),
        Frame::Ping(nonce) => encoder.ping(batch, *nonce),
        Frame::Pong(nonce) => encoder.pong(batch, *nonce),
        Frame::Goodbye(reason) => encoder.goodbye(batch, reason),
        Frame::StreamItem(item) => {
            encoder.stream_item(batch, item.consumer, item.number, put(item.payload.clone())).unwrap();
        }
        Frame::StreamCredit(credit) => encoder.stream_credit(batch, credit),
        Frame::StreamEnd(end) => {
            encoder.stream_end(batch, end.consumer, end.number, end.status, put(end.payload.clone())).unwrap();
        }
        other => unreachable!("{other:?} is not generated"),
    }
}

fn stream(frames: &[Frame]) -> (Hello, BytesMut) {
    let hello = Hello::new(HelloBody::new("music", 7, "node-a", Lane::User { shard: 0, shards: 2 }));
    let mut stream = BytesMut::new();
    Encoder::default().hello(&mut stream, &hello).unwrap();
    for frame in frames {
        encode(frame, &mut stream);
    }
    (hello, stream)
}

/// The frames of a stream that arrives in pieces of `step` bytes, and the error that ended it.
fn decode(stream: &[u8], step: usize) -> (Vec<Frame>, Option<FrameError>) {
    let (mut decoder, mut buf, mut frames) = (Decoder::default(), BytesMut::new(), Vec::new());
    for piece in stream.chunks(step) {
        buf.put_slice(piece);
        loop {
            match decoder.decode(&mut buf) {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => return (frames, Some(error)),
            }
        }
    }
    (frames, None)
}

proptest! {
    #[test]
    fn frames_survive_the_wire_whole_and_byte_by_byte(frames in prop::collection::vec(frame(), 0..6)) {
        let (hello, stream) = stream(&frames);
        let expected: Vec<_> = std::iter::once(Frame::Hello(hello)).chain(frames).collect();
        let (whole, error) = decode(&stream, stream.len());
        prop_assert_eq!((&whole, error), (&expected, None));
        let (byte_by_byte, error) = decode(&stream, 1);
        prop_assert_eq!((&byte_by_byte, error), (&expected, None));
    }

    #[test]
    fn a_borrowed_call_is_the_shared_one(sent in call()) {
        let (_, stream) = stream(&[Frame::Call(sent.clone())]);
        let mut decoder = Decoder::default();
        let mut views = decoder.views(&stream);
        prop_assert!(matches!(views.next(), Ok(Some(FrameView::Hello(_)))));
        let Ok(Some(FrameView::Call(view))) = views.next() else { panic!("a call was sent") };
        prop_assert_eq!(view.header.key, &*sent.key);
        prop_assert_eq!(view.header.deadline, sent.deadline);
        prop_assert_eq!(view.chain.to_chain(), sent.chain);
        prop_assert_eq!(view.header.extension, sent.extension.view());
        prop_assert_eq!(view.payload, &sent.payload);
        prop_assert_eq!(views.next(), Ok(None));
        prop_assert_eq!(views.consumed(), stream.len());
    }

    #[test]
    fn a_damaged_stream_decodes_alike_whole_and_byte_by_byte(
        frames in prop::collection::vec(frame(), 1..4),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let (_, mut stream) = stream(&frames);
        for (at, byte) in damage {
            let at = at.index(stream.len());
            stream[at] = byte;
        }
        prop_assert_eq!(decode(&stream, stream.len()), decode(&stream, 1));
    }

    #[test]
    fn any_bytes_are_refused_or_decoded(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let (_, mut stream) = stream(&[]);
        stream.put_slice(&bytes);
        prop_assert_eq!(decode(&stream, stream.len()), decode(&stream, 1));
        prop_assert!(codec::decode::<()>(&bytes).is_err() || bytes.len() >= 3);
    }

    #[test]
    fn values_survive_both_codecs(value in value(), type_version: u8) {
        for codec in [Codec::MessagePack, Codec::Json] {
            let mut batch = BytesMut::new();
            codec::encode(codec, type_version, &value, &mut batch).unwrap();
            prop_assert_eq!(codec::parse(&batch).unwrap().type_version, type_version);
            prop_assert_eq!(&codec::decode::<Value>(&batch).unwrap(), &value);
        }
    }

    #[test]
    fn routes_mean_the_same_on_both_sides(
        uses in prop::collection::vec(("[ab]{1,2}", "[ab]{0,2}"), 1..40),
    ) {
        let (mut routes, mut table) = (RouteEncoder::new(), RouteTable::new());
        for (kind, method) in uses {
            let (_, mut batch) = stream(&[]);
            let route = routes.route(&Encoder::default(), &mut batch, &kind, &method).unwrap();
            for frame in decode(&batch, batch.len()).0 {
                if let Frame::Define(define) = frame {
                    table.define(define.route, (define.kind, define.method)).unwrap();
                }
            }
            let (k, m) = table.resolve(route).unwrap();
            prop_assert_eq!((&**k, &**m), (&*kind, &*method));
        }
    }
}

#[derive(Clone, Serialize, Deserialize, PartialEq, Debug)]
enum Value {
    Unit,
    Number(i64),
    Text { text: String, mark: Option<char> },
    List(Vec<Value>),
    Map(BTreeMap<String, Value>),
    Pair(Box<Value>, bool),
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Unit),
        any::<i64>().prop_map(Value::Number),
        (".{0,20}", any::<Option<char>>()).prop_map(|(text, mark)| Value::Text { text, mark }),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::List),
            prop::collection::btree_map(".{0,8}", inner.clone(), 0..4).prop_map(Value::Map),
            (inner, any::<bool>()).prop_map(|(value, flag)| Value::Pair(Box::new(value), flag)),
        ]
    })
}

//! Any bytes after a Hello: no panic, the three ways to decode agree, and what was decoded survives encoding.
#![no_main]

use bytes::{BufMut, BytesMut};
use greenroom_wire::{
    Call, CallHeader, Cancel, CancelView, Control, Decoder, Define, Encoder, Frame, FrameError, Hello, HelloBody, Lane, Reply, StreamEnd,
    StreamItem, classify,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let encoder = Encoder::default();
    let mut stream = BytesMut::new();
    encoder.hello(&mut stream, &Hello::new(HelloBody::new("c", 1, "n", Lane::Control))).unwrap();
    stream.put_slice(data);

    let (whole, whole_end) = decode(&[&stream]);
    let cut = data.first().map_or(0, |at| usize::from(*at)).min(stream.len());
    let (split, split_end) = decode(&[&stream[..cut], &stream[cut..]]);
    assert_eq!((&whole, &whole_end), (&split, &split_end));
    assert_eq!(whole.len(), count_views(&stream, &whole_end));

    for frame in &whole {
        let mut batch = BytesMut::new();
        if matches!(frame, Frame::Hello(_)) || !encode(&encoder, frame, &mut batch) {
            continue;
        }
        classify(&batch);
        let mut stream = BytesMut::new();
        encoder.hello(&mut stream, &Hello::new(HelloBody::new("c", 1, "n", Lane::Control))).unwrap();
        stream.unsplit(batch);
        let (again, end) = decode(&[&stream]);
        assert_eq!((again.last(), end), (Some(frame), None));
    }
});

/// The frames of a stream that arrives in `pieces`, and the error that ended it.
fn decode(pieces: &[&[u8]]) -> (Vec<Frame>, Option<FrameError>) {
    let mut decoder = Decoder::default();
    let mut buf = BytesMut::new();
    let mut frames = Vec::new();
    for piece in pieces {
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

fn count_views(stream: &[u8], end: &Option<FrameError>) -> usize {
    let mut decoder = Decoder::default();
    let mut views = decoder.views(stream);
    let mut count = 0;
    loop {
        match views.next() {
            Ok(Some(_)) => count += 1,
            Ok(None) => break assert_eq!(None, *end),
            Err(error) => break assert_eq!(Some(error), *end),
        }
    }
    count
}

fn encode(encoder: &Encoder, frame: &Frame, batch: &mut BytesMut) -> bool {
    let put = |payload: &[u8], batch: &mut BytesMut| -> Result<(), greenroom_wire::EncodeError> {
        batch.put_slice(payload);
        Ok(())
    };
    match frame {
        Frame::Define(Define { route, kind, method }) => encoder.define(batch, *route, kind, method).unwrap(),
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
            encoder.call(batch, &header, chain.view(), |batch| put(payload, batch)).unwrap();
        }
        Frame::Reply(Reply { id, status, payload }) => {
            encoder.reply(batch, *id, *status, |batch| put(payload, batch)).unwrap();
        }
        Frame::Control(Control { channel, payload }) => {
            encoder.control(batch, *channel, |batch| put(payload, batch)).unwrap();
        }
        Frame::Cancel(Cancel { id, origin, left, kind, key }) => {
            let cancel = CancelView { id: *id, origin: *origin, left: *left, kind, key };
            encoder.cancel(batch, &cancel).unwrap();
        }
        Frame::Ping(nonce) => encoder.ping(batch, *nonce),
        Frame::Pong(nonce) => encoder.pong(batch, *nonce),
        Frame::Goodbye(reason) => encoder.goodbye(batch, reason),
        Frame::StreamItem(StreamItem { consumer, number, payload }) => {
            encoder.stream_item(batch, *consumer, *number, |batch| put(payload, batch)).unwrap();
        }
        Frame::StreamCredit(credit) => encoder.stream_credit(batch, credit),
        Frame::StreamEnd(StreamEnd { consumer, number, status, payload }) => {
            encoder.stream_end(batch, *consumer, *number, *status, |batch| put(payload, batch)).unwrap();
        }
        _ => return false,
    }
    true
}

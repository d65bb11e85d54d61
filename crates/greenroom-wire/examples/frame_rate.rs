//! Prints what a call frame costs: a 16-byte key and an 8-byte payload, encoded in and decoded from batches of 64.
//!
//! `cargo run --release -p greenroom-wire --example frame_rate`

use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::{Buf, BufMut, BytesMut};
use greenroom_wire::codec::{self, Codec};
use greenroom_wire::{
    CallHeader, CallId, ChainView, Decoder, EncodeError, Encoder, FrameView, Hello, HelloBody, Lane, RouteEncoder,
};

const BATCH: usize = 64;
const SAMPLES: usize = 1000;
const ROUNDS: usize = 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let encoder = Encoder::default();
    let id = CallId { shard: 1, index: 500, generation: 70_000 };
    let header = CallHeader {
        id: Some(id),
        key: "user-00000000042",
        deadline: Some(Duration::from_secs(30)),
        ..CallHeader::one_way(3)
    };

    let mut batch = BytesMut::with_capacity(64 << 10);
    report("encode call, raw payload", || {
        batch.clear();
        for n in 0..BATCH as u64 {
            encoder.call(&mut batch, black_box(&header), ChainView::EMPTY, |buf| {
                buf.put_u64_le(n);
                Ok::<(), EncodeError>(())
            })?;
        }
        Ok(())
    })?;
    println!("{:>40} {} bytes", "frame", batch.len() / BATCH);

    let frames = batch.clone().freeze();
    let mut decoder = greeted(&encoder)?;
    report("decode call, borrowed", || {
        let mut views = decoder.views(black_box(&frames));
        while let Some(frame) = views.next()? {
            black_box(&frame);
        }
        Ok(())
    })?;

    let mut buf = BytesMut::with_capacity(64 << 10);
    report("copy-in alone", || {
        buf.extend_from_slice(black_box(&frames));
        drop(black_box(buf.split()));
        Ok(())
    })?;
    report("decode call, shared (copy-in included)", || {
        buf.extend_from_slice(&frames);
        while let Some(frame) = decoder.decode(&mut buf)? {
            black_box(&frame);
        }
        Ok(())
    })?;

    report("encode call, route and MessagePack args", {
        let mut routes = RouteEncoder::new();
        let batch = &mut batch;
        move || {
            batch.clear();
            for n in 0..BATCH as u64 {
                let route = routes.route(&encoder, batch, black_box("account"), black_box("deposit"))?;
                let header = CallHeader { route, ..header };
                encoder
                    .call(batch, &header, ChainView::EMPTY, |buf| codec::encode(Codec::MessagePack, 1, &(n,), buf))?;
            }
            Ok(())
        }
    })?;
    let frames = batch.clone().freeze();
    report("decode call, borrowed, MessagePack args", || {
        let mut views = decoder.views(black_box(&frames));
        while let Some(frame) = views.next()? {
            if let FrameView::Call(call) = frame {
                black_box(codec::decode::<(u64,)>(call.payload)?);
            }
        }
        Ok(())
    })?;
    Ok(())
}

fn greeted(encoder: &Encoder) -> Result<Decoder, Box<dyn std::error::Error>> {
    let mut decoder = Decoder::default();
    let mut buf = BytesMut::new();
    encoder.hello(&mut buf, &Hello::new(HelloBody::new("c", 1, "n", Lane::Control)))?;
    decoder.decode(&mut buf)?;
    assert!(!buf.has_remaining());
    Ok(decoder)
}

/// The best of many short measurements: what the machine does when nothing else runs on it.
fn report(
    what: &str,
    mut round: impl FnMut() -> Result<(), Box<dyn std::error::Error>>,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut best = f64::INFINITY;
    for _ in 0..SAMPLES {
        let start = Instant::now();
        for _ in 0..ROUNDS {
            round()?;
        }
        best = best.min(start.elapsed().as_nanos() as f64 / (ROUNDS * BATCH) as f64);
    }
    println!("{what:>40} {best:6.1} ns");
    Ok(())
}

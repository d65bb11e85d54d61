//! Any bytes as the first ones of a stranger: no panic, and a Hello that is read negotiates to a version or an error.
#![no_main]

use bytes::{BufMut, BytesMut};
use greenroom_wire::{Decoder, Frame, Hello, HelloBody, Lane, MAGIC, negotiate};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut raw = BytesMut::from(data);
    first_frame(&mut raw);

    let mut framed = BytesMut::new();
    framed.put_u32_le((1 + MAGIC.len() + data.len()) as u32);
    framed.put_u8(1);
    framed.put_slice(&MAGIC);
    framed.put_slice(data);
    first_frame(&mut framed);
});

fn first_frame(buf: &mut BytesMut) {
    if let Ok(Some(Frame::Hello(theirs))) = Decoder::default().decode(buf) {
        let ours = Hello::new(HelloBody::new("c", 1, "n", Lane::Control));
        assert_eq!(negotiate(&ours, &theirs).ok(), negotiate(&theirs, &ours).ok().filter(|_| lane_is_sound(&theirs)));
    }
}

fn lane_is_sound(hello: &Hello) -> bool {
    !matches!(hello.body.lane, Lane::User { shard, shards } if shard >= shards)
}

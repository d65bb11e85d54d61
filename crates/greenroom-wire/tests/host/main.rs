//! The frames between nodes and hosts: their bytes, what is taken back from them, and what is refused.

mod golden;
mod hostile;
mod round_trip;
mod written;

use bytes::BytesMut;
use greenroom_wire::host::{FRAME_LEN_MAX, FromHost, FromNode, Hello, HelloMap};

/// The bytes of frames of one direction.
trait Written {
    fn written(&self) -> BytesMut;
}

impl Written for FromHost<'_> {
    fn written(&self) -> BytesMut {
        let mut batch = BytesMut::new();
        self.write(&mut batch, FRAME_LEN_MAX).unwrap();
        batch
    }
}

impl Written for FromNode<'_> {
    fn written(&self) -> BytesMut {
        let mut batch = BytesMut::new();
        self.write(&mut batch, FRAME_LEN_MAX).unwrap();
        batch
    }
}

fn hello() -> BytesMut {
    FromHost::Hello(Hello::new(HelloMap::new("h"))).written()
}

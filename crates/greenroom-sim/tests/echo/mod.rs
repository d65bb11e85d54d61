//! Echo nodes on the bare world seam.
#![allow(dead_code, reason = "each test file uses its part")]

use std::io;
use std::time::Duration;

use greenroom_sim::{Faults, FrameClass, Sim, SimNode};
use greenroom_world::{Stage, Stream, World};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Frame types of these tests.
pub(crate) const ESSENTIAL: u8 = 1;
pub(crate) const USER: u8 = 2;
pub(crate) const CONTROL: u8 = 3;

pub(crate) fn classify(frame: &[u8]) -> FrameClass {
    match frame[4] {
        USER => FrameClass::User,
        CONTROL => FrameClass::Control,
        _ => FrameClass::Essential,
    }
}

/// `[length][kind][number]`.
pub(crate) fn frame(kind: u8, number: u32) -> [u8; 9] {
    let mut frame = [5, 0, 0, 0, kind, 0, 0, 0, 0];
    frame[5..].copy_from_slice(&number.to_le_bytes());
    frame
}

pub(crate) async fn read_frame(stream: &mut dyn Stream) -> io::Result<(u8, u32)> {
    let mut frame = [0; 9];
    stream.read_exact(&mut frame).await?;
    Ok((frame[4], u32::from_le_bytes([frame[5], frame[6], frame[7], frame[8]])))
}

/// Starts the node called `name`; it sends back what it reads at port 7000.
pub(crate) fn start_echo(sim: &Sim, name: &str) {
    let node = sim.node(name);
    let world = node.clone();
    let listens = node.listen(&format!("{name}:7000"));
    node.spawn(
        Stage::Control,
        Box::pin(async move {
            let mut door = listens.await.unwrap();
            loop {
                let (mut stream, _) = door.accept().await.unwrap();
                world.spawn(
                    Stage::Door,
                    Box::pin(async move {
                        let mut buffer = [0; 4096];
                        while let Ok(len @ 1..) = stream.read(&mut buffer).await {
                            if stream.write_all(&buffer[..len]).await.is_err() {
                                return;
                            }
                        }
                    }),
                );
            }
        }),
    );
}

/// Sends one frame and waits for its echo; gives up after `patience`.
pub(crate) async fn ask(
    node: &SimNode,
    stream: &mut dyn Stream,
    kind: u8,
    number: u32,
    patience: Duration,
) -> io::Result<u32> {
    let patience = node.sleep_until(node.now() + patience);
    let asks = async {
        stream.write_all(&frame(kind, number)).await?;
        Ok(read_frame(stream).await?.1)
    };
    tokio::select! {
        biased;
        answer = asks => answer,
        () = patience => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// No faults, ends told of every crash.
pub(crate) fn calm() -> Faults {
    Faults::none()
}

pub(crate) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

//! Opening connections.

use std::io;

use bytes::BytesMut;
use greenroom_security::link::{Links, Peer};
use greenroom_wire::{Decoder, Encoder, Hello, negotiate};
use greenroom_world::World;

use super::greeting::{read_hello, say};
use crate::here::parts::Met;

/// Who has answered, and the connection to it.
pub(crate) struct Answered {
    pub(crate) hello: Hello,
    /// Whom its certificate shows it to be.
    pub(crate) shown: Peer,
    pub(crate) met: Met,
}

/// Connects to `address` and exchanges hellos; `decoder` then reads what comes. Whether it is who was meant the caller judges, who
/// also bounds the time.
pub(crate) async fn dial(
    world: &dyn World,
    links: &Links,
    address: &str,
    ours: &Hello,
    mut decoder: Decoder,
) -> io::Result<Answered> {
    let (mut stream, shown) = links.dialled(world.connect(address).await?).await?;
    let mut out = BytesMut::new();
    Encoder::default().hello(&mut out, ours).map_err(io::Error::other)?;
    say(&mut stream, &out).await?;
    let mut input = BytesMut::new();
    let hello = read_hello(&mut stream, &mut decoder, &mut input).await?;
    Ok(Answered { hello, shown, met: Met { stream, decoder, input } })
}

/// The same, of a node of this cluster: it must be the one that our hello expects.
pub(crate) async fn dial_node(
    world: &dyn World,
    links: &Links,
    address: &str,
    ours: &Hello,
    decoder: Decoder,
) -> io::Result<Answered> {
    let answered = dial(world, links, address, ours, decoder).await?;
    negotiate(ours, &answered.hello).map_err(io::Error::other)?;
    match answered.shown.not_node(&answered.hello.body.name) {
        Some(reason) => Err(io::Error::other(reason)),
        None => Ok(answered),
    }
}

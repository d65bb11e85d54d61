//! The gRPC door of real nodes, by a real client, over real sockets.

mod calls;
#[rustfmt::skip]
#[allow(missing_docs, unreachable_pub, unused_qualifications, clippy::all, reason = "it is generated")]
mod client;
mod guard;
mod hostile;
mod internal;
mod kinds;
mod life;
mod site;
mod sorts;
mod streams;

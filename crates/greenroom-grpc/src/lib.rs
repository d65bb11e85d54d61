//! The gRPC door: every actor's methods for whoever speaks gRPC, with the guard, the rules and the bounds of the HTTP door.
//!
//! ```no_run
//! # async fn start() -> greenroom::Result<()> {
//! let node = greenroom::Node::builder()
//!     .configure(|config| config.grpc = Some("127.0.0.1:7071".into()))
//!     .grpc_door(greenroom_grpc::Grpc::default())
//!     .start()
//!     .await?;
//! # drop(node); Ok(()) }
//! ```
//!
//! The service is `greenroom.v1.Actors` (`proto/greenroom/v1/actors.proto`); gRPC's health and reflection are there too. The code
//! of [`v1`] is generated, and kept in the tree: a build needs neither `protoc` nor a generator.

mod actors;
mod answer;
mod connection;
mod form;
mod health;
mod reflection;
mod route;
mod services;
mod status;
mod timeout;
mod typed;
/// The messages and the service of `greenroom.v1`, as `tonic-prost-build` writes them.
#[path = "generated/greenroom.v1.rs"]
#[rustfmt::skip]
#[allow(missing_docs, unreachable_pub, unused_qualifications, clippy::all, reason = "it is generated")]
pub mod v1;

use std::pin::Pin;

use greenroom::door::{Connection, Protocol, Visit};

use crate::reflection::Reflection;
use crate::services::Services;

pub use crate::services::NotServices;

/// What the gRPC door speaks: for [`Builder::grpc_door`](greenroom::Builder::grpc_door).
#[derive(Clone, Default)]
pub struct Grpc {
    reflection: Reflection,
    services: Services,
}

impl Grpc {
    /// Serves kinds by services of their own, too: those of an encoded `FileDescriptorSet` whose options name them.
    ///
    /// # Errors
    /// [`NotServices`]: what is wrong with the set.
    ///
    /// ```no_run
    /// # fn read() -> Result<greenroom_grpc::Grpc, Box<dyn std::error::Error>> {
    /// let door = greenroom_grpc::Grpc::default().services(&std::fs::read("kinds.pb")?)?;
    /// # Ok(door) }
    /// ```
    pub fn services(mut self, set: &[u8]) -> Result<Self, NotServices> {
        self.services.add(set)?;
        self.reflection = self.reflection.with(set)?;
        Ok(self)
    }
}

impl Protocol for Grpc {
    fn alpn(&self) -> &'static [u8] {
        b"h2"
    }

    fn attend(&self, visit: Visit, connection: Connection) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(connection::serve(visit, self.clone(), connection))
    }
}

/// The descriptions of the service and its messages, as an encoded `FileDescriptorSet`: what reflection shows.
pub const DESCRIPTORS: &[u8] = include_bytes!("generated/greenroom.v1.bin");

//! What there is of TLS in a program that is built without it: nothing.

use std::io;

use greenroom_world::Stream;

use super::NotAccepted;
use crate::error::Error;
use crate::files::NodeTls;

/// Never there.
pub(super) enum Tls {}

/// Never shown.
#[derive(Debug)]
pub(super) enum Shown {}

impl Tls {
    pub(super) fn open(_: &NodeTls, _: &str) -> Result<Self, Error> {
        Err(Error::Setting { setting: "tls".into(), reason: NOT_BUILT.into() })
    }

    pub(super) async fn dialled(&self, _: Box<dyn Stream>) -> io::Result<(Box<dyn Stream>, Shown)> {
        match *self {}
    }

    pub(super) async fn accepted(&self, _: Box<dyn Stream>) -> Result<(Box<dyn Stream>, Shown), NotAccepted> {
        match *self {}
    }
}

impl Shown {
    pub(super) fn not_node_of(&self, _: &str, _: &str) -> Option<String> {
        match *self {}
    }

    pub(super) fn own_cluster(&self) -> &str {
        match *self {}
    }
}

const NOT_BUILT: &str = "this program is built without TLS; build it with the feature `tls` of `greenroom`";

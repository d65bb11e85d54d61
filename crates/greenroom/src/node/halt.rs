//! Why a node has stopped.

use super::error::Error;
use super::shared::Shared;

/// Why a node has stopped.
#[derive(Clone, Debug)]
pub(crate) enum Halt {
    /// In words that go on "the node has stopped:".
    Because(&'static str),
    /// A node that lives has its name, and is at this address.
    NameTaken { address: String },
}

impl Halt {
    /// The same, as what the program is told that wanted `node`.
    pub(super) fn error(self, node: &Shared) -> Error {
        match self {
            Self::Because(why) => Error::Halted { why },
            Self::NameTaken { address } => {
                let (name, cluster) = (node.name().to_owned(), node.config().cluster.clone());
                Error::NameTaken { name, cluster, address }
            }
        }
    }
}

impl From<&'static str> for Halt {
    fn from(why: &'static str) -> Self {
        Self::Because(why)
    }
}

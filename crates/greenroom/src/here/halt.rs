//! Why a node has stopped.

use super::Here;
use crate::node::error::Error;

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
    pub(crate) fn error(self, node: &Here) -> Error {
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

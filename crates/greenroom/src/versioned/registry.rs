//! What a node knows of versioned states: the protocols by name, and the links to other clusters.

use std::collections::BTreeMap;

use super::elsewhere::Post;
use super::protocol::{ConsistencyProtocol, Make, Place};
use super::protocols;
use crate::here::Here;
use crate::here::parts::Part;

/// The protocols of a node by name, and its post.
pub(crate) struct Registry {
    protocols: BTreeMap<String, Make>,
    post: Post,
}

impl Registry {
    /// Those in the box, and `own`.
    pub(crate) fn new(own: BTreeMap<String, Make>) -> Self {
        let mut protocols = protocols::all();
        protocols.extend(own);
        Self { protocols, post: Post::default() }
    }

    /// The part of a new instance in the protocol called `name`; `None` if there is none.
    pub(crate) fn instance(&self, name: &str, place: Place) -> Option<Box<dyn ConsistencyProtocol>> {
        self.protocols.get(name).map(|make| make(place))
    }

    /// The names there are.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.protocols.keys().map(String::as_str)
    }

    /// Where letters from and to other clusters go.
    pub(crate) fn post(&self) -> &Post {
        &self.post
    }
}

impl Part for Registry {}

impl Here {
    /// What there is to know for versioned states.
    pub(crate) fn versioned(&self) -> &Registry {
        self.part()
    }
}

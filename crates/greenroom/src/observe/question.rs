//! What a node may be asked of itself.

use bytes::{Bytes, BytesMut};
use greenroom_wire::codec::{self, Codec, DecodeError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::actors::ActorsWord;
use super::events::{EventsWord, Wanted as WantedEvents};
use super::findings::Findings;
use super::methods;
use super::stage::StageWord;
use super::stage::seats::seats;
use super::tail::TailWord;
use super::turns::{self, Wanted};
use super::whereabouts::WhereWord;
use super::word::NodeWord;
use crate::here::Here;
use crate::here::tail::Meant;
use crate::shard::listing::Wish;

/// What is asked. A node of an earlier version that does not know a question says so, and is named as one that said nothing.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Question {
    /// [`NodeWord`], with the last `seconds` of its past.
    Overview { seconds: u32 },
    /// What it has counted of the methods of `kind`, or of all: `Vec<MethodWord>`.
    Methods { kind: Option<String> },
    /// Turns that failed or were slow: `Vec<TurnWord>`.
    Turns { wanted: Wanted },
    /// What has happened there: `EventsWord`, with at most so many.
    Events { wanted: WantedEvents, limit: u32 },
    /// What it finds wrong: `Vec<Finding>`.
    Findings,
    /// Its actors on their threads, and at most `top` of the hot ones: `StageWord`.
    Stage { top: u32 },
    /// Which actors with these hashes are active there: `Vec<HotWord>`.
    Seats { actors: Vec<u64> },
    /// A page of its active actors: `ActorsWord`.
    Actors { wish: Wish },
    /// Where it knows an actor to be active: `WhereWord`.
    Where { kind: String, key: String },
    /// What a feature shows, chosen by something: a JSON value, or null if no part of the node knows of it.
    Shown { what: String, by: Value },
    /// Turns that have ended since the round before: `TailWord`. A node looks at its turns only as long as it is asked.
    Tail { id: u64, round: u64, meant: Meant },
}

impl Question {
    /// What `node` says of itself.
    pub(crate) async fn answer(&self, node: &Here) -> Bytes {
        match self {
            Self::Overview { seconds } => written(&NodeWord::of(node, *seconds)),
            Self::Methods { kind } => written(&methods::of_node(node, kind.as_deref())),
            Self::Turns { wanted } => written(&turns::of_node(node, wanted)),
            Self::Events { wanted, limit } => written(&EventsWord::of(node, wanted, *limit)),
            Self::Actors { wish } => written(&ActorsWord::of(node, wish).await),
            Self::Where { kind, key } => written(&WhereWord::of(node, kind, key)),
            Self::Shown { what, by } => written(&node.shows(what, by)),
            Self::Tail { id, meant, .. } => written(&TailWord::of(node, *id, meant)),
            Self::Findings => written(&node.part::<Findings>().last().to_vec()),
            Self::Stage { top } => written(&StageWord::of(node, *top).await),
            Self::Seats { actors } => written(&seats(node, actors).await),
        }
    }

    /// Whether shards are asked for what is to be answered, and have something to do for it.
    pub(super) fn asks_shards(&self) -> bool {
        matches!(self, Self::Stage { .. } | Self::Seats { .. })
    }

    pub(crate) fn encode(&self) -> Bytes {
        written(self)
    }
}

/// What another node says, if it can be read.
pub(crate) fn read<T: DeserializeOwned>(said: &[u8]) -> Result<T, DecodeError> {
    codec::decode(said)
}

fn written<T: Serialize>(said: &T) -> Bytes {
    let mut out = BytesMut::new();
    // Plain data always encodes.
    let _ = codec::encode(Codec::MessagePack, FORMAT_VERSION, said, &mut out);
    out.freeze()
}

/// Version of these messages.
const FORMAT_VERSION: u8 = 1;

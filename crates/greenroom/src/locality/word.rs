//! What the optimisers of two nodes say to each other, and what goes with an actor that one sends the other.

use bytes::{Bytes, BytesMut};
use greenroom_protocols::exchange::{self, ExchangeId, Load};
use greenroom_protocols::flows::{Cost, KindId, Known, PARTS, Place};
use greenroom_protocols::node::NodeId;
use greenroom_wire::codec::{self, Codec, DecodeError};
use serde::{Deserialize, Serialize};

/// What an optimiser says to another one. Variants of later versions are dropped.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) enum Word {
    /// Whether I take part in exchanges, and how loaded I am. Said every other second.
    Standing { takes_part: bool, load: Load },
    /// Something about an exchange.
    Exchange(exchange::Message),
}

impl Word {
    pub(super) fn encode(&self) -> Bytes {
        encoded(self)
    }

    pub(super) fn decode(payload: &[u8]) -> Result<Self, DecodeError> {
        codec::decode(payload)
    }
}

/// What is known of an actor, where it goes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Letter {
    /// The exchange that moves it.
    pub(super) x: ExchangeId,
    /// The messages that it remembers.
    memory: f32,
    /// What its move costs, in messages.
    cost: f32,
    /// Messages a second.
    rate: f64,
    /// µs of CPU a second.
    pub(super) cpu: u32,
    /// The part of its last messages whose other end is on the node that it leaves.
    stays: f32,
    /// The same for other nodes.
    parts: Vec<(NodeId, f32)>,
    /// Whom it talks with most, by their hashes, and how many messages with the usual half-life.
    pub(super) edges: Vec<(u64, f64)>,
    /// How many actors its set has, if it goes for the sake of that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) set: Option<u16>,
}

impl Letter {
    pub(super) fn new(x: ExchangeId, known: &Known, cpu: u32, node_of: impl Fn(Place) -> Option<NodeId>) -> Self {
        let parts = known.parts.into_iter().filter_map(|(place, part)| Some((node_of(place)?, part))).collect();
        let Known { memory, cost: Cost(cost), rate, .. } = *known;
        Self { x, memory, cost, rate, cpu, stays: known.here(), parts, edges: Vec::new(), set: None }
    }

    /// That of an actor of which nothing is known.
    pub(super) fn blank(x: ExchangeId) -> Self {
        let (parts, edges) = (Vec::new(), Vec::new());
        Self { x, memory: 0.0, cost: 0.0, rate: 0.0, cpu: 0, stays: 0.0, parts, edges, set: None }
    }

    /// Whether nothing is known of the actor.
    pub(super) fn is_blank(&self) -> bool {
        self.rate == 0.0 && self.edges.is_empty()
    }

    /// The same, to be told whom it talks with most.
    pub(super) fn with_edges(mut self, edges: impl Iterator<Item = (u64, f64)>) -> Self {
        self.edges = edges.take(EDGES_MAX).collect();
        self
    }

    /// The same, of an actor that goes with its set.
    pub(super) fn with_set(self, set: Option<u16>) -> Self {
        Self { set, ..self }
    }

    /// What it says in the words of the node that the actor comes to from the place `old`: `place_of` gives [`Place::NEAR`] for that
    /// node itself.
    pub(super) fn known(&self, kind: KindId, old: Place, place_of: impl Fn(NodeId) -> Option<Place>) -> Known {
        let mut parts = [(Place::NEAR, 0.0); PARTS];
        for (number, (known, (_, part))) in parts.iter_mut().zip(&self.parts).enumerate() {
            *known = (Place::away(number as u16), *part);
        }
        let Self { memory, cost, rate, stays, .. } = *self;
        let cpu = f64::from(self.cpu) / 1e6;
        let left = Known { memory, rate, cpu, near: stays, parts, ..Known::nothing(kind, Cost(cost)) };
        left.from_node(old, |place| place_of(self.parts.get(usize::from(place.number()))?.0))
    }

    /// Which parts of its last messages went to the node `to`, and stayed on the one that it leaves.
    pub(super) fn parts_of(&self, to: NodeId) -> (f32, f32) {
        let part = self.parts.iter().find(|(node, _)| *node == to).map_or(0.0, |(_, part)| *part);
        (part, self.stays)
    }

    pub(super) fn encode(&self) -> Bytes {
        encoded(self)
    }

    pub(super) fn decode(payload: &[u8]) -> Result<Self, DecodeError> {
        codec::decode(payload)
    }
}

fn encoded(word: &impl Serialize) -> Bytes {
    let mut out = BytesMut::new();
    // Plain data always encodes.
    let _ = codec::encode(Codec::MessagePack, FORMAT_VERSION, word, &mut out);
    out.freeze()
}

/// Partners that are told of an actor that moves.
const EDGES_MAX: usize = 16;
/// Version of these messages.
const FORMAT_VERSION: u8 = 1;
/// The channel of control frames that optimisers speak on.
pub(super) const CHANNEL: u8 = 2;

#[cfg(test)]
mod tests {
    use greenroom_protocols::exchange::Message;

    use super::*;

    const ADA: NodeId = NodeId(7);
    const BOB: NodeId = NodeId(9);

    fn letter() -> Letter {
        let x = ExchangeId { by: ADA, number: 3 };
        let (parts, edges) = (vec![(BOB, 0.5), (NodeId(8), 0.25)], vec![(11, 2.0)]);
        Letter { x, memory: 8.0, cost: 16.0, rate: 4.0, cpu: 100, stays: 0.25, parts, edges, set: None }
    }

    #[test]
    fn an_actor_that_has_come_knows_its_partners_there_as_near_ones_and_those_it_left_as_far_ones() {
        let (old, other) = (Place::away(1), Place::away(2));
        let place_of = |node| Some(if node == BOB { Place::NEAR } else { other });
        let known = letter().known(KindId(1), old, place_of);
        assert_eq!((known.near, known.beside, known.memory, known.rate), (0.0, 0.5, 8.0, 4.0));
        let known: Vec<_> = known.parts.into_iter().filter(|(place, _)| *place != Place::NEAR).collect();
        assert_eq!(known, [(other, 0.25), (old, 0.25)]);
    }

    #[test]
    fn what_is_written_is_read() {
        let busy = Message::Busy { x: letter().x, wait: std::time::Duration::from_millis(7) };
        for word in [Word::Standing { takes_part: true, load: Load::default() }, Word::Exchange(busy)] {
            assert_eq!(Word::decode(&word.encode()).as_ref(), Ok(&word));
        }
        assert_eq!(Letter::decode(&letter().encode()), Ok(letter()));
        assert!(Word::decode(b"").is_err() && Letter::decode(b"nonsense").is_err());
    }

    #[test]
    fn words_and_letters_keep_their_spelling() {
        let standing = Word::Standing { takes_part: true, load: Load { busy: 1, cores: 2, activations: 3 } };
        let spelled = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(spelled(&standing.encode()), STANDING);
        assert_eq!(spelled(&letter().encode()), LETTER);
        let with_set = letter().with_set(Some(6));
        assert_eq!(spelled(&with_set.encode()), LETTER.replacen("010188", "010189", 1) + "a373657406");
        assert_eq!(Letter::decode(&with_set.encode()), Ok(with_set));
    }

    const STANDING: &str = concat!(
        "010181a85374616e64696e6782aa74616b65735f70617274c3a46c6f616483a46275737901a5636f72657302ab616374",
        "69766174696f6e7303",
    );
    const LETTER: &str = concat!(
        "010188a17882a2627907a66e756d62657203a66d656d6f7279ca41000000a4636f7374ca41800000a472617465cb4010",
        "000000000000a363707564a57374617973ca3e800000a57061727473929209ca3f0000009208ca3e800000a565646765",
        "7391920bcb4000000000000000",
    );
}

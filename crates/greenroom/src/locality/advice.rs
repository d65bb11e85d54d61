//! What the optimiser says to people.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use greenroom_protocols::exchange::Tolerance;
use greenroom_protocols::flows::{self, GAIN_MIN, Level, Standing};
use serde::Serialize;
use tokio::sync::oneshot;

use super::abroad::FarKind;
use super::anchors::{Anchor, destinations};
use super::between_shards::may_go;
use super::on_shard::OnShard;
use super::settings::OptimiserMode;
use super::survey::is_too_large;
use super::tables::Tables;
use super::{Common, Locality};
use crate::actor::key::{ActorId, Kind};
use crate::here::Here;
use crate::shard::inspect::Brought;
use crate::shard::{Item, Shard, Slot};

/// What the optimiser of a node knows, as [`Node::advice`](crate::Node::advice) tells it.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct Advice {
    /// The node's name.
    pub node: String,
    /// What its optimiser does.
    pub mode: OptimiserMode,
    /// Whether it moves nobody until it is told to go on.
    pub paused: bool,
    /// What each of its shards knows.
    pub shards: Vec<ShardAdvice>,
    /// Kinds whose actors other clusters call, and which stay here.
    pub far: Vec<FarKind>,
}

/// What a shard knows.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct ShardAdvice {
    /// Which shard.
    pub shard: u16,
    /// Of the messages that stay on it, one in so many is sampled.
    pub near_stride: u32,
    /// The same for those that come from elsewhere or go there.
    pub far_stride: u32,
    /// Its hot actors, by kind, the kind with most messages first.
    pub kinds: Vec<KindAdvice>,
    /// Its actors that would do better elsewhere, those that gain most first; at most as many as were asked for.
    pub wishes: Vec<Wish>,
    /// How many would.
    pub wishes_len: usize,
    /// Whether it was worth it to move actors here, as far as that is known.
    pub judged: Judged,
    /// Its heaviest edges, the heaviest first; at most as many as were asked for.
    pub edges: Vec<Edge>,
}

/// Whether moves were worth it. A move is judged when its actor would do better elsewhere again.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Judged {
    /// Moves that have saved at least as many messages as they cost.
    pub paid: u64,
    /// Moves that have not.
    pub unpaid: u64,
    /// Messages between nodes that all of them have saved; less than nothing if they have put more of them farther.
    pub saved: f64,
}

impl From<flows::Judged> for Judged {
    fn from(flows::Judged { good, bad, profit }: flows::Judged) -> Self {
        Self { paid: good, unpaid: bad, saved: profit }
    }
}

/// The hot actors of one kind on one shard.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct KindAdvice {
    /// The kind.
    pub kind: String,
    /// How many are known.
    pub actors: usize,
    /// Their messages a second, those that come and those that go.
    pub rate: f64,
    /// The part of them whose other end is on another shard of the node.
    pub beside: f64,
    /// The part of them whose other end is on another node.
    pub away: f64,
}

/// An actor that would do better elsewhere.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct Wish {
    /// The actor; `#` and its hash if its name is not known.
    pub actor: String,
    /// Where: the name of a node, or a shard of this one.
    pub to: String,
    /// How much of its last messages would be nearer, less what would be farther.
    pub gain: f32,
    /// Its messages a second.
    pub rate: f64,
    /// What the move costs, in messages.
    pub cost: f32,
}

/// Two actors that talk with each other.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct Edge {
    /// The one, on this shard; `#` and its hash if its name is not known.
    pub actor: String,
    /// The other.
    pub partner: String,
    /// Messages, with a half-life of 30 s.
    pub weight: f64,
}

/// What is known of one actor.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct ActorAdvice {
    /// The actor.
    pub actor: String,
    /// The node that knows it.
    pub node: String,
    /// The shard of it.
    pub shard: u16,
    /// Its messages a second.
    pub rate: f64,
    /// How many of its last messages count.
    pub memory: f32,
    /// The part of them whose other end is on its shard.
    pub near: f32,
    /// The part of them whose other end is on other shards of its node.
    pub beside: f32,
    /// The part of them whose other end is no actor and on its node: callers by the door, and by the program around it.
    pub outside: f32,
    /// The parts of single places, the largest first: nodes by their names, shards of this node.
    pub places: Vec<(String, f32)>,
    /// Whom it talks with most, and how many messages with a half-life of 30 s.
    pub partners: Vec<(String, f64)>,
    /// Whence it was brought here, if it was, and why.
    pub brought: Option<Brought>,
    /// What follows from it, in words.
    pub why: String,
}

impl Tables {
    fn name_of(&self, hash: u64) -> String {
        self.name(hash).map_or_else(|| format!("#{hash:016x}"), ActorId::to_string)
    }

    fn advice(&self, node: &Here, common: &Common, shard: &Shard, top: usize) -> ShardAdvice {
        let now = shard.now();
        let mut kinds: BTreeMap<u16, KindAdvice> = BTreeMap::new();
        for Standing { known, .. } in self.flows.standings(now) {
            let kind = kinds.entry(known.kind.0).or_insert_with(|| KindAdvice {
                kind: Kind::numbered(known.kind.0).map_or_else(String::new, |kind| kind.name().to_owned()),
                actors: 0,
                rate: 0.0,
                beside: 0.0,
                away: 0.0,
            });
            let (_, beside) = split(node, &known);
            kind.actors += 1;
            kind.rate += known.rate;
            kind.beside += known.rate * f64::from(beside);
            kind.away += known.rate * f64::from((1.0 - known.here()).max(0.0));
        }
        let mut kinds: Vec<KindAdvice> = kinds.into_values().collect();
        for KindAdvice { rate, beside, away, .. } in &mut kinds {
            *beside /= rate.max(f64::MIN_POSITIVE);
            *away /= rate.max(f64::MIN_POSITIVE);
        }
        kinds.sort_by(|a, b| b.rate.total_cmp(&a.rate));
        let mut wishes: Vec<&flows::Wish> = self.wishes.iter().collect();
        wishes.sort_by(|a, b| b.gain_a_second().total_cmp(&a.gain_a_second()).then(a.actor.cmp(&b.actor)));
        let wish = |wish: &&flows::Wish| {
            let flows::Wish { actor, to, gain, rate, cost, .. } = **wish;
            Wish { actor: self.name_of(actor), to: place_name(node, common, to), gain, rate, cost: cost.0 }
        };
        let edge = |edge: greenroom_protocols::heavy_edges::Edge| Edge {
            actor: self.name_of(edge.actor),
            partner: self.name_of(edge.partner),
            weight: edge.weight,
        };
        ShardAdvice {
            shard: shard.index(),
            near_stride: self.near_stride(),
            far_stride: self.far_stride(),
            kinds,
            wishes_len: wishes.len(),
            judged: self.flows.judged().into(),
            wishes: wishes.iter().take(top).map(wish).collect(),
            edges: self.edges.heaviest(top, now).into_iter().map(edge).collect(),
        }
    }

    fn explain(&self, node: &Here, common: &Common, shard: &Shard, id: &ActorId) -> Option<ActorAdvice> {
        let (now, hash) = (shard.now(), id.stable_hash());
        // Who has ended has a row still.
        if is_listed(node, id.kind) && slot_of(node, hash).is_none() {
            return None;
        }
        let Standing { known, wait, .. } = self.flows.standing(hash, now)?;
        let mut places: Vec<(flows::Place, f32)> =
            known.parts.into_iter().filter(|(place, _)| *place != flows::Place::NEAR).collect();
        places.sort_by(|a, b| b.1.total_cmp(&a.1));
        let named = |place| place_name(node, common, place);
        let here = |place: flows::Place| match place.level() {
            Some(Level::Nodes) => known.here(),
            _ => known.near,
        };
        let better: Vec<_> = places.iter().filter(|(place, part)| part - here(*place) >= GAIN_MIN).collect();
        let why = match better.first() {
            None => "it stays: no other place has a third more of its last messages than where it is".to_owned(),
            Some((place, _)) if wait > 0 => {
                format!(
                    "it would go to {}, but its last move did not pay: {wait} samples must come first",
                    named(*place)
                )
            }
            Some((place, part)) => {
                let better = format!(
                    "it would do better at {}: {:.0} % of its last messages went there, {:.0} % stayed",
                    named(*place),
                    part * 100.0,
                    here(*place) * 100.0
                );
                match self.stays(node, common, shard, (id, *place)).or_else(|| closed(node, common, *place)) {
                    Some(reason) => format!("{better}; but {reason}"),
                    None => better,
                }
            }
        };
        let (near, beside) = split(node, &known);
        Some(ActorAdvice {
            actor: id.to_string(),
            node: node.name().to_owned(),
            shard: shard.index(),
            rate: known.rate,
            memory: known.memory,
            near,
            beside,
            outside: known.outside,
            places: places.iter().map(|(place, part)| (named(*place), *part)).collect(),
            partners: self
                .edges
                .partners(hash, now)
                .into_iter()
                .take(PARTNERS_MAX)
                .map(|edge| (self.name_of(edge.partner), edge.weight))
                .collect(),
            brought: slot_of(node, hash).and_then(|slot| shard.brought_to(slot)),
            why,
        })
    }

    fn is_too_large(&self, actor: u64, shard: &Shard) -> bool {
        self.flows.standing(actor, shard.now()).is_some_and(|standing| is_too_large(standing.known.cost))
    }

    /// What keeps an actor from going to a place where it would do better.
    fn stays(
        &self,
        node: &Here,
        common: &Common,
        shard: &Shard,
        (id, place): (&ActorId, flows::Place),
    ) -> Option<String> {
        let hash = id.stable_hash();
        let slot = slot_of(node, hash);
        let reason = match place.level() {
            Some(Level::Nodes) => destinations(node, id.kind)
                .err()
                .map(|anchor| anchor.to_string())
                .or_else(|| self.is_too_large(hash, shard).then(|| "it carries more than 4 MiB".to_owned()))
                .or_else(|| self.pins.holds(hash, shard.now()).then(|| "it has asked to stay on this node".to_owned()))
                .or_else(|| slot.and_then(|slot| shard.held_here(slot)).map(str::to_owned)),
            _ if !node.config().optimiser.shards => Some("actors of this node stay on their shards".to_owned()),
            _ if !may_go(node, id.kind) => Some("its kind is pinned, or this node's configuration says so".to_owned()),
            _ => slot.and_then(|slot| shard.tied_here(slot)).map(str::to_owned),
        };
        if let Some(reason) = reason {
            return Some(format!("it stays: {reason}"));
        }
        if common.mode == OptimiserMode::Advise {
            return Some("the optimiser of this node moves nobody: its mode is `advise`".to_owned());
        }
        common.exchanges.is_paused().then(|| "the optimiser of this node is paused".to_owned())
    }
}

/// Which parts of an actor's messages stay on its shard, and on the others of its node. Who has just come does not know on which its
/// partners are: on a node of one shard that is known.
fn split(node: &Here, known: &flows::Known) -> (f32, f32) {
    if node.shards().len() == 1 { (known.near + known.beside, 0.0) } else { (known.near, known.beside) }
}

/// Whether the directory knows where actors of `kind` are.
fn is_listed(node: &Here, kind: Kind) -> bool {
    !matches!(destinations(node, kind), Err(Anchor::NotHosted | Anchor::Worker | Anchor::Reliable | Anchor::Versioned))
}

/// Where an actor of this node is.
fn slot_of(node: &Here, hash: u64) -> Option<Slot> {
    node.directory()?.hosted(hash)?.slot
}

fn place_name(node: &Here, common: &Common, place: flows::Place) -> String {
    match place.level() {
        None => "this shard".to_owned(),
        Some(Level::Shards) => format!("shard {}", place.number()),
        Some(Level::Nodes) => match common.places.node(place) {
            Some(id) => node.member(id).map_or_else(|| id.to_string(), |member| member.name),
            None => "a node that has left".to_owned(),
        },
    }
}

/// Why the node at `place` takes nobody now, if it does not.
fn closed(node: &Here, common: &Common, place: flows::Place) -> Option<String> {
    let to = common.places.node(place)?;
    let machine = common.exchanges.machine();
    let why = if node.view().member(to).is_some_and(|member| member.draining) {
        "drains"
    } else if !machine.partners.contains(&to) {
        "takes nobody: its optimiser is off, paused or only advises, or has said nothing of late"
    } else if !machine.survey.has_room(to, Tolerance::default()) {
        "is full: it has as much to do as balance allows"
    } else {
        return None;
    };
    Some(format!("{} {why}", place_name(node, common, place)))
}

/// What the optimiser of `node` knows: wishes and edges at most `top` a shard. `None` if it is off.
pub(crate) async fn advice(node: &Here, top: usize) -> Advice {
    let shards = ask(node, move |node, common, tables, shard| Some(tables.advice(node, common, shard, top))).await;
    let common = &node.part::<Locality>().0;
    let far = common.far.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Advice { node: node.name().to_owned(), mode: common.mode, paused: common.exchanges.is_paused(), shards, far }
}

/// What it knows of one actor; `None` if that is not hot here.
pub(crate) async fn explain(node: &Here, id: ActorId) -> Option<ActorAdvice> {
    let found = ask(node, move |node, common, tables, shard| tables.explain(node, common, shard, &id)).await;
    found.into_iter().next()
}

/// What each shard says that has tables.
pub(super) async fn ask<T: Send + 'static>(
    node: &Here,
    read: impl Fn(&Here, &Common, &Tables, &Shard) -> Option<T> + Clone + Send + 'static,
) -> Vec<T> {
    let mut all = Vec::new();
    if node.config().optimiser.mode == OptimiserMode::Off {
        return all;
    }
    for port in node.shards() {
        let ((told, telling), read) = (oneshot::channel(), read.clone());
        let run = move |shard: &Shard| {
            let known: &OnShard = shard.part();
            let found = known.with(|common, tables| read(&shard.port().node, common, tables, shard));
            // Who does not wait any more need not know.
            let _ = told.send(found.flatten());
        };
        if port.push(Item::Run(Box::new(run))).is_ok()
            && let Ok(found) = telling.await
        {
            all.extend(found);
        }
    }
    all
}

/// Partners of one actor that are shown.
const PARTNERS_MAX: usize = 16;

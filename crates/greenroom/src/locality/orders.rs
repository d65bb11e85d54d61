//! What an exchange orders of a node's shards, and what they are told when actors have come and gone.

use std::sync::Arc;

use greenroom_protocols::directory::Epoch;
use greenroom_protocols::exchange::{ExchangeId, OrderEnd};
use greenroom_protocols::flows::Place;
use greenroom_protocols::node::NodeId;
use greenroom_world::Timestamp;

use super::Common;
use super::exchanges::Happening;
use super::on_shard::OnShard;
use super::word::Letter;
use crate::actor::key::ActorId;
use crate::here::Here;
use crate::shard::trips::{Told, Trip, TripEnd};
use crate::shard::{Item, Shard};

/// Lets an activation go to another node, with its set of so many actors or alone; which actor it is of, if it is here.
pub(super) fn order(
    here: &Here,
    common: &Arc<Common>,
    (hash, epoch): (u64, Epoch),
    (to, until, x): (NodeId, Timestamp, ExchangeId),
    set: Option<u16>,
) -> Option<ActorId> {
    let hosted = here.directory()?.hosted(hash).filter(|hosted| hosted.epoch == epoch)?;
    let (slot, port) = (hosted.slot?, here.shards().iter().find(|port| port.id == hosted.shard)?);
    let common = common.clone();
    let told = Told::new({
        let common = common.clone();
        move |end| {
            let end = match end {
                TripEnd::Moved => OrderEnd::Moved,
                TripEnd::Back => OrderEnd::Back,
                TripEnd::Stayed => OrderEnd::Withdrawn,
            };
            let gone = |shard: Option<&Shard>| shard.map(|shard| gone(shard, &common, hash, to)).unwrap_or_default();
            let partners = if end == OrderEnd::Moved { Shard::with(gone) } else { Vec::new() };
            common.exchanges.happens(Happening::Settled { x, hash, end, partners });
        }
    });
    // What is not run any more is dropped, and its teller says that the actor stays.
    let run = move |shard: &Shard| {
        let known: &OnShard = shard.part();
        if known.with(|_, tables| tables.pins.holds(hash, shard.now())).unwrap_or_default() {
            return;
        }
        let letter = known.with(|common, tables| tables.letter(x, hash, common, shard.now())).flatten();
        // Whoever comes must name its exchange, or it is waited for.
        let letter = letter.unwrap_or_else(|| Letter::blank(x)).with_set(set).encode();
        shard.migrate_freely(slot, Trip { to, until, letter, told });
    };
    let _ = port.push(Item::Run(Box::new(run)));
    Some(hosted.id)
}

/// An actor has left this shard for good: whom it talked with.
fn gone(shard: &Shard, common: &Common, hash: u64, to: NodeId) -> Vec<(u64, f64)> {
    let Some(place) = common.places.of(to) else { return Vec::new() };
    let left = shard.part::<OnShard>().with_mut(|_, tables| tables.left(hash, place, shard.now()));
    let partners = left.unwrap_or_default();
    tell_partners(shard, hash, &partners, |from| from, |_| place);
    partners
}

/// An actor has come to this shard from the node at `from`.
pub(super) fn came(shard: &Shard, id: &ActorId, from: Place, letter: &Letter) {
    tell_partners(shard, id.stable_hash(), &letter.edges, |_| from, |at| at);
}

/// Tells all shards of the node that an actor has moved: `from` and `to` say whence and where of each shard's view of this one.
fn tell_partners(
    shard: &Shard,
    hash: u64,
    partners: &[(u64, f64)],
    from: impl Fn(Place) -> Place,
    to: impl Fn(Place) -> Place,
) {
    tell_partners_on(shard, hash, partners, |index| {
        let here = if index == shard.index() { Place::NEAR } else { Place::shard(shard.index()) };
        (from(here), to(here))
    });
}

/// The same, by whence and where it went of each shard's view.
pub(super) fn tell_partners_on(shard: &Shard, hash: u64, partners: &[(u64, f64)], way: impl Fn(u16) -> (Place, Place)) {
    if partners.is_empty() {
        return;
    }
    for (index, port) in shard.port().node.shards().iter().enumerate() {
        let ((from, to), partners) = (way(index as u16), partners.to_vec());
        let run = move |shard: &Shard| {
            let known: &OnShard = shard.part();
            known.with_mut(|_, tables| tables.partner_moved(hash, &partners, from, to, shard.now()));
        };
        // A shard that has ended has nobody to tell.
        let _ = port.push(Item::Run(Box::new(run)));
    }
}

/// What is known of an actor's messages with another node is wrong.
pub(super) fn clear(here: &Here, common: &Common, hash: u64, toward: NodeId) {
    let hosted = here.directory().and_then(|directory| directory.hosted(hash));
    let (Some(hosted), Some(place)) = (hosted, common.places.of(toward)) else { return };
    if let Some(port) = here.shards().iter().find(|port| port.id == hosted.shard) {
        let run = move |shard: &Shard| {
            let known: &OnShard = shard.part();
            known.with_mut(|_, tables| tables.clear(hash, place));
        };
        let _ = port.push(Item::Run(Box::new(run)));
    }
}

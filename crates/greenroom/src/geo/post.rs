//! Letters: out to other clusters, in to the node that has the actor's range, and what calls in them come to.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::BytesMut;
use greenroom_protocols::gsi::{Carried, ClusterId, End, Verdict};
use greenroom_world::Stage;
use tokio::sync::oneshot;

use super::Geo;
use super::border::Passing;
use super::letter::{Blob, Body, Event, Letter, Message, Operation, completion, outcome};
use super::mesh::{Mail, Peer};
use super::range::refusal;
use crate::actor::error::Doubt;
use crate::actor::key::{ActorId, Kind, stable_hash};
use crate::cluster::directory::Entry;
use crate::here::Here;
use crate::observe::events::Happened;
use crate::shard::calls::Completion;
use crate::shard::raw::RawParcel;
use crate::shard::{AnyParcel, Item, Shard};

impl Geo {
    /// Sends what an actor's machine says to a cluster.
    pub(super) fn send(&self, to: ClusterId, key: &Entry, message: Message) {
        self.send_quiet(to, key, message, false);
    }

    /// The same, with word of whether no instance has been here of late.
    pub(super) fn send_quiet(&self, to: ClusterId, key: &Entry, message: Message, quiet: bool) {
        match &message.body {
            Body::Ask { .. } => self.counts.asked(),
            Body::Forward { .. } => self.counts.forwarded(),
            _ => {}
        }
        let id = key.id();
        let letter = Letter {
            kind: id.kind.name().to_owned(),
            key: (*id.key).to_owned(),
            from: self.me,
            clock: self.world.now().as_nanos(),
            hops: 0,
            quiet,
            message,
        };
        self.post(Peer::Cluster(to), &letter);
    }

    fn post(&self, to: Peer, letter: &Letter) {
        let mut out = BytesMut::with_capacity(letter.len() + 128);
        if letter.encode(&mut out).is_err() {
            return tracing::error!("a letter to another cluster cannot be written");
        }
        if let Some(mesh) = self.mesh.get()
            && !mesh.send(to, Mail::Letter(out.freeze()))
        {
            self.counts.dropped();
        }
    }

    /// Lets a call of this cluster look for its actor again.
    pub(crate) fn deliver(&self, parcel: RawParcel) {
        let port = &self.shards[parcel.hash() as usize % self.shards.len()];
        if let Err((_, Item::Parcel(parcel))) = port.push(Item::Parcel(Box::new(parcel))) {
            let _ = port.push(Item::Run(Box::new(move |_: &Shard| parcel.refuse(crate::Refusal::Recovering))));
        }
    }

    /// Ends a call of this cluster that no instance here has run.
    pub(super) fn end(&self, parcel: RawParcel, end: End<Blob>, silent: &BTreeSet<ClusterId>) {
        let port = &self.shards[parcel.hash() as usize % self.shards.len()];
        let refusal = match end {
            End::Refused(why) => Some(refusal(self, &parcel.id.to_string(), why, silent)),
            _ => None,
        };
        let finish = move |_: &Shard| match (end, refusal) {
            (End::Result(blob), _) => parcel.reply.finish(completion(blob)),
            (_, Some(refusal)) => Box::new(parcel).refuse(refusal),
            (_, None) => {
                let doubt = Doubt::Apart { actor: parcel.id.to_string() };
                parcel.reply.finish(Completion::Failed(Box::new(doubt.into())));
            }
        };
        // A shard that is gone has no callers either.
        let _ = port.push(Item::Run(Box::new(finish)));
    }

    /// Runs a call of another cluster on the instance here, and sends what comes out.
    pub(super) fn run(self: &Arc<Self>, origin: ClusterId, key: &Entry, call: Carried<Operation>) {
        self.counts.answered();
        let Carried { id, operation } = call;
        let (sender, receiver) = oneshot::channel();
        let awaited = operation.awaited;
        let run_key = key.clone();
        let port = &self.shards[stable_hash(key.kind().name(), key.key()) as usize % self.shards.len()];
        let number = id.0 as u32;
        // Its uses are counted by the cluster of the caller.
        let kind = key.kind();
        let caller = (self.is_adaptive(kind) || self.may_wander(kind)).then_some(origin);
        let run = move |shard: &Shard| {
            shard.run_for_cluster(&run_key.id(), operation, caller, awaited.then_some((sender, number)));
        };
        let (geo, key) = (self.clone(), key.clone());
        if port.push(Item::Run(Box::new(run))).is_err() {
            return;
        }
        let answer = async move {
            let result = match awaited {
                true => receiver
                    .await
                    .map_or_else(|_| outcome(Completion::Failed(Box::new(Doubt::Dropped.into()))), outcome),
                // Nobody reads it, but the caller's cluster hears that the call is over.
                false => Blob::default(),
            };
            let configuration = geo.clusters().configuration().epoch;
            geo.send(origin, &key, Message { configuration, body: Body::Result { call: id, result } });
        };
        self.world.spawn(Stage::Control, Box::pin(answer));
    }

    /// Takes in a letter: for the range's owner, which may be another node of this cluster.
    pub(super) fn receive(self: &Arc<Self>, node: &Here, mut letter: Letter) {
        let now = self.world.now();
        letter.by_own_clock(now);
        let hosted =
            |kind: &Kind| node.view().hosts(*kind).is_some() && node.kinds().check_external(kind.name()).is_ok();
        let Some(kind) = Kind::known(&letter.kind).filter(hosted) else { return self.not_hosted(letter) };
        let Some(directory) = node.directory() else { return };
        let key = match ActorId::new(kind, letter.key.as_str()) {
            Ok(id) => Entry::new(id),
            Err(refusal) => return tracing::debug!(kind = letter.kind, %refusal, "a letter is for nobody"),
        };
        let (from, message, quiet) = (letter.from, letter.message, letter.quiet);
        match directory.letter(self, now, &key, (from, message, quiet)) {
            Passing::Done => {}
            Passing::On(owner, message) if letter.hops < HOPS_MAX => {
                let letter = Letter { message, hops: letter.hops + 1, ..letter };
                self.post(Peer::Node(owner), &letter);
            }
            Passing::On(..) => tracing::debug!(kind = letter.kind, "a letter went round in circles"),
        }
    }

    /// Answers for a kind that no node of this cluster hosts: nobody here owns its actors.
    fn not_hosted(&self, letter: Letter) {
        let Body::Ask { round, carried, .. } = letter.message.body else { return };
        let configuration = self.clusters().configuration();
        let agreed = letter.message.configuration == configuration.epoch;
        let verdict =
            if agreed { Verdict::Pass { ran: Default::default(), last: Default::default() } } else { Verdict::Unknown };
        // Nodes that hosted it may be gone, with what they knew.
        let carried = !carried.is_empty();
        let body = Body::Answer { round, verdict, declined: carried, carried, remembers_ms: 0 };
        let message = Message { configuration: configuration.epoch, body };
        let clock = self.world.now().as_nanos();
        self.post(Peer::Cluster(letter.from), &Letter { from: self.me, clock, hops: 0, message, ..letter });
    }

    /// Notes that a cluster answers or does not: machines that wait for it hear of it.
    pub(super) fn heard(self: &Arc<Self>, node: &Here, cluster: ClusterId, answers: bool) {
        if !self.note_silent(cluster, !answers) {
            return;
        }
        let list = self.clusters();
        let name = list.name(cluster).unwrap_or("?");
        if answers {
            tracing::info!(cluster = name, "a cluster answers again");
            node.happened(Happened::ClusterHeard { cluster: name.to_owned() });
            node.versioned().post().reached(cluster);
            self.reload_all();
        } else {
            tracing::warn!(cluster = name, "a cluster does not answer");
            node.happened(Happened::ClusterSilent { cluster: name.to_owned() });
        }
        if let Some(directory) = node.directory() {
            let event = || if answers { Event::Reached(cluster) } else { Event::Lost(cluster) };
            directory.all_abroad(self, self.world.now(), event);
        }
    }
}

/// Bytes of a call's arguments that fit into a letter, with all that goes along.
pub(crate) const LETTER_ROOM: usize = (16 << 20) - (64 << 10);
/// Nodes of one cluster that may pass a letter on.
const HOPS_MAX: u8 = 4;

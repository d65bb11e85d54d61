//! One state of one activation: where it is kept and what of it was seen there.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use greenroom_protocols::state_versions::FIRST;
use greenroom_store::{Applied, Store, StoreError, Version, Versioned};
use greenroom_world::Timestamp;

use super::record::{self, Author};
use super::{State, StateError};
use crate::actor::cx::Cx;
use crate::actor::key::ActorId;
use crate::shard::Shard;

/// Where a state is kept.
pub(crate) struct Site {
    store: Arc<dyn Store>,
    key: String,
    /// The version of the state's type that all nodes read.
    in_force: u8,
}

/// What an activation knows of one of its states.
#[derive(Default)]
pub(crate) struct Slot {
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// The version of what was last loaded or saved; `None` if nothing was there.
    version: Option<Version>,
    /// A hash of what was last loaded or saved: saves of the same are spared where nobody has asked for them.
    digest: Option<u64>,
    /// Tells this activation's writes from all others; 0 before the first.
    writer: u64,
    sequence: u64,
}

impl Site {
    /// The place of the state called `name` of the actor `id` in `store`, where the names of the node's states begin with `root`.
    pub(crate) fn new(store: Arc<dyn Store>, root: &str, id: &ActorId, name: &str) -> Self {
        Self { store, key: format!("{root}{}/{name}/{}", id.kind, id.key), in_force: FIRST }
    }

    /// The same, while version `in_force` of the state's type is written.
    pub(crate) fn under(self, in_force: u8) -> Self {
        Self { in_force, ..self }
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    pub(crate) fn into_parts(self) -> (Arc<dyn Store>, String) {
        (self.store, self.key)
    }

    fn read_error(&self, error: &StoreError) -> StateError {
        StateError::not_loaded(&self.key, error)
    }
}

impl Slot {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the state; `None` if there is none.
    pub(crate) async fn load<S: State>(&self, cx: &Cx, site: &Site) -> Result<Option<S>, StateError> {
        let patience = Patience::begin(cx);
        let found = site.store.read(&site.key, patience.left()).await.map_err(|error| site.read_error(&error))?;
        self.take_in(&site.key, found)
    }

    /// Reads the state for a new activation, which may be spared the way by who has read it early.
    pub(crate) async fn load_first<S: State>(&self, cx: &Cx, site: &Site) -> Result<Option<S>, StateError> {
        let early = cx.port.node.claim(&cx.id, cx.epoch, &site.key);
        let Some(early) = early else { return self.load(cx, site).await };
        let patience = Patience::begin(cx);
        let found = early.or(site.store.read(&site.key, patience.left())).await;
        self.take_in(&site.key, found.map_err(|error| site.read_error(&error))?)
    }

    /// Reads the state again; `None` if the record is the one that this activation last saw.
    pub(crate) async fn refresh<S: State>(&self, cx: &Cx, site: &Site) -> Result<Option<Option<S>>, StateError> {
        let Some(found) = self.read_changed(cx, site).await? else { return Ok(None) };
        self.take_in(&site.key, found).map(Some)
    }

    /// Reads the record; `None` if it is the one that this activation last saw.
    pub(super) async fn read_changed(&self, cx: &Cx, site: &Site) -> Result<Option<Option<Versioned>>, StateError> {
        let patience = Patience::begin(cx);
        let found = site.store.read(&site.key, patience.left()).await.map_err(|error| site.read_error(&error))?;
        let is_changed = self.seen().version != found.as_ref().map(|found| found.version.clone());
        Ok(is_changed.then_some(found))
    }

    fn take_in<S: State>(&self, state: &str, found: Option<Versioned>) -> Result<Option<S>, StateError> {
        let value = match &found {
            None => None,
            Some(found) => {
                let (_, payload) = record::open(&found.value).map_err(|why| StateError::not_loaded(state, why))?;
                Some((record::decode(state, payload)?, digest(payload)))
            }
        };
        let mut seen = self.seen();
        seen.version = found.map(|found| found.version);
        let (value, digest) = value.unzip();
        seen.digest = digest;
        Ok(value)
    }

    /// Writes `value`, if the state is still as this activation last saw it.
    ///
    /// On a conflict the state that is there comes back, for the actor to go on with.
    pub(crate) async fn save<S: State>(&self, cx: &Cx, site: &Site, value: &S) -> Result<(), Lost<S>> {
        let payload = encode(site, value)?;
        let digest = digest(&payload);
        self.write(cx, site, &payload, digest).await.map_err(|missed| self.lost(site, missed))
    }

    /// The same, unless `value` is what was last loaded or saved.
    pub(crate) async fn save_changed<S: State>(&self, cx: &Cx, site: &Site, value: &S) -> Result<(), Lost<S>> {
        let payload = encode(site, value)?;
        let digest = digest(&payload);
        if self.seen().digest == Some(digest) {
            return Ok(());
        }
        self.write(cx, site, &payload, digest).await.map_err(|missed| self.lost(site, missed))
    }

    /// Reads the record, whatever its type; `None` if there is none.
    pub(super) async fn look_up(&self, cx: &Cx, site: &Site) -> Result<Option<Bytes>, StateError> {
        let patience = Patience::begin(cx);
        let found = site.store.read(&site.key, patience.left()).await.map_err(|error| site.read_error(&error))?;
        let mut seen = self.seen();
        (seen.version, seen.digest) = (found.as_ref().map(|found| found.version.clone()), None);
        Ok(found.map(|found| found.value))
    }

    /// Writes an encoded value, whatever its type, unless its digest is that of what was last saved.
    pub(super) async fn write_changed(
        &self,
        cx: &Cx,
        site: &Site,
        payload: &[u8],
        digest: u64,
    ) -> Result<(), StateError> {
        if self.seen().digest == Some(digest) {
            return Ok(());
        }
        self.write(cx, site, payload, digest).await.map_err(|missed| missed.error)
    }

    /// Writes an encoded value, whatever its type.
    ///
    /// A write whose outcome is not known is looked for, and written again under the same condition, until it is known
    /// or the time is up: under one version only one of the writes can be applied, and they all write the same.
    async fn write(&self, cx: &Cx, site: &Site, payload: &[u8], digest: u64) -> Result<(), Missed> {
        let world = cx.port.node.world();
        let began = world.now();
        let written = self.write_until_known(cx, site, payload, digest).await;
        let conflict = written.as_ref().is_err_and(|missed| missed.found.is_some());
        Shard::with(|shard| {
            if let Some(shard) = shard {
                shard.gauges().count_save(world.now().since(began), conflict);
            }
        });
        written
    }

    async fn write_until_known(&self, cx: &Cx, site: &Site, payload: &[u8], digest: u64) -> Result<(), Missed> {
        let patience = Patience::begin(cx);
        let (mut expected, first) = {
            let mut seen = self.seen();
            if seen.writer == 0 {
                seen.writer = cx.port.node.world().random() | 1;
            }
            (seen.version.clone(), seen.sequence + 1)
        };
        // What was said of an earlier try that may still be applied, or has been.
        let mut doubt: Option<StoreError> = None;
        loop {
            if !cx.port.node.fence_open() {
                return Err(given_up(site, doubt.as_ref(), FENCED).into());
            }
            let author = self.next_author(cx);
            let error = match write(site, &expected, record::seal(author, payload), patience.left()).await {
                Ok(version) => {
                    self.saved(version, digest);
                    return Ok(());
                }
                Err(error) if error.is_conflict() || error.applied() == Applied::Maybe => error,
                Err(error) => return Err(given_up(site, doubt.as_ref(), error).into()),
            };
            if !error.is_conflict() {
                doubt = Some(error.clone());
            }
            let found = self.look(site, &patience, doubt.as_ref(), &error).await?;
            let now = found.as_ref().map(|found| found.version.clone());
            if now != expected {
                let wrote = found.as_ref().and_then(|found| record::open(&found.value).ok()).map(|(author, _)| author);
                match (wrote.filter(|wrote| wrote.writer == author.writer), &now) {
                    (Some(ours), Some(version)) if ours.sequence >= first => {
                        self.saved(version.clone(), digest);
                        return Ok(());
                    }
                    (Some(_), _) => {
                        // An earlier save that nobody knew of has come true: this one follows it, and none of its tries
                        // so far can come true any more.
                        (expected, doubt) = (now, None);
                    }
                    // Whoever wrote this may have found there what this save wrote.
                    (None, _) if doubt.is_some() => return Err(given_up(site, doubt.as_ref(), error).into()),
                    (None, _) => return Err(Missed::of(cx, site, found, wrote)),
                }
            }
            if patience.left().is_zero() {
                return Err(given_up(site, doubt.as_ref(), error).into());
            }
            // Not there, and it may still come: the same write under the same version keeps it from coming twice.
        }
    }

    fn next_author(&self, cx: &Cx) -> Author {
        let mut seen = self.seen();
        seen.sequence += 1;
        Author { epoch: cx.epoch(), writer: seen.writer, sequence: seen.sequence }
    }

    /// What is there after a write that ended with `error`, and that or an earlier one may be in `doubt`.
    async fn look(
        &self,
        site: &Site,
        patience: &Patience<'_>,
        doubt: Option<&StoreError>,
        error: &StoreError,
    ) -> Result<Option<Versioned>, StateError> {
        loop {
            let left = patience.left();
            if left.is_zero() {
                return Err(given_up(site, doubt, error));
            }
            match site.store.read(&site.key, left).await {
                Ok(found) => return Ok(found),
                Err(_) => patience.pause().await,
            }
        }
    }

    fn saved(&self, version: Version, digest: u64) {
        let mut seen = self.seen();
        seen.version = Some(version);
        seen.digest = Some(digest);
    }

    fn lost<S: State>(&self, site: &Site, Missed { error, found }: Missed) -> Lost<S> {
        match found.map(|found| self.take_in(&site.key, found)) {
            None => Lost { error, found: None },
            Some(Ok(value)) => Lost { error, found: Some(value) },
            Some(Err(unread)) => StateError::not_saved(&site.key, unread).into(),
        }
    }

    /// Removes the state, if it is still as this activation last saw it.
    pub(crate) async fn clear(&self, cx: &Cx, site: &Site) -> Result<(), StateError> {
        let Some(expected) = self.seen().version.clone() else { return Ok(()) };
        if !cx.port.node.fence_open() {
            return Err(given_up(site, None, FENCED));
        }
        let patience = Patience::begin(cx);
        let error = match site.store.delete(&site.key, &expected, patience.left()).await {
            Ok(()) => None,
            Err(error) if error.is_conflict() || error.applied() == Applied::Maybe => Some(error),
            Err(error) => return Err(StateError::not_saved(&site.key, error)),
        };
        if let Some(error) = error {
            let doubt = (!error.is_conflict()).then_some(&error);
            if self.look(site, &patience, doubt, &error).await?.is_some() {
                return Err(given_up(site, doubt, "it was changed by somebody else meanwhile"));
            }
        }
        let mut seen = self.seen();
        (seen.version, seen.digest) = (None, None);
        Ok(())
    }
}

/// A save that did not happen, and what is there instead if the actor can go on with it.
pub(crate) struct Lost<S> {
    pub(crate) error: StateError,
    pub(crate) found: Option<Option<S>>,
}

/// The same, before what is there instead has a type.
struct Missed {
    error: StateError,
    found: Option<Option<Versioned>>,
}

impl Missed {
    /// Of a save that `found` what another author `wrote`.
    fn of(cx: &Cx, site: &Site, found: Option<Versioned>, wrote: Option<Author>) -> Self {
        let state = site.key.clone();
        if wrote.is_some_and(|wrote| wrote.epoch > cx.epoch()) {
            return StateError::Superseded { state }.into();
        }
        Self { error: StateError::Conflict { state }, found: Some(found) }
    }
}

impl<S> From<StateError> for Lost<S> {
    fn from(error: StateError) -> Self {
        Self { error, found: None }
    }
}

impl From<StateError> for Missed {
    fn from(error: StateError) -> Self {
        Self { error, found: None }
    }
}

fn encode<S: State>(site: &Site, value: &S) -> Result<BytesMut, StateError> {
    let payload = record::encode(value, site.in_force);
    payload.map_err(|why| StateError::not_saved(&site.key, format!("it cannot be encoded: {why}")))
}

/// The error of a write that is not tried again: what is in doubt stays so, whatever came after it.
fn given_up(site: &Site, doubt: Option<&StoreError>, why: impl ToString) -> StateError {
    match doubt {
        Some(doubt) => StateError::unknown(&site.key, doubt),
        None => StateError::not_saved(&site.key, why),
    }
}

async fn write(
    site: &Site,
    expected: &Option<Version>,
    record: Bytes,
    timeout: Duration,
) -> Result<Version, StoreError> {
    match expected {
        None => site.store.create(&site.key, record, timeout).await,
        Some(expected) => site.store.replace(&site.key, record, expected, timeout).await,
    }
}

/// The time that a save or load may take: the node's for stores, and no more than is left of the turn's.
struct Patience<'a> {
    cx: &'a Cx,
    until: Timestamp,
}

impl<'a> Patience<'a> {
    fn begin(cx: &'a Cx) -> Self {
        let node = &cx.port.node;
        let limit = node.config().store_timeout;
        let limit = cx.time_left().map_or(limit, |left| left.min(limit));
        Self { cx, until: node.world().now() + limit }
    }

    fn left(&self) -> Duration {
        self.until.since(self.cx.port.node.world().now())
    }

    async fn pause(&self) {
        tokio::time::sleep(PAUSE.min(self.left())).await;
    }
}

/// FNV-1a over words of eight bytes, with a last mix: it tells changes, it does not guard against anybody.
pub(super) fn digest(payload: &[u8]) -> u64 {
    let mut hash = 0xCBF2_9CE4_8422_2325 ^ payload.len() as u64;
    let mut words = payload.chunks_exact(8);
    let mut take = |word: u64| hash = (hash ^ word).wrapping_mul(0x9FB2_1C65_1E98_DF25).rotate_left(29);
    for word in &mut words {
        take(u64::from_le_bytes(word.try_into().expect("eight bytes")));
    }
    let mut tail = [0; 8];
    tail[..words.remainder().len()].copy_from_slice(words.remainder());
    take(u64::from_le_bytes(tail));
    hash ^ (hash >> 32)
}

const FENCED: &str = "this node's lease has run out; retry the call, another node will answer";

/// Between two looks at a store that does not answer.
const PAUSE: Duration = Duration::from_millis(50);

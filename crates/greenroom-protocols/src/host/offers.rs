//! The kinds that a node's sessions offer.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::time::Timestamp;
use crate::versions::FIRST;

use super::{Digest, KindName, NotAllowed, Offer, ROW_PACE, Refusal, SessionId, Settings, Verdict};

/// All versions of all kinds, and the row of the membership table that says the newest of each.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Offers {
    kinds: BTreeMap<KindName, BTreeMap<u16, Version>>,
    /// What was last written.
    row: Vec<Offer>,
    /// When the next row may be written.
    next_row: Timestamp,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Version {
    offer: Offer,
    sessions: BTreeSet<SessionId>,
    /// When the last session left.
    gone: Timestamp,
}

impl Offers {
    /// Takes an offer of `session`, or says why not.
    pub(super) fn offer(
        &mut self,
        session: SessionId,
        offer: &Offer,
        allowed: Result<(), NotAllowed>,
        claimed: Option<Digest>,
        settings: &Settings,
    ) -> Verdict {
        match self.judge(offer, allowed, claimed, settings) {
            Ok(()) => {}
            Err(refusal) => return Verdict::Refused(refusal),
        }
        let versions = self.kinds.entry(offer.kind.clone()).or_default();
        let older = versions.range(..offer.versions.version).any(|(_, older)| !older.sessions.is_empty());
        let version = versions.entry(offer.versions.version).or_insert_with(|| Version {
            offer: offer.clone(),
            sessions: BTreeSet::new(),
            gone: Timestamp::NEVER,
        });
        if version.sessions.is_empty() {
            version.offer = offer.clone();
        }
        version.sessions.insert(session);
        if older { Verdict::TakenInPlace } else { Verdict::Taken }
    }

    /// `session` offers nothing any more.
    pub(super) fn withdraw(&mut self, session: SessionId, now: Timestamp) {
        for version in self.kinds.values_mut().flat_map(BTreeMap::values_mut) {
            if version.sessions.remove(&session) && version.sessions.is_empty() {
                version.gone = now;
            }
        }
    }

    /// Forgets what nobody has offered for `grace`; gives the row, if it is to be written.
    pub(super) fn tick(&mut self, now: Timestamp, settings: &Settings) -> Option<Vec<Offer>> {
        let grace = if settings.checks.row { settings.grace } else { Duration::ZERO };
        self.kinds.retain(|_, versions| {
            versions.retain(|_, version| !version.sessions.is_empty() || now < version.gone + grace);
            !versions.is_empty()
        });
        let row = self.newest();
        if row == self.row || (settings.checks.row && now < self.next_row) {
            return None;
        }
        self.row.clone_from(&row);
        self.next_row = now + ROW_PACE;
        Some(row)
    }

    /// When [`Offers::tick`] next has something to do.
    pub(super) fn deadline(&self, settings: &Settings) -> Option<Timestamp> {
        let versions = self.kinds.values().flat_map(BTreeMap::values);
        let gone = versions.filter(|version| version.sessions.is_empty()).map(|version| version.gone + settings.grace);
        let row = (self.newest() != self.row).then_some(self.next_row);
        gone.chain(row).min()
    }

    /// Of each kind the newest version.
    pub(super) fn newest(&self) -> Vec<Offer> {
        let newest = self.kinds.values().filter_map(|versions| versions.last_key_value());
        newest.map(|(_, version)| version.offer.clone()).collect()
    }

    fn judge(
        &self,
        offer: &Offer,
        allowed: Result<(), NotAllowed>,
        claimed: Option<Digest>,
        settings: &Settings,
    ) -> Result<(), Refusal> {
        allowed?;
        let Offer { kind, versions, digest } = offer;
        if versions.compatible < FIRST || versions.compatible > versions.version {
            let (kind, version, compatible) = (kind.clone(), versions.version, versions.compatible);
            return Err(Refusal::Versions { kind, version, compatible });
        }
        let known = self.kinds.get(kind);
        let ours = known.and_then(|known| known.get(&versions.version)).filter(|known| !known.sessions.is_empty());
        let ours = ours.map(|version| version.offer.digest.clone());
        let other = ours.or(claimed).filter(|claimed| settings.checks.digest && claimed != digest);
        if let Some(claimed) = other {
            let (kind, version, offered) = (kind.clone(), versions.version, digest.clone());
            return Err(Refusal::Digest { kind, version, claimed, offered });
        }
        if known.is_none() && self.kinds.len() >= settings.kinds_max {
            return Err(Refusal::TooMany { max: settings.kinds_max });
        }
        Ok(())
    }
}

//! What hosts offer at this node, and what the cluster is told of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use greenroom_describe::{Description, Save};
use greenroom_protocols::host;
use greenroom_protocols::node::{Instances, KindInfo};
use greenroom_protocols::state_versions::StateVersions;
use greenroom_protocols::versions::Offer;
use greenroom_wire::host::OfferMap;

use super::kind::Foreign;
use crate::actor::interface::Options;
use crate::actor::key::Kind;
use crate::geo::reliable_kinds::check_reliable_kind;
use crate::here::Here;
use crate::here::built_in::{RELIABLE, is_built_in};
use crate::here::foreign::{ForeignKind, NamedMethod, Said, number_all};
use crate::here::kinds::KindEntry;
use crate::state::Saving;

/// An offer that a node has taken.
#[derive(Clone)]
pub(crate) struct Taken {
    pub(super) kind: Kind,
    pub(super) offer: Offer,
    /// The digest of the description of this version that came first.
    digest: String,
    /// The shards, from the first on, that its session may join lanes of.
    pub(super) shards: u16,
    pub(super) description: Description,
    /// The node's numbers of its methods, in the order of its description.
    pub(super) numbers: Arc<[u16]>,
}

impl Taken {
    /// The place in its description of the method that the node numbers so.
    pub(super) fn method(&self, number: u16) -> Option<u32> {
        self.numbers.iter().position(|known| *known == number).map(|at| at as u32)
    }
}

/// What is offered here, by kind.
#[derive(Default)]
pub(super) struct Offers {
    /// By their names.
    kinds: BTreeMap<&'static str, Offered>,
    /// Descriptions that hosts have shown, by their digests.
    shown: BTreeMap<String, Description>,
}

struct Offered {
    kind: Kind,
    sessions: BTreeMap<u64, Taken>,
    /// What the cluster was told of it last.
    info: KindInfo,
}

impl Offers {
    /// The description with this digest, if it was shown.
    pub(super) fn shown(&self, digest: &str) -> Option<&Description> {
        self.shown.get(digest)
    }

    /// Remembers a description.
    pub(super) fn show(&mut self, description: Description) {
        if self.shown.len() >= SHOWN_MAX {
            self.shown.pop_first();
        }
        self.shown.insert(description.digest().to_string(), description);
    }

    /// Takes an offer of `session`, or says why not; the digest that stands for its description here.
    pub(super) fn take(
        &mut self,
        here: &Here,
        (session, shards): (u64, u16),
        offered: &OfferMap,
    ) -> Result<(Taken, String), String> {
        let Some(description) = self.shown.get(&offered.digest).cloned() else {
            return Err(format!("no description with the digest {} was shown", offered.digest));
        };
        check(here, offered, &description)?;
        if description.options.reliable {
            check_reliable(here, shards, &description)?;
        }
        let kind = Kind::offered(&offered.kind).ok_or("this node knows as many kinds as it can; restart it")?;
        if self.kinds.len() >= KINDS_MAX && !self.kinds.contains_key(kind.name()) {
            return Err(format!("hosts have offered {KINDS_MAX} kinds here, which is the most"));
        }
        let offer = Offer { version: description.version, compatible: description.compatible };
        let same = self
            .kinds
            .get(kind.name())
            .and_then(|known| known.sessions.values().find(|taken| taken.offer.version == offer.version).cloned());
        if let Some(same) = &same
            && let Some(difference) = description.differences(&same.description).first()
        {
            return Err(format!(
                "version {} of {:?} is offered here already, and is another one: {difference}; give this one a higher version",
                offer.version, offered.kind
            ));
        }
        let newest = self.kinds.get(kind.name()).and_then(Offered::newest).map(|taken| taken.offer.version);
        let numbers = say(here, kind, &description, newest.is_none_or(|newest| newest <= offer.version))?;
        let digest = same.as_ref().map_or(&offered.digest, |same| &same.digest).clone();
        let taken = Taken { kind, offer, digest: digest.clone(), shards, description, numbers: numbers.into() };
        let known = self.kinds.entry(kind.name()).or_insert_with(|| Offered::new(kind));
        known.sessions.insert(session, taken.clone());
        known.tell();
        Ok((taken, digest))
    }

    /// Forgets what `session` offered.
    pub(super) fn forget(&mut self, here: &Here, session: u64) {
        for offered in self.kinds.values_mut() {
            if offered.sessions.remove(&session).is_none() {
                continue;
            }
            if let Some(taken) = offered.newest().cloned() {
                // It was said before: there is room for it.
                let _ = say(here, offered.kind, &taken.description, true);
                offered.tell();
            }
        }
    }

    /// How many shards, from the first on, have lanes of sessions that offer `kind`; `None` if nobody does.
    pub(super) fn shards(&self, kind: &str) -> Option<u16> {
        self.kinds.get(kind)?.sessions.values().map(|taken| taken.shards).max()
    }

    /// An offer of `session` that was taken here is not taken after all.
    pub(super) fn refuse(&mut self, session: u64, kind: &str) {
        if let Some(offered) = self.kinds.get_mut(kind) {
            offered.sessions.remove(&session);
        }
    }

    /// What the cluster is told of the kinds of `row`. Of others nothing is kept that nobody offers.
    pub(super) fn infos(&mut self, row: &[host::Offer]) -> Vec<KindInfo> {
        let is_told = |name: &str| row.iter().any(|offer| &*offer.kind == name);
        self.kinds.retain(|name, offered| !offered.sessions.is_empty() || is_told(name));
        self.kinds.iter().filter(|(name, _)| is_told(name)).map(|(_, offered)| offered.info.clone()).collect()
    }
}

impl Offered {
    fn new(kind: Kind) -> Self {
        Self { kind, sessions: BTreeMap::new(), info: KindInfo::default() }
    }

    fn newest(&self) -> Option<&Taken> {
        self.sessions.values().max_by_key(|taken| taken.offer.version)
    }

    /// Its actors wait for a host to come back: so what was told stays when none is left.
    fn tell(&mut self) {
        if let Some(taken) = self.newest() {
            self.info = info(&taken.description);
        }
    }
}

fn info(description: &Description) -> KindInfo {
    let placement = match &description.options.placement {
        _ if description.options.reliable => RELIABLE.to_owned(),
        placement => placement.clone().unwrap_or_default(),
    };
    let states = description
        .states
        .iter()
        .map(|state| (state.name.clone(), StateVersions { reads: state.version, writes: state.version }));
    KindInfo {
        name: description.kind.clone(),
        placement,
        version: description.version,
        compatible: description.compatible,
        digest: description.digest().to_string(),
        states: states.collect(),
        ..KindInfo::default()
    }
}

/// Whether the node may take the offer, as far as the kind alone goes.
fn check(here: &Here, offered: &OfferMap, description: &Description) -> Result<(), String> {
    let name = &offered.kind;
    if (&description.kind, description.version, description.compatible) != (name, offered.version, offered.compatible) {
        return Err(format!("its description is of version {} of {:?}", description.version, description.kind));
    }
    if is_built_in(name) {
        return Err(format!("{name:?} is a name of the runtime's own"));
    }
    if here.kinds().has_linked(name) {
        return Err(format!("{name:?} is a kind of the node's own program; give this one another name"));
    }
    let options = &description.options;
    let unfit = [
        (options.workers.is_some_and(|workers| workers > 0), "workers"),
        (options.home.is_some(), "home"),
        (options.protocol.is_some() || options.leader.is_some(), "protocol"),
        (!takes_instances(description), "instances"),
        (description.states.iter().any(|state| state.versioned), "versioned states"),
    ];
    if let Some((_, option)) = unfit.iter().find(|(unfit, _)| *unfit) {
        return Err(format!("actors in hosts have no {option:?} yet; leave it out"));
    }
    let view = here.view();
    for (node, member) in view.view.active() {
        for known in member.kinds.iter().filter(|known| known.name == *name) {
            if !known.is_foreign() {
                return Err(format!(
                    "{name:?} is a kind of the program of node {}; give this one another name",
                    member.name
                ));
            }
            if node != here.me() && known.version == offered.version && known.digest != offered.digest {
                return Err(format!(
                    "version {} of {name:?} that node {} has is another one (its description's digest is {}); give this one a \
                     higher version",
                    known.version, member.name, known.digest
                ));
            }
        }
    }
    let kinds = view.view.active().flat_map(|(_, member)| &member.kinds).filter(|known| known.is_foreign());
    let names: std::collections::BTreeSet<&str> = kinds.map(|known| known.name.as_str()).collect();
    if names.len() >= KINDS_MAX && !names.contains(name.as_str()) {
        return Err(format!("hosts have offered {KINDS_MAX} kinds in this cluster, which is the most"));
    }
    Ok(())
}

/// True if actors in hosts can have as many instances as the description says: one, and of reliable kinds one in each cluster.
fn takes_instances(description: &Description) -> bool {
    match description.options.instances.as_deref() {
        Some(PER_CLUSTER) => description.options.reliable,
        said => said.is_none_or(|instances| instances == "single"),
    }
}

/// Whether the node may take the offer of a reliable kind from a session with lanes to so many shards.
fn check_reliable(here: &Here, shards: u16, description: &Description) -> Result<(), String> {
    let declares_per_cluster = description.options.instances.as_deref() == Some(PER_CLUSTER);
    check_reliable_kind(here.config(), &description.kind, declares_per_cluster)?;
    if here.journal().is_none() {
        return Err(format!(
            "{:?} is reliable, and this node has no journal; give it one: `--journal URL` (`memory:` to try it), or `journal` under `[reliable]`",
            description.kind
        ));
    }
    let all = here.shards().len();
    if usize::from(shards) < all {
        return Err(format!(
            "actors of {:?} are reliable, and on all of this node's {all} shards; let the host's `lanes` be {all}",
            description.kind
        ));
    }
    Ok(())
}

/// Makes the kind known here, as `description` says if it `holds` from now on; the numbers of its methods.
fn say(here: &Here, kind: Kind, description: &Description, holds: bool) -> Result<Vec<u16>, String> {
    let methods: Vec<NamedMethod> =
        description.methods.iter().map(|method| NamedMethod { name: method.name.clone(), read: method.read }).collect();
    let offer = Offer { version: description.version, compatible: description.compatible };
    let said = |methods, offered| Said {
        methods,
        offered,
        offer,
        options: options(description),
        description: description.clone(),
    };
    let known = here.kinds().foreign(kind);
    if let Some(before) = known.map(|known| known.said().options.reliable)
        && before != description.options.reliable
    {
        let (was, is) = if before { ("was", "is not") } else { ("was not", "is") };
        return Err(format!("{:?} {was} reliable here, and now {is}; give this one another name", kind.name()));
    }
    let Some(known) = known else {
        let (all, numbers) = number_all(&[], &methods);
        let foreign = Arc::new(ForeignKind::new(kind.name(), said(all, numbers.clone())));
        let factory = Box::new(|_: &crate::actor::cx::Cx| Ok(Foreign::default()));
        let entry = Arc::new(KindEntry::<Foreign>::foreign(factory, foreign.clone(), here.config()));
        here.kinds().insert_foreign(kind, foreign, entry);
        return Ok(numbers);
    };
    let (all, numbers) = known.number_all(&methods);
    if holds {
        known.say(said(all, numbers.clone())).map_err(|_| {
            format!("{:?} has changed too often since this node started; restart the node", kind.name())
        })?;
    }
    Ok(numbers)
}

fn options(description: &Description) -> Options {
    let said = &description.options;
    let saving = match said.save {
        Some(Save::Turn) => Saving::EachTurn,
        Some(Save::AfterMs(period)) => Saving::Every(Duration::from_millis(period)),
        Some(Save::Explicit) | None => Saving::Explicit,
    };
    Options {
        placement: "",
        workers: 0,
        idle: said.idle_ms.map(Duration::from_millis),
        mailbox: said.mailbox,
        in_flight: said.in_flight,
        persistent: said.persistent,
        reliable: said.reliable,
        saving,
        store: said.store.as_ref().map_or("", |name| Box::leak(name.clone().into_boxed_str())),
        instances: Instances::default(),
        adaptive: false,
        home: "",
        protocol: "",
        leader: "",
        optimise: said.optimise,
    }
}

/// The number of instances that reliable kinds declare in a multi-cluster, as descriptions write it.
const PER_CLUSTER: &str = "per_cluster";
/// Kinds that hosts may have offered, in a view and at a node.
const KINDS_MAX: usize = 1024;
/// Descriptions that are kept for hosts that come back.
const SHOWN_MAX: usize = 1024;

//! What the node's findings rest on: once a second it is read off what all parts publish anyway, and looked at.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use greenroom_protocols::node::{End, NodeId, Status, View};
use greenroom_world::{Stage, Timestamp};

use crate::cluster::table::Health;
use crate::here::Here;
use crate::here::built_in::is_built_in;
use crate::here::meter::Class;
use crate::node::disks::{StoreDisk, StoreDisks};
use crate::node::reachability::Reachability;
use crate::observe::events::Happened;
use crate::observe::findings::{
    Certificate, Disk, Facts, Finding, Findings, Kind, Lease, Member, Memory, Method, Shard, Share, Standing, Watch,
};
use crate::observe::memory;

/// Looks once a second, until the node stops.
pub(super) fn watch(node: &Arc<Here>, table: Arc<Health>) {
    let here = node.clone();
    // Not on the control stage: nothing of it must hold up the node's lease.
    node.world().spawn(Stage::Door, Box::pin(async move { look_after(&here, &table).await }));
}

async fn look_after(here: &Here, table: &Health) {
    let world = here.world();
    let (mut gathering, mut watch) = (Gathering::new(world.now()), Watch::default());
    while !here.is_stopped() {
        world.sleep_until(gathering.at + EVERY).await;
        let facts = gathering.facts(here, table, world.now());
        let changes = watch.look(&facts, world.now(), here.wall().0);
        for finding in changes.raised.iter().filter(|finding| is_news(finding)) {
            here.happened(Happened::Found { finding: finding.clone() });
        }
        for finding in changes.over.iter().filter(|finding| is_news(finding)) {
            here.happened(Happened::Over { finding: finding.clone() });
        }
        if let Some(findings) = here.find_part::<Findings>() {
            findings.publish(watch.findings());
        }
    }
    // Who does not look any more finds nothing.
    if let Some(findings) = here.find_part::<Findings>() {
        findings.publish(Vec::new());
    }
}

/// How late the tick is that is late longest.
fn tick_late(here: &Here) -> Duration {
    match here.calendar().counts.behind.load(Ordering::Relaxed) {
        0 => Duration::ZERO,
        due => Duration::from_millis(here.wall().0.saturating_sub(due)),
    }
}

/// Whether nothing else tells of the same as an event.
fn is_news(finding: &Finding) -> bool {
    !["cluster-silent", "long-turn", "member-joining", "member-silent"].contains(&&*finding.check)
}

/// What was read before, to tell by it what is new.
struct Gathering {
    at: Timestamp,
    disks: Vec<Disk>,
    disks_at: Option<Timestamp>,
    busy_nanos: Vec<u64>,
    methods: BTreeMap<(&'static str, &'static str), Counted>,
    ticks_refused: Recent,
    ticks_failed: Recent,
    deliveries_failed: Recent,
    doubtful: Recent,
    duplicates: Recent,
    saves: [Recent; 3],
    missed: BTreeMap<&'static str, Recent>,
    operations_refused: BTreeMap<&'static str, Recent>,
}

/// What is counted of a method.
#[derive(Default)]
struct Counted {
    all: Recent,
    failed: Recent,
    waited: Recent,
    took_nanos: Recent,
}

/// How much a count has grown of late: what was long ago fades.
#[derive(Default)]
struct Recent {
    seen: u64,
    minute: f64,
    hour: f64,
}

impl Recent {
    fn note(&mut self, now: u64, passed: Duration) {
        let grown = now.saturating_sub(std::mem::replace(&mut self.seen, now)) as f64;
        let fades = |span: f64| (-passed.as_secs_f64() / span).exp();
        self.minute = self.minute * fades(60.0) + grown;
        self.hour = self.hour * fades(3_600.0) + grown;
    }
}

impl Gathering {
    fn new(at: Timestamp) -> Self {
        Self {
            at,
            disks: Vec::new(),
            disks_at: None,
            busy_nanos: Vec::new(),
            methods: BTreeMap::new(),
            ticks_refused: Recent::default(),
            ticks_failed: Recent::default(),
            deliveries_failed: Recent::default(),
            doubtful: Recent::default(),
            duplicates: Recent::default(),
            saves: Default::default(),
            missed: BTreeMap::new(),
            operations_refused: BTreeMap::new(),
        }
    }

    fn facts(&mut self, here: &Here, table: &Health, now: Timestamp) -> Facts {
        let passed = now.since(std::mem::replace(&mut self.at, now));
        let view = here.view();
        self.ticks_refused.note(here.calendar().counts.hopeless.load(Ordering::Relaxed), passed);
        self.ticks_failed.note(here.calendar().counts.failed.load(Ordering::Relaxed), passed);
        let saves = self.saves(here, passed);
        let mut clusters = Vec::new();
        if let Some(geo) = here.geo() {
            let counts = geo.counts().now();
            self.doubtful.note(counts.doubtful, passed);
            self.duplicates.note(counts.duplicates_found, passed);
            clusters = geo.others();
        }
        Facts {
            node: here.name().to_owned(),
            members: view.view.members.keys().filter_map(|id| member(here, &view.view, *id, now)).collect(),
            lease: lease(here, &view.view),
            unreachable: unreachable(here),
            table_failing: table.failing(),
            disks: self.disks(here, now),
            shards: self.shards(here, now, passed),
            methods: self.methods(here, passed),
            long_turns: here.gauges().iter().flat_map(|gauges| gauges.long_turns()).collect(),
            parked: here.journal().map_or(0, |_| here.reliable().parked.load(Ordering::Relaxed)),
            ticks_refused: self.ticks_refused.minute,
            ticks_failed: (self.ticks_failed.minute, here.calendar().last_failed()),
            deliveries_failed: self.deliveries_failed(here, passed),
            tick_late: tick_late(here),
            saves_slow: Share { all: saves[0], of_them: saves[1] },
            saves_in_conflict: Share { all: saves[0], of_them: saves[2] },
            clusters,
            doubtful: self.doubtful.minute,
            duplicates: self.duplicates.minute,
            memory: memory_of(here),
            certificate: certificate(here),
            kinds: kinds(&view.view),
            outlets: outlets(&view.view),
            missed: self.missed(here, passed),
            operations_refused: self.operations_refused(here, passed),
        }
    }

    /// How often kinds were called in the last minute that hosts have offered and offer no more.
    fn missed(&mut self, here: &Here, passed: Duration) -> Vec<(String, f64)> {
        let missed = here.parts().flat_map(|part| part.missed()).map(|(kind, now)| {
            let recent = self.missed.entry(kind).or_default();
            recent.note(now, passed);
            (kind.to_owned(), recent.minute)
        });
        missed.collect()
    }

    /// Returns the number of events that were not delivered in the last minute, about, with the last reason.
    fn deliveries_failed(&mut self, here: &Here, passed: Duration) -> (f64, String) {
        let (_, failed, last) = here.topics().failed.counted().pop().unwrap_or_default();
        self.deliveries_failed.note(failed, passed);
        (self.deliveries_failed.minute, last)
    }

    /// Returns the kinds of hosts whose operations were refused in the last minute, with the last reason.
    fn operations_refused(&mut self, here: &Here, passed: Duration) -> Vec<(String, f64, String)> {
        let refused = here.parts().flat_map(|part| part.refused_operations()).map(|(kind, now, last)| {
            let recent = self.operations_refused.entry(kind).or_default();
            recent.note(now, passed);
            (kind.to_owned(), recent.minute, last)
        });
        refused.collect()
    }

    /// Looks at the disks of stores every ten seconds.
    fn disks(&mut self, here: &Here, now: Timestamp) -> Vec<Disk> {
        if self.disks_at.is_none_or(|at| now.since(at) >= LOOK_AT_DISKS) {
            self.disks_at = Some(now);
            let seen = here.find_part::<StoreDisks>().map(StoreDisks::look);
            self.disks = seen.iter().flat_map(|seen| seen.iter()).map(disk).collect();
        }
        self.disks.clone()
    }

    /// Saves of the last minute, those of them that were slow, and those that met a conflict.
    fn saves(&mut self, here: &Here, passed: Duration) -> [f64; 3] {
        let sums = here
            .gauges()
            .iter()
            .map(|gauges| gauges.saves())
            .fold([0; 3], |sums, saves| std::array::from_fn(|at| sums[at] + saves[at]));
        for (recent, now) in self.saves.iter_mut().zip(sums) {
            recent.note(now, passed);
        }
        std::array::from_fn(|at| self.saves[at].minute)
    }

    fn shards(&mut self, here: &Here, now: Timestamp, passed: Duration) -> Vec<Shard> {
        self.busy_nanos.resize(here.gauges().len(), 0);
        let all = here.gauges().iter().zip(&mut self.busy_nanos).map(|(gauges, before)| {
            let busy = gauges.busy_nanos();
            let worked = busy.saturating_sub(std::mem::replace(before, busy)) as f64;
            let worst = gauges.stalls().seen().into_iter().max_by_key(|(_, stall)| stall.times);
            Shard {
                busy: (worked / passed.as_nanos().max(1) as f64).min(1.0),
                activations: gauges.activations(),
                shedding: gauges.shed().share(),
                in_one_go: gauges.in_one_go(now),
                stalled_by: worst.map(|(kind, stall)| (format!("{kind}.{}", stall.method), stall.each())),
            }
        });
        all.collect()
    }

    fn methods(&mut self, here: &Here, passed: Duration) -> Vec<Method> {
        let mut sums: BTreeMap<(&'static str, &'static str), [u64; 4]> = BTreeMap::new();
        for gauges in here.gauges() {
            gauges.meters().read(|kind, number, meter| {
                let kind = kind.name();
                if is_built_in(kind) || !meter.is_used() {
                    return;
                }
                let method = here.kinds().methods_of(kind).get(number).map_or("other", |method| method.name);
                let sum = sums.entry((kind, method)).or_default();
                let failed = meter.failed(&Class::ALL);
                let unbegun = meter.failed(&[Class::Refused, Class::Late]);
                let counts = [
                    meter.turns() + unbegun,
                    failed,
                    meter.waited_over(LONG_WAIT),
                    meter.took_in_all().as_nanos() as u64,
                ];
                sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
            });
        }
        let methods = sums.into_iter().map(|((kind, method), [all, failed, waited, took])| {
            let counted = self.methods.entry((kind, method)).or_default();
            for (recent, now) in [
                (&mut counted.all, all),
                (&mut counted.failed, failed),
                (&mut counted.waited, waited),
                (&mut counted.took_nanos, took),
            ] {
                recent.note(now, passed);
            }
            Method {
                kind: kind.to_owned(),
                method: method.to_owned(),
                failed: Share { all: counted.all.minute, of_them: counted.failed.minute },
                failed_usually: Share { all: counted.all.hour, of_them: counted.failed.hour },
                waited: Share { all: counted.all.minute, of_them: counted.waited.minute },
                took: Duration::from_nanos(counted.took_nanos.minute as u64),
            }
        });
        methods.collect()
    }
}

fn member(here: &Here, view: &View, id: NodeId, now: Timestamp) -> Option<Member> {
    let member = view.members.get(&id)?;
    let end = view.ends.get(&id);
    let standing = match member.status {
        Status::Joining => Standing::Joining,
        Status::Active if member.draining => Standing::Draining,
        Status::Active => Standing::Active,
        // One that wanted to join and gave up was never there.
        Status::Dead if matches!(end, Some(End::Left | End::NeverJoined)) => Standing::Left,
        Status::Dead => Standing::Dead,
    };
    Some(Member {
        name: member.name.clone(),
        standing,
        why: end.map(End::to_string),
        silent_for: here.loads().silent_since(id).map(|since| now.since(since)),
    })
}

fn lease(here: &Here, view: &View) -> Option<Lease> {
    let (left, length) = (here.fence_left(), here.config().lease);
    // A node alone has a lease without an end.
    (view.is_active(here.me()) && left <= length * 2).then_some(Lease { left, length })
}

fn disk(StoreDisk { store, usage }: &StoreDisk) -> Disk {
    Disk {
        store: store.clone(),
        name: usage.name.clone(),
        bytes: usage.bytes,
        log_bytes: usage.log_bytes,
        since_checkpoint: usage.since_checkpoint,
        free_bytes: usage.free_bytes,
    }
}

fn unreachable(here: &Here) -> Option<(String, String)> {
    let trouble = here.find_part::<Reachability>()?.trouble()?;
    Some((here.advertised().to_owned(), trouble))
}

/// Of a simulated node nobody can say.
fn memory_of(here: &Here) -> Option<Memory> {
    here.world().thread_time()?;
    Some(Memory { resident: memory::resident()?, limit: memory::limit()? })
}

fn kinds(view: &View) -> Vec<Kind> {
    let hosted = view.active().flat_map(|(_, member)| member.kinds.iter().map(|kind| (&member.name, kind)));
    let own = hosted.filter(|(_, kind)| !is_built_in(&kind.name));
    let told = own.map(|(node, kind)| Kind {
        node: node.clone(),
        name: kind.name.clone(),
        version: kind.version,
        placement: kind.placement.clone(),
        home: kind.home.clone(),
        instances: format!("{:?}", kind.instances),
    });
    told.collect()
}

/// Returns the active nodes that own partitions of reliable actors, with their outlets.
fn outlets(view: &View) -> Vec<(String, Vec<String>)> {
    view.active().filter_map(|(_, member)| Some((member.name.clone(), member.outlets.clone()?))).collect()
}

#[cfg(feature = "tls")]
fn certificate(here: &Here) -> Option<Certificate> {
    let left = here.links().certificates()?.current().seconds_left();
    Some(Certificate { left: Duration::from_secs(left) })
}

#[cfg(not(feature = "tls"))]
fn certificate(_: &Here) -> Option<Certificate> {
    None
}

/// How often it is looked.
const EVERY: Duration = Duration::from_secs(1);
const LOOK_AT_DISKS: Duration = Duration::from_secs(10);
/// What waits for longer has waited for long; a class of the meters ends there.
const LONG_WAIT: Duration = Duration::from_micros(1 << 20);

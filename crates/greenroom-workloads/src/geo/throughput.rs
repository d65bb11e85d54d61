//! The throughput of one hot actor (Geo §4.3, Figs. 9 and 10).

use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use serde_json::{Value, json};

use super::sites::{Place, Sites};
use crate::cli::{Api, At, Durability, Instances, Ops};
use crate::cluster::Target;
use crate::driver::{Outcome, Plan, output_rate};
use crate::kinds::geo::robot::{Load, Loaded};
use crate::kinds::geo::{Access, Kept};
use crate::report::Latency;

/// Measures what was asked for, and beside it what it is compared with: persistent actors with the basic API and with the
/// other operations, volatile ones with all the load in one cluster.
pub(super) async fn run(plan: &Plan) -> Result<Outcome, String> {
    let asked = Setting::of(plan)?;
    let sites = Sites::start(plan).await?;
    let begun = Instant::now();
    let mut measured = Vec::new();
    for setting in asked.with_its_likes() {
        measured.push(measure(&sites, plan, setting).await?);
    }
    let mut outcome = Outcome { elapsed: begun.elapsed(), ..Outcome::default() };
    let (best, likes) = measured.split_first().ok_or("nothing was measured")?;
    outcome.set("operations_per_s", output_rate(best.operations_per_s));
    outcome.set("latency_us", json!(Latency::of(&best.latency_ns)));
    for like in likes {
        outcome.set(
            &format!("ratio_to_{}", like.setting.tag()),
            output_rate(best.operations_per_s / like.operations_per_s.max(1e-9)),
        );
        if like.setting.clusters != asked.clusters {
            let ratio = best.per_cpu_s / like.per_cpu_s.max(1e-9);
            outcome.set("ratio_per_cpu_second", (ratio * 100.0).round() / 100.0);
        }
    }
    outcome.set("runs", measured.iter().flat_map(|one| one.rows.clone()).collect::<Vec<Value>>());
    outcome.set("store", sites.store.clone());
    outcome.set("errors", measured.iter().map(|one| one.errors).sum::<u64>());
    outcome.set("lost", 0);
    outcome.complaint = measured.iter().find_map(|one| one.complaint.clone());
    outcome.latency_ns.clone_from(&best.latency_ns);
    Ok(outcome)
}

/// One configuration of the actor, and from where it is accessed.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Setting {
    durability: Durability,
    api: Api,
    ops: Ops,
    instances: Instances,
    at: At,
    clusters: u8,
}

impl Setting {
    fn of(plan: &Plan) -> Result<Self, String> {
        let geo = &plan.geo;
        if geo.ops == Ops::Mixed {
            return Err("--ops mixed is for `order`; write linearizable or local".to_owned());
        }
        if geo.api == Api::Basic && geo.instances == Instances::PerCluster {
            let why =
                "instances in several clusters agree by updates only; write --api versioned or --instances single";
            return Err(why.to_owned());
        }
        let (durability, at) = (plan.durability, geo.at);
        Ok(Self { durability, api: geo.api, ops: geo.ops, instances: geo.instances, at, clusters: geo.clusters })
    }

    fn with_its_likes(self) -> Vec<Self> {
        let mut all = vec![self];
        match (self.durability, self.api) {
            (Durability::Journal, Api::Versioned) => {
                let ops = if self.ops == Ops::Local { Ops::Linearizable } else { Ops::Local };
                all.push(Self { ops, ..self });
                all.push(Self { api: Api::Basic, ops: Ops::Linearizable, instances: Instances::Single, ..self });
            }
            (Durability::None, _) if self.clusters > 1 => all.push(Self { clusters: 1, ..self }),
            _ => {}
        }
        all
    }

    /// What tells it from its likes.
    fn tag(self) -> String {
        let api = if self.api == Api::Basic { "basic" } else { "versioned" };
        let ops = if self.ops == Ops::Local { "local" } else { "linearizable" };
        let clusters = if self.clusters == 1 { "_one_cluster" } else { "" };
        format!("{api}_{ops}{clusters}")
    }

    fn kept(self) -> Kept {
        match (self.durability, self.api, self.instances) {
            (Durability::None, Api::Basic, _) => Kept::Volatile,
            (Durability::Journal, Api::Basic, _) => Kept::Basic,
            (Durability::None, Api::Versioned, Instances::Single) => Kept::VersionedVolatile,
            (Durability::None, Api::Versioned, Instances::PerCluster) => Kept::VersionedVolatileEach,
            (Durability::Journal, Api::Versioned, Instances::Single) => Kept::Versioned,
            (Durability::Journal, Api::Versioned, Instances::PerCluster) => Kept::VersionedEach,
        }
    }

    fn accesses(self) -> [Access; 2] {
        match self.ops {
            Ops::Local => [Access::ReadHere, Access::WriteHere],
            _ => [Access::Read, Access::Write],
        }
    }

    /// Where a single instance comes to be.
    fn home(self) -> Place {
        match self.at {
            At::Close => Place::California,
            At::Far => Place::Netherlands,
        }
    }

    fn places(self) -> Vec<Place> {
        if self.clusters == 1 { vec![self.home()] } else { vec![self.home(), self.home().other()] }
    }

    /// Robots of the runs, unless the command line says them.
    fn robots(self) -> &'static [u32] {
        match (self.durability, self.api) {
            (Durability::Journal, Api::Basic) => &[20, 100, 400],
            (_, _) if self.ops == Ops::Local => &[100, 1000],
            _ => &[1000, 4000, 8000],
        }
    }
}

/// What came of the runs of one setting.
struct Measured {
    setting: Setting,
    operations_per_s: f64,
    per_cpu_s: f64,
    latency_ns: Vec<(u64, u64)>,
    errors: u64,
    complaint: Option<String>,
    rows: Vec<Value>,
}

async fn measure(sites: &Sites, plan: &Plan, setting: Setting) -> Result<Measured, String> {
    let best = Measured {
        setting,
        operations_per_s: 0.0,
        per_cpu_s: 0.0,
        latency_ns: Vec::new(),
        errors: 0,
        complaint: None,
        rows: Vec::new(),
    };
    let mut measured = best;
    let span = plan.duration.unwrap_or(DURATION);
    let robots = if plan.geo.robots.is_empty() { setting.robots() } else { &plan.geo.robots };
    for count in robots {
        let key = format!("hot-{}-{count}", setting.tag());
        for place in setting.places() {
            // The first access makes its place the actor's home.
            touch(sites, place, setting, &key).await?;
        }
        let cpu_seconds = sites.cpu_seconds();
        let places = setting.places();
        let share = (count / places.len() as u32).max(1);
        let loads = places.iter().map(|place| load(sites, plan, *place, setting, &key, share, span));
        let loaded: Vec<Loaded> = try_join_all(loads).await?;
        let cpu_seconds = sites.cpu_seconds() - cpu_seconds;
        let sum = |of: fn(&Loaded) -> u64| loaded.iter().map(of).sum::<u64>();
        let (in_time, errors) = (sum(|one| one.in_time), sum(|one| one.errors));
        let rate = in_time as f64 / span.as_secs_f64();
        let latency_ns: Vec<_> = loaded.iter().flat_map(|one| one.latency_ns.iter().copied()).collect();
        measured.errors += errors;
        measured.complaint = measured.complaint.or_else(|| loaded.iter().find_map(|one| one.complaint.clone()));
        measured.rows.push(json!({
            "run": setting.tag(),
            "robots": count,
            "operations_per_s": output_rate(rate),
            "late": sum(|one| one.late),
            "errors": errors,
            "p50_us": Latency::of(&latency_ns).p50,
            "cpu_seconds": output_rate(cpu_seconds),
        }));
        let per_cpu_s = in_time as f64 / cpu_seconds.max(1e-9);
        measured.per_cpu_s = measured.per_cpu_s.max(per_cpu_s);
        if rate > measured.operations_per_s {
            (measured.operations_per_s, measured.latency_ns) = (rate, latency_ns);
        }
    }
    Ok(measured)
}

async fn touch(sites: &Sites, place: Place, setting: Setting, key: &str) -> Result<(), String> {
    let target = Target { kind: "geo_robot", key: "robots", method: "access" };
    let arguments = json!({"kept": setting.kept(), "key": key, "access": Access::ReadHere});
    sites.ask::<u64>(place, target, &arguments).await.map(drop)
}

async fn load(
    sites: &Sites,
    plan: &Plan,
    place: Place,
    setting: Setting,
    key: &str,
    robots: u32,
    span: Duration,
) -> Result<Loaded, String> {
    let load = Load {
        kept: setting.kept(),
        key: key.to_owned(),
        robots,
        accesses: setting.accesses(),
        updates: plan.geo.updates,
        for_ms: u64::try_from(span.as_millis()).unwrap_or(u64::MAX),
        seed: plan.seed,
    };
    let target = Target { kind: "geo_robot", key: "robots", method: "load" };
    sites.ask(place, target, &json!({ "load": load })).await
}

/// The time of one run.
const DURATION: Duration = Duration::from_secs(5);

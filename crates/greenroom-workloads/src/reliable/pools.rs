//! PoolServer (RSM §6.2, Fig. 12): one pool, many small ones, and one that is resized while it is made. The actors are those
//! of the example; their provider refuses nothing.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use greenroom::{CallError, Node};
use greenroom_stores::Opened;
use serde_json::{Value, json};

pub(super) use self::actors::{Pool, Provider, Resource};
use self::actors::{PoolError, PoolRef, ProviderRef};
use super::{LOOK_AGAIN, text};
use crate::driver::{Outcome, Plan, output_rate};
use crate::goals::Goals;
use crate::store;

#[path = "../../../greenroom/examples/pool_server/actors.rs"]
#[expect(unreachable_pub, reason = "the example shows them to its users")]
mod actors;

/// How the resources are asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    OnePool,
    ManyPools,
    /// Half of them, and at once the others.
    Resized,
}

impl Shape {
    fn name(self) -> &'static str {
        match self {
            Self::OnePool => "one pool",
            Self::ManyPools => "pools of 10",
            Self::Resized => "create, then resize",
        }
    }
}

/// What is measured of one shape and number of resources.
struct Row {
    shape: Shape,
    resources: u64,
    seconds: Vec<f64>,
}

impl Row {
    /// The median.
    fn seconds(&self) -> f64 {
        let mut seconds = self.seconds.clone();
        seconds.sort_by(f64::total_cmp);
        seconds.get(seconds.len() / 2).copied().unwrap_or_default()
    }

    fn each(&self) -> f64 {
        self.seconds() / self.resources as f64
    }
}

/// The pools of a run, with the resources that they must have.
struct Pools<'a> {
    plan: &'a Plan,
    node: &'a Node,
    made: Vec<(String, u64)>,
}

pub(super) async fn run(plan: &Plan, node: &Node, opened: &Opened) -> Result<Outcome, String> {
    let span = plan.duration.unwrap_or(FLOOR);
    let floor = async || store::commits_per_s(opened, span).await.map_err(|error| error.to_string());
    let before = floor().await?;
    let mut pools = Pools { plan, node, made: Vec::new() };
    let most = u64::from(plan.actors);
    let shapes = [Shape::OnePool, Shape::ManyPools, Shape::Resized];
    let mut rows = Vec::new();
    for resources in BTreeSet::from([most.div_ceil(100), most.div_ceil(10), most]) {
        rows.extend(shapes.map(|shape| Row { shape, resources, seconds: Vec::new() }));
    }
    // The partitions have owners.
    pools.make(Shape::ManyPools, most.min(WARM_UP)).await?;
    let begun = Instant::now();
    // A machine's speed changes over time, and is to meet all of them.
    for _ in 0..ROUNDS {
        for Row { shape, resources, seconds } in &mut rows {
            seconds.push(pools.make(*shape, *resources).await?.as_secs_f64());
        }
    }
    let mut outcome = Outcome { elapsed: begun.elapsed(), ..Outcome::default() };
    let (lost, duplicated) = pools.count().await?;
    let commits = f64::midpoint(before, floor().await?);
    outcome.set("commits_per_s", output_rate(commits));
    outcome.set("goals", goals(&rows, most, commits));
    let shown = rows.iter().map(|row| {
        let shares = row.each() * commits;
        json!({"shape": row.shape.name(), "resources": row.resources, "seconds": round(row.seconds()),
            "us_each": round(row.each() * 1e6), "commits_each": round(shares)})
    });
    outcome.set("rows", shown.collect::<Value>());
    outcome.set("duplicated", duplicated);
    outcome.set("errors", duplicated);
    outcome.set("lost", lost);
    Ok(outcome)
}

fn goals(rows: &[Row], most: u64, commits: f64) -> Value {
    let of = |shape: Shape, resources: u64| {
        rows.iter().find(|row| (row.shape, row.resources) == (shape, resources)).map_or(f64::NAN, Row::each)
    };
    let mut goals = Goals::default();
    let [one, many, resized] = [Shape::OnePool, Shape::ManyPools, Shape::Resized].map(|shape| of(shape, most));
    let growth = one / of(Shape::OnePool, most.div_ceil(10));
    goals.at_most("one pool: time of each, of ten times as many", growth, LINEAR);
    goals.at_most("one pool: commits' share of each", one * commits, SHARES);
    goals.at_most("many pools: commits' share of each", many * commits, SHARES);
    goals.at_most("many pools to one", many / one, 1.0);
    goals.at_most("create, then resize, to create", resized / one, RESIZED);
    goals.rows()
}

impl Pools<'_> {
    /// Makes pools with so many resources in all: how long until all are there.
    async fn make(&mut self, shape: Shape, resources: u64) -> Result<Duration, String> {
        let each = if shape == Shape::ManyPools { SMALL } else { resources };
        let sizes = (0..resources.div_ceil(each)).map(|pool| each.min(resources - pool * each));
        let first = self.made.len();
        let made: Vec<(String, u64)> =
            sizes.enumerate().map(|(pool, size)| (format!("pool {}", first + pool), size)).collect();
        let begun = Instant::now();
        try_join_all(made.iter().map(|(name, size)| self.create(shape, name, *size))).await?;
        let time = begun.elapsed();
        self.made.extend(made);
        Ok(time)
    }

    async fn create(&self, shape: Shape, name: &str, size: u64) -> Result<(), String> {
        let (pool, patience) = (PoolRef::of(self.node, name), self.plan.timeout);
        let first = if shape == Shape::Resized { size.div_ceil(2) } else { size };
        pool.create_pool(first).by(patience).await.map_err(refused)?;
        if first < size {
            pool.resize(size).by(patience).await.map_err(refused)?;
        }
        let begun = Instant::now();
        while !pool.is_ready().by(patience).await.map_err(text)? {
            if begun.elapsed() > patience {
                return Err(format!("{name} does not get its {size} resources within {patience:?}"));
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        Ok(())
    }

    /// Resources that a pool should have and the provider does not know of, and those that it should not have.
    async fn count(&self) -> Result<(u64, u64), String> {
        let provider = ProviderRef::of(self.node, "cloud");
        let allocated = provider.allocations().by(self.plan.timeout).await.map_err(text)?;
        let allocated: BTreeSet<String> = allocated.into_iter().collect();
        let (mut lost, mut there) = (0, BTreeSet::new());
        for (name, size) in &self.made {
            let view = PoolRef::of(self.node, name.as_str()).look().by(self.plan.timeout).await.map_err(text)?;
            let mine: BTreeSet<String> =
                view.resources.into_iter().filter(|resource| allocated.contains(resource)).collect();
            lost += size.saturating_sub(mine.len() as u64);
            there.extend(mine);
        }
        let wanted: u64 = self.made.iter().map(|(_, size)| size).sum();
        Ok((lost, (allocated.len() as u64).saturating_sub(wanted - lost) + (wanted - lost - there.len() as u64)))
    }
}

fn refused(error: CallError<PoolError>) -> String {
    format!("a pool: {error:?}")
}

fn round(seen: f64) -> f64 {
    (seen * 1e3).round() / 1e3
}

/// Resources of a small pool.
const SMALL: u64 = 10;
const WARM_UP: u64 = 1000;
const ROUNDS: usize = 3;
/// Time for each measuring of the journal itself, unless one is given.
const FLOOR: Duration = Duration::from_secs(1);
/// What ten times as many may cost each more, and still be linear.
const LINEAR: f64 = 1.2;
/// Commits' shares of the journal's own rate that a resource may cost.
const SHARES: f64 = 3.0;
/// What a resize under way may cost.
const RESIZED: f64 = 1.1;

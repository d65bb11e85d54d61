//! Orders from two clusters (Geo §4.4, Fig. 11), and whether more was sold than there was.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::sites::{Place, Sites};
use crate::cli::{Api, Durability, Instances, Ops};
use crate::cluster::Target;
use crate::driver::{Outcome, Plan, output_rate};
use crate::kinds::order::robot::{Ordered, Orders};
use crate::kinds::order::{Asking, Goods};

/// Measures what was asked for, and beside it the other operations and the basic API.
pub(super) async fn run(plan: &Plan) -> Result<Outcome, String> {
    let asked = Setting::of(plan)?;
    let mut sites = Sites::start(plan).await?;
    let begun = Instant::now();
    let mut runs = Vec::new();
    let likes = if plan.geo.kill { vec![asked] } else { asked.with_its_likes() };
    for setting in likes {
        runs.push(measure(&mut sites, plan, setting).await?);
    }
    let mut outcome = Outcome { elapsed: begun.elapsed(), ..Outcome::default() };
    let best = runs.first().map_or(0.0, |run| run.steps_per_s);
    outcome.set("steps_per_s", output_rate(best));
    for run in runs.iter().skip(1) {
        let ratio = best / run.steps_per_s.max(1e-9);
        outcome.set(&format!("ratio_to_{}", run.setting.tag()), (ratio * 100.0).round() / 100.0);
    }
    let sum = |of: fn(&Run) -> u64| runs.iter().map(of).sum::<u64>();
    outcome.set("oversold", sum(|run| run.oversold));
    outcome.set("sales_lost", sum(|run| run.sales_lost));
    outcome.set("runs", runs.iter().flat_map(|run| run.rows.clone()).collect::<Vec<Value>>());
    outcome.set("store", sites.store.clone());
    // With a cluster killed, calls fail; what matters is what was sold.
    outcome.set("errors", if plan.geo.kill { 0 } else { sum(|run| run.errors) });
    outcome.set("lost", 0);
    outcome.complaint = runs.iter().find_map(|run| run.complaint.clone()).filter(|_| !plan.geo.kill);
    if sum(|run| run.oversold + run.sales_lost) > 0 {
        outcome.set("errors", sum(|run| run.oversold + run.sales_lost));
        outcome.complaint = Some("more was sold than there was, or a confirmed sale is gone".to_owned());
    }
    Ok(outcome)
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Setting {
    asking: Asking,
}

impl Setting {
    fn of(plan: &Plan) -> Result<Self, String> {
        let geo = &plan.geo;
        if plan.durability == Durability::None {
            return Err("orders are kept in a store here; leave --durability out".to_owned());
        }
        if geo.ops == Ops::Local {
            return Err("--ops local would sell what is not there; write linearizable or mixed".to_owned());
        }
        let goods = match (geo.api, geo.instances) {
            (Api::Basic, Instances::Single) => Goods::Basic,
            (Api::Versioned, Instances::Single) => Goods::Versioned,
            (Api::Versioned, Instances::PerCluster) => Goods::VersionedEach,
            (Api::Basic, Instances::PerCluster) => {
                let why =
                    "instances in several clusters agree by updates only; write --api versioned or --instances single";
                return Err(why.to_owned());
            }
        };
        Ok(Self {
            asking: Asking { goods, mixed: geo.ops == Ops::Mixed && geo.api == Api::Versioned, stock: geo.stock },
        })
    }

    fn with_its_likes(self) -> Vec<Self> {
        if self.asking.goods == Goods::Basic {
            return vec![self];
        }
        let other = Self { asking: Asking { mixed: !self.asking.mixed, ..self.asking } };
        let basic = Self { asking: Asking { goods: Goods::Basic, mixed: false, ..self.asking } };
        vec![self, other, basic]
    }

    fn tag(self) -> &'static str {
        match (self.asking.goods, self.asking.mixed) {
            (Goods::Basic, _) => "basic",
            (_, false) => "versioned_linearizable",
            (_, true) => "versioned_mixed",
        }
    }
}

/// What came of one setting.
struct Run {
    setting: Setting,
    steps_per_s: f64,
    oversold: u64,
    sales_lost: u64,
    errors: u64,
    complaint: Option<String>,
    rows: Vec<Value>,
}

async fn measure(sites: &mut Sites, plan: &Plan, setting: Setting) -> Result<Run, String> {
    let mut run =
        Run { setting, steps_per_s: 0.0, oversold: 0, sales_lost: 0, errors: 0, complaint: None, rows: Vec::new() };
    let span = plan.duration.unwrap_or(DURATION);
    let robots = if plan.geo.robots.is_empty() { ROBOTS } else { &plan.geo.robots };
    for count in robots {
        let shop = format!("{}-{count}", setting.tag());
        let cpu_seconds = sites.cpu_seconds();
        let ordered = order(sites, plan, setting, &shop, *count, span).await?;
        let cpu_seconds = sites.cpu_seconds() - cpu_seconds;
        let (oversold, sales_lost) = take_stock(sites, plan, setting, &shop, &ordered).await?;
        let sum = |of: fn(&Ordered) -> u64| ordered.iter().map(of).sum::<u64>();
        let rate = sum(|one| one.steps) as f64 / span.as_secs_f64();
        run.rows.push(json!({
            "run": setting.tag(),
            "robots": count,
            "steps_per_s": output_rate(rate),
            "late": sum(|one| one.late),
            "sold": sum(|one| one.bought.values().sum()),
            "off": sum(|one| one.off),
            "oversold": oversold,
            "errors": sum(|one| one.errors),
            "cpu_seconds": output_rate(cpu_seconds),
        }));
        run.steps_per_s = run.steps_per_s.max(rate);
        run.oversold += oversold;
        run.sales_lost += sales_lost;
        run.errors += sum(|one| one.errors);
        run.complaint = run.complaint.or_else(|| ordered.iter().find_map(|one| one.complaint.clone()));
    }
    Ok(run)
}

/// Lets the robots of both clusters order; a cluster that is killed on the way reports nothing.
async fn order(
    sites: &mut Sites,
    plan: &Plan,
    setting: Setting,
    shop: &str,
    robots: u32,
    span: Duration,
) -> Result<Vec<Ordered>, String> {
    let share = (robots / 2).max(1);
    let victim = sites.killer(Place::Netherlands);
    let killing = async {
        if plan.geo.kill {
            tokio::time::sleep(span / 2).await;
            victim.kill();
        }
    };
    let sites = &*sites;
    let ordering = join_all(Place::ALL.map(|place| async move {
        let orders = Orders {
            place: place.name().to_owned(),
            robots: share,
            shop: shop.to_owned(),
            items: plan.geo.items,
            asking: setting.asking,
            think_ms: u64::try_from(plan.geo.think.as_millis()).unwrap_or(u64::MAX),
            for_ms: u64::try_from(span.as_millis()).unwrap_or(u64::MAX),
            seed: plan.seed,
        };
        let target = Target { kind: "order_robot", key: "robots", method: "order" };
        sites.ask::<Ordered>(place, target, &json!({ "orders": orders })).await
    }));
    let (ordered, ()) = tokio::join!(ordering, killing);
    if plan.geo.kill {
        return Ok(ordered.into_iter().flatten().collect());
    }
    ordered.into_iter().collect()
}

/// What was sold that was not there, and confirmed sales that the items do not know of.
async fn take_stock(
    sites: &Sites,
    plan: &Plan,
    setting: Setting,
    shop: &str,
    ordered: &[Ordered],
) -> Result<(u64, u64), String> {
    let items: Vec<String> = (0..plan.geo.items).map(|item| Orders::item(shop, item)).collect();
    let target = Target { kind: "order_robot", key: "clerk", method: "sold" };
    let arguments = json!({"asking": setting.asking, "items": items});
    let sold: Vec<u64> = sites.ask(Place::California, target, &arguments).await?;
    let mut bought: BTreeMap<&str, u64> = BTreeMap::new();
    for (item, count) in ordered.iter().flat_map(|one| &one.bought) {
        *bought.entry(item).or_default() += count;
    }
    let (mut oversold, mut sales_lost) = (0, 0);
    for (item, sold) in items.iter().zip(sold) {
        let bought = bought.get(item.as_str()).copied().unwrap_or(0);
        oversold += sold.max(bought).saturating_sub(plan.geo.stock);
        sales_lost += bought.saturating_sub(sold);
    }
    Ok((oversold, sales_lost))
}

/// The time of one run.
const DURATION: Duration = Duration::from_secs(10);
/// Robots of the runs, unless the command line says them.
const ROBOTS: &[u32] = &[200, 1000, 4000];

//! The latency of single accesses (Geo §4.2, Fig. 8).

mod apart;
mod rows;
mod table;

use std::time::Instant;

use futures_util::future::join_all;
use serde_json::{Value, json};

use self::rows::{ROWS, Row};
pub(crate) use self::table::table;
use super::sites::{Place, Sites};
use crate::cluster::Target;
use crate::driver::{Outcome, Plan, output_rate};
use crate::kinds::geo::{Access, Failure};

/// Measures every cell.
pub(super) async fn run(plan: &Plan) -> Result<Outcome, String> {
    let sites = Sites::start(plan).await?;
    sites.leased().await?;
    let begun = Instant::now();
    let (mut cells, mut errors, mut lost, mut complaint) = (Vec::new(), 0, 0, None);
    for (number, row) in ROWS.iter().enumerate() {
        for (access, verb) in [(row.accesses[0], "read"), (row.accesses[1], "write")] {
            let keys: Vec<String> = (0..plan.rounds).map(|key| format!("{number}-{verb}-{key}")).collect();
            for first in row.columns() {
                let cell = measure(&sites, plan, row, access, first, &keys).await;
                errors += cell.failures.len();
                lost += cell.failures.iter().filter(|failure| failure.lost).count();
                complaint =
                    complaint.or_else(|| cell.failures.first().map(|one| format!("{}: {}", row.name, one.message)));
                cells.push(cell.document(plan, row, verb));
            }
        }
    }
    let wan_rtt_measured = sites.measured_trip_ms().await;
    let mut outcome = Outcome { elapsed: begun.elapsed(), complaint, ..Outcome::default() };
    outcome.set("store", sites.store.clone());
    outcome.set("wan_rtt_measured_ms", wan_rtt_measured.map(output_rate));
    outcome.set("cells_over_goal", cells.iter().filter(|cell| cell["over_goal"] == true).count() as u64);
    outcome.set("cells", cells);
    outcome.set("apart", apart::run(&sites).await?);
    outcome.set("errors", errors as u64);
    outcome.set("lost", lost as u64);
    Ok(outcome)
}

/// A column of Fig. 8: from where an actor is accessed, and whether for the first time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Column {
    from: Place,
    first: bool,
}

impl Column {
    fn name(self) -> &'static str {
        match (self.from, self.first) {
            (Place::California, true) => "C first",
            (Place::California, false) => "C repeat",
            (Place::Netherlands, true) => "N first",
            (Place::Netherlands, false) => "N repeat",
        }
    }

    /// Its place in the figure.
    fn place(self) -> usize {
        self.from as usize * 2 + usize::from(!self.first)
    }
}

/// What was measured of one cell.
struct Cell {
    column: Column,
    times_ns: Vec<u64>,
    failures: Vec<Failure>,
    crossings: f64,
}

/// Accesses each of `keys` once.
async fn measure(sites: &Sites, plan: &Plan, row: &Row, access: Access, column: Column, keys: &[String]) -> Cell {
    let (paper, goal) = row.expected(column, access);
    // What takes no time is measured with nothing beside it.
    let at_once = if goal.min(paper) == 0 { 1 } else { AT_ONCE };
    let before = sites.crossings().await;
    let lanes = (0..at_once).map(|lane| async move {
        let robot = format!("lane-{lane}");
        let mut seen = Vec::new();
        for key in keys.iter().skip(lane).step_by(at_once) {
            let target = Target { kind: "geo_robot", key: &robot, method: "access" };
            let arguments = json!({"kept": row.kept, "key": key, "access": access});
            let time: Result<u64, String> = sites.ask(column.from, target, &arguments).await;
            seen.push(time.map_err(|message| Failure { lost: message.contains("may have run"), message }));
        }
        seen
    });
    let seen: Vec<_> = join_all(lanes).await.into_iter().flatten().collect();
    let crossings = sites.crossings().await.saturating_sub(before) as f64 / plan.rounds.max(1) as f64;
    let (mut times_ns, mut failures) = (Vec::new(), Vec::new());
    for one in seen {
        match one {
            Ok(time) => times_ns.push(time),
            Err(failure) => failures.push(failure),
        }
    }
    times_ns.sort_unstable();
    Cell { column, times_ns, failures, crossings }
}

impl Cell {
    fn document(&self, plan: &Plan, row: &Row, verb: &str) -> Value {
        let access = row.accesses[usize::from(verb == "write")];
        let (paper, goal) = row.expected(self.column, access);
        let mut cell = json!({
            "row": row.name,
            "column": self.column.name(),
            "access": verb,
            "paper_irt": paper,
            "goal_irt": goal,
        });
        let Some(median) = self.times_ns.get(self.times_ns.len() / 2).copied() else {
            cell["missing"] = self.failures.first().map_or("not measured", |failure| &failure.message).into();
            return cell;
        };
        let trips = median as f64 / plan.geo.wan_rtt.as_nanos() as f64;
        cell["median_us"] = output_rate(median as f64 / 1e3).into();
        cell["irt"] = output_rate(trips).into();
        cell["messages"] = output_rate(self.crossings).into();
        cell["samples"] = self.times_ns.len().into();
        cell["over_goal"] = (trips.round() > f64::from(goal)).into();
        cell
    }
}

/// Accesses in flight where most of their time is spent on the way.
const AT_ONCE: usize = 16;

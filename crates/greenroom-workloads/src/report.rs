//! What actors report of their part of a run, and its sum.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use greenroom::CallError;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// One actor's part of a run, or the sum of several.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Reports in it.
    pub reports: u64,
    /// Messages that arrived.
    pub messages: u64,
    /// Calls that failed, those without an answer among them.
    pub errors: u64,
    /// Calls without an answer.
    pub lost: u64,
    /// The first error's message.
    pub complaint: Option<String>,
    /// When the first actor began, in nanoseconds since 1970.
    pub began_ns: u64,
    /// When the last one ended.
    pub ended_ns: u64,
    /// Round trips in nanoseconds, as pairs of value and count.
    pub latency_ns: Vec<(u64, u64)>,
}

impl Report {
    /// Time from the first actor's begin to the last one's end.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.ended_ns.saturating_sub(self.began_ns))
    }

    /// Messages a second.
    pub fn messages_per_s(&self) -> f64 {
        self.messages as f64 / self.elapsed().as_secs_f64().max(1e-9)
    }
}

/// What one actor has seen so far.
#[derive(Debug)]
pub struct Record {
    report: Report,
    latency: Histogram<u64>,
}

impl Record {
    /// A record that begins now.
    pub fn begin() -> Self {
        let now = unix_ns();
        Self { report: Report { reports: 1, began_ns: now, ended_ns: now, ..Report::default() }, latency: histogram() }
    }

    /// Counts messages that arrived.
    pub fn count(&mut self, messages: u64) {
        self.report.messages += messages;
    }

    /// Counts calls without an answer.
    pub fn count_lost(&mut self, calls: u64) {
        self.report.errors += calls;
        self.report.lost += calls;
    }

    /// Counts a failed call.
    pub fn fail<E: std::fmt::Display>(&mut self, error: &CallError<E>) {
        self.report.errors += 1;
        self.report.lost += u64::from(matches!(error, CallError::Unknown(_)));
        self.report.complaint.get_or_insert_with(|| error.to_string());
    }

    /// Adds a round trip.
    pub fn time(&mut self, round_trip: Duration) {
        add(&mut self.latency, u64::try_from(round_trip.as_nanos()).unwrap_or(u64::MAX), 1);
    }

    /// Adds what another record of the same actor counted.
    pub fn absorb(&mut self, other: Record) {
        self.report.messages += other.report.messages;
        self.report.errors += other.report.errors;
        self.report.lost += other.report.lost;
        self.report.complaint = self.report.complaint.take().or(other.report.complaint);
        for step in other.latency.iter_recorded() {
            add(&mut self.latency, step.value_iterated_to(), step.count_at_value());
        }
    }

    /// The record as a report that ends now.
    pub fn end(self) -> Report {
        Report { ended_ns: unix_ns(), latency_ns: buckets(&self.latency), ..self.report }
    }
}

/// The sum of reports.
#[derive(Debug)]
pub struct Total {
    report: Report,
    latency: Histogram<u64>,
}

impl Default for Total {
    fn default() -> Self {
        Self { report: Report::default(), latency: histogram() }
    }
}

impl Total {
    /// Adds a report.
    pub fn add(&mut self, report: Report) {
        let total = &mut self.report;
        total.began_ns = if total.reports == 0 { report.began_ns } else { total.began_ns.min(report.began_ns) };
        total.ended_ns = total.ended_ns.max(report.ended_ns);
        total.reports += report.reports;
        total.messages += report.messages;
        total.errors += report.errors;
        total.lost += report.lost;
        total.complaint = total.complaint.take().or(report.complaint);
        for (value, count) in report.latency_ns {
            add(&mut self.latency, value, count);
        }
    }

    /// Reports that have been added.
    pub fn reports(&self) -> u64 {
        self.report.reports
    }

    /// The sum as a report.
    pub fn report(&self) -> Report {
        Report { latency_ns: buckets(&self.latency), ..self.report.clone() }
    }
}

/// Latencies as `greenroom bench` prints them, in microseconds.
#[derive(Clone, Copy, Default, PartialEq, Debug, Serialize, Deserialize)]
pub struct Latency {
    /// The arithmetic mean.
    pub mean: f64,
    /// Half of the round trips took at most so long.
    pub p50: f64,
    /// Nine in ten.
    pub p90: f64,
    /// 95 in a hundred.
    pub p95: f64,
    /// 99 in a hundred.
    pub p99: f64,
    /// 999 in a thousand.
    pub p999: f64,
    /// The longest.
    pub max: f64,
}

impl Latency {
    /// The latency of a report's buckets.
    pub fn of(latency_ns: &[(u64, u64)]) -> Self {
        let mut latency = histogram();
        for (value, count) in latency_ns {
            add(&mut latency, *value, *count);
        }
        let at = |quantile| us(latency.value_at_quantile(quantile) as f64);
        Self {
            mean: us(latency.mean()),
            p50: at(0.5),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            p999: at(0.999),
            max: us(latency.max() as f64),
        }
    }
}

/// Nanoseconds as microseconds, to the nanosecond.
fn us(ns: f64) -> f64 {
    ns.round() / 1e3
}

/// Nanoseconds since 1970: the one clock that the processes of a machine share.
pub fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Adds round trips to a histogram, which grows with the longest one: those of most actors are short, and there are many.
pub(crate) fn add(latency: &mut Histogram<u64>, ns: u64, count: u64) {
    // A histogram that may grow takes every value up to this one.
    let _ = latency.record_n(ns.min(ROUND_TRIP_NS_MAX), count);
}

/// A histogram that keeps three digits.
pub(crate) fn histogram() -> Histogram<u64> {
    // Three digits are within the bounds that hdrhistogram asserts (0 to 5).
    Histogram::new(3).expect("three significant digits")
}

/// A histogram's values and their counts.
pub(crate) fn buckets(latency: &Histogram<u64>) -> Vec<(u64, u64)> {
    latency.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value())).collect()
}

/// No round trip is longer than an hour.
const ROUND_TRIP_NS_MAX: u64 = 3_600_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_total_spans_its_reports_and_adds_their_counts() {
        let one = Report {
            reports: 1,
            messages: 2,
            began_ns: 10,
            ended_ns: 20,
            latency_ns: vec![(1000, 2)],
            ..Report::default()
        };
        let two = Report {
            reports: 1,
            lost: 1,
            errors: 1,
            began_ns: 5,
            ended_ns: 15,
            latency_ns: vec![(9_000_000, 1)],
            ..one.clone()
        };
        let mut total = Total::default();
        total.add(one);
        total.add(two);
        let sum = total.report();
        assert_eq!((sum.reports, sum.messages, sum.errors, sum.lost), (2, 4, 1, 1));
        assert_eq!(sum.elapsed(), Duration::from_nanos(15));
        let latency = Latency::of(&sum.latency_ns);
        assert!((latency.p50 - 1.0).abs() < 0.01 && (latency.max - 9000.0).abs() < 9.0, "{latency:?}");
    }
}

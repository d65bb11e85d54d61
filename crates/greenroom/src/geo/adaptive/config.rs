//! When adaptive actors change the number of their instances.

use std::time::Duration;

use greenroom_protocols::adaptive::{self, Trips};
use serde::{Deserialize, Serialize};

use crate::node::config::seconds;

/// When adaptive actors change the number of their instances. The same in all clusters, as any of them may decide.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct GeoAdaptive {
    /// Time in which what was counted loses half of its weight, in seconds in files; 30 s by default. Nothing is decided before it
    /// has been counted for so long.
    #[serde(with = "seconds")]
    pub window: Duration,
    /// Time between two switches of an actor at least, in seconds in files; 60 s by default.
    #[serde(with = "seconds")]
    pub dwell: Duration,
    /// An actor switches when what there is costs so many times what there would be; 2 by default.
    pub ratio: f64,
    /// So many round trips are to be gained in a window at least; 20 by default.
    pub gain: f64,
    /// What it costs to tell another cluster of an update, in round trips; 0.25 by default, as nobody waits for it.
    pub notice: f64,
    /// Time between two reports of what was counted, in seconds in files; 5 s by default.
    #[serde(with = "seconds")]
    pub report_every: Duration,
}

impl Default for GeoAdaptive {
    fn default() -> Self {
        let machine = adaptive::Config::default();
        Self {
            window: machine.window,
            dwell: machine.dwell,
            ratio: machine.ratio_percent as f64 / 100.0,
            gain: machine.gain_min.0 as f64 / 1000.0,
            notice: machine.notice.0 as f64 / 1000.0,
            report_every: Duration::from_secs(5),
        }
    }
}

impl GeoAdaptive {
    /// What the deciders are told.
    pub(crate) fn machine(&self) -> adaptive::Config {
        let thousandths = |trips: f64| Trips((trips * 1000.0) as u64);
        adaptive::Config {
            window: self.window,
            dwell: self.dwell,
            ratio_percent: (self.ratio * 100.0) as u64,
            gain_min: thousandths(self.gain),
            notice: thousandths(self.notice),
            ..adaptive::Config::default()
        }
    }

    /// What cannot be had of it, and what helps.
    pub(crate) fn trouble(&self) -> Option<String> {
        let Self { window, dwell: _, ratio, gain, notice, report_every } = self;
        if !ratio.is_finite() || *ratio < 1.0 {
            return Some(format!(
                "`geo.adaptive.ratio` is {ratio}; below 1 actors would switch back and forth: raise it"
            ));
        }
        if let Some((name, value)) =
            [("gain", gain), ("notice", notice)].into_iter().find(|(_, value)| !value.is_finite() || **value < 0.0)
        {
            return Some(format!("`geo.adaptive.{name}` is {value}; write a number of round trips, 0 or more"));
        }
        let least = Duration::from_millis(10);
        (*report_every < least || *window < *report_every).then(|| {
            format!(
                "`geo.adaptive` reports every {report_every:?} and weighs windows of {window:?}; a window must have a report in it, \
                 and reports be {least:?} apart: raise `window`, or correct `report_every`"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Mistake = fn(&mut GeoAdaptive);

    #[test]
    fn what_is_said_is_what_the_machines_are_told_and_nonsense_is_refused() {
        assert_eq!(GeoAdaptive::default().machine(), adaptive::Config::default());
        assert_eq!(GeoAdaptive::default().trouble(), None);
        let wrong: [(Mistake, &str); 4] = [
            (|said| said.ratio = 0.5, "`geo.adaptive.ratio` is 0.5"),
            (|said| said.gain = f64::NAN, "`geo.adaptive.gain` is NaN"),
            (|said| said.notice = -1.0, "0 or more"),
            (|said| said.window = Duration::from_secs(1), "raise `window`"),
        ];
        for (change, part) in wrong {
            let mut said = GeoAdaptive::default();
            change(&mut said);
            let trouble = said.trouble().expect("it cannot be had");
            assert!(trouble.contains(part), "{trouble}");
        }
    }
}

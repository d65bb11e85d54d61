//! Which findings there are, by how long what they say has held.

use std::collections::BTreeMap;
use std::time::Duration;

use greenroom_world::Timestamp;

use super::checks::CHECKS;
use super::{Check, Facts, Finding, Found, together};
use crate::observe::subject::Subject;

/// What has been found, and for how long.
#[derive(Default)]
pub(crate) struct Watch(BTreeMap<(&'static str, Subject), Held>);

struct Held {
    began: Timestamp,
    last: Timestamp,
    shown: bool,
    finding: Finding,
    holds: Duration,
}

/// What has changed of the findings.
#[derive(Default)]
pub(crate) struct Changes {
    /// Those that have appeared.
    pub(crate) raised: Vec<Finding>,
    /// Those that are gone.
    pub(crate) over: Vec<Finding>,
}

impl Watch {
    /// Takes in the facts at `now`, which is the Unix millisecond `wall`; what has changed by that.
    pub(crate) fn look(&mut self, facts: &Facts, now: Timestamp, wall: u64) -> Changes {
        let mut changes = Changes::default();
        let mut found = Vec::new();
        for check in CHECKS {
            (check.look)(facts, &mut found);
            for found in found.drain(..) {
                self.hold(check, found, facts, (now, wall));
            }
        }
        self.0.retain(|_, held| {
            let still = held.last == now;
            if !held.shown && still && now.since(held.began) >= held.holds {
                held.shown = true;
                changes.raised.push(held.finding.clone());
            }
            // What has not held for long enough begins anew; what is shown stays a while.
            let stays = still || (held.shown && now.since(held.last) < held.holds * GOES_AFTER);
            if !stays && held.shown {
                changes.over.push(held.finding.clone());
            }
            stays
        });
        changes
    }

    /// The findings that there are now.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        together(self.0.values().filter(|held| held.shown).map(|held| held.finding.clone()))
    }

    fn hold(&mut self, check: &Check, found: Found, facts: &Facts, (now, wall): (Timestamp, u64)) {
        let key = (check.name, found.subject.clone());
        let room = self.0.len() < HELD_MAX;
        match self.0.get_mut(&key) {
            Some(held) => {
                held.last = now;
                held.finding = told(check, found, facts, held.finding.since);
            }
            None if room => {
                let (began, since) = (now - found.for_long, wall.saturating_sub(found.for_long.as_millis() as u64));
                let finding = told(check, found, facts, since);
                self.0.insert(key, Held { began, last: now, shown: false, finding, holds: check.holds });
            }
            None => {}
        }
    }
}

fn told(check: &Check, found: Found, facts: &Facts, since: u64) -> Finding {
    let Found { level, subject, title, text, evidence, .. } = found;
    Finding {
        id: format!("{} {subject}", check.name).trim_end().to_owned(),
        check: check.name.into(),
        level,
        title,
        text,
        remedy: check.remedy.into(),
        since,
        subject,
        evidence,
        page: check.page.into(),
        docs: format!("findings.md#{}", check.name),
        node: facts.node.clone(),
    }
}

/// A finding goes when what it says has not held for so many times as long as it had to hold before.
const GOES_AFTER: u32 = 3;
/// What is held at once.
const HELD_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::findings::{Member, Standing};
    use crate::observe::level::Level;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_nanos(seconds * 1_000_000_000)
    }

    /// Facts in which the table fails, or not: which a check waits two seconds for.
    fn table(fails: bool) -> Facts {
        Facts {
            node: "a".to_owned(),
            table_failing: fails.then(|| "connection refused".to_owned()),
            ..Facts::default()
        }
    }

    /// The seconds in which something is found, of these in which the table fails.
    fn found(fails: &[bool]) -> Vec<usize> {
        let mut watch = Watch::default();
        let seconds = fails.iter().enumerate().filter(|(second, fails)| {
            watch.look(&table(**fails), at(*second as u64), 0);
            !watch.findings().is_empty()
        });
        seconds.map(|(second, _)| second).collect()
    }

    #[test]
    fn a_finding_appears_once_it_has_held_and_goes_after_three_times_that() {
        let (yes, no) = (true, false);
        assert_eq!(found(&[yes, yes, yes, no, no, no, no, no, no, no]), [2, 3, 4, 5, 6, 7], "two seconds, and six");
        assert!(found(&[yes, yes, no, yes, yes, no]).is_empty(), "what comes and goes has not held");
        assert_eq!(found(&[yes, yes, yes, no, no, yes, no, no, no, no, no, no]), [2, 3, 4, 5, 6, 7, 8, 9, 10]);
    }

    #[test]
    fn what_has_held_for_long_when_it_is_found_is_shown_at_once_and_since_then() {
        let silent = |seconds| Member {
            name: "b".to_owned(),
            silent_for: Some(Duration::from_secs(seconds)),
            ..Member::default()
        };
        let mut watch = Watch::default();
        let mut found = |seconds: u64| {
            let facts = Facts { members: vec![silent(seconds)], ..Facts::default() };
            watch.look(&facts, at(100 + seconds), 1_000 * seconds);
            watch.findings().iter().map(|finding| finding.since).collect::<Vec<_>>()
        };
        assert_eq!([found(2), found(3)], [vec![], vec![0]]);
    }

    #[test]
    fn who_is_dead_is_told_at_once() {
        let dead = Member { name: "b".to_owned(), standing: Standing::Dead, ..Member::default() };
        let mut watch = Watch::default();
        watch.look(&Facts { members: vec![dead], ..Facts::default() }, at(100), 100_000);
        assert_eq!(watch.findings().len(), 1);
    }

    #[test]
    fn a_finding_says_since_when_and_its_beginning_and_end_are_told_once() {
        let mut watch = Watch::default();
        let (mut raised, mut over) = (Vec::new(), Vec::new());
        for second in 0..20 {
            let changes = watch.look(&table(second < 8), at(second), 1_000 * second);
            raised.extend(changes.raised.into_iter().map(|finding| (second, finding.since)));
            over.extend(changes.over.into_iter().map(|finding| (second, finding.since)));
        }
        assert_eq!((raised, over), (vec![(2, 0)], vec![(13, 0)]));
    }

    #[test]
    fn what_is_worst_is_first_and_what_several_nodes_find_is_one() {
        let dead = |node: &str| Facts {
            node: node.to_owned(),
            members: vec![Member { name: "c".to_owned(), standing: Standing::Dead, ..Member::default() }],
            certificate: Some(super::super::Certificate { left: Duration::from_secs(24 * 3_600 * 5) }),
            ..Facts::default()
        };
        let mut all = Vec::new();
        for (node, late) in [("a", 5), ("b", 0)] {
            let mut watch = Watch::default();
            for second in late..=late + 5 {
                watch.look(&dead(node), at(second), 1_000 * second);
            }
            all.extend(watch.findings());
        }
        let all = together(all);
        let told: Vec<_> = all.iter().map(|finding| (&*finding.check, finding.level, &*finding.node)).collect();
        let expected = [
            ("member-silent", Level::Bad, "b"),
            ("certificate-ends", Level::Warn, "b"),
            ("certificate-ends", Level::Warn, "a"),
        ];
        assert_eq!(told, expected, "certificates are each node's own: {all:?}");
    }
}

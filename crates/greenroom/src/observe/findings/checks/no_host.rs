//! Actors are called whose hosts are all gone.

use std::time::Duration;

use crate::observe::findings::{Check, Facts, Found};
use crate::observe::level::Level;
use crate::observe::subject::Subject;

pub(super) const CHECK: Check = Check {
    name: "no-host",
    holds: Duration::from_secs(3),
    page: "#/events",
    remedy: "Start a host that offers the kind; the events say which hosts there were, and why they went.",
    look,
};

fn look(facts: &Facts, out: &mut Vec<Found>) {
    for (kind, calls) in &facts.missed {
        // Who is back is not missed, however often it was.
        if *calls < ENOUGH || facts.kinds.iter().any(|hosted| hosted.name == *kind) {
            continue;
        }
        let title = format!("no host offers {kind}");
        let text = format!("About {calls:.0} calls in the last minute were refused; nothing of them has run.");
        out.push(Found::new(Level::Bad, Subject::kind(&**kind), title, text).with("refused", calls.round(), ""));
    }
}

/// One call is enough, for half a minute and more: it fades as others come.
const ENOUGH: f64 = 0.5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::findings::Kind;
    use crate::observe::findings::checks::titles;

    fn called(calls: f64, hosted: &[&str]) -> Vec<String> {
        let kind = |name: &&str| Kind { name: (*name).to_owned(), ..Kind::default() };
        let kinds = hosted.iter().map(kind).collect();
        titles(&CHECK, &Facts { missed: vec![("chat".to_owned(), calls)], kinds, ..Facts::default() })
    }

    #[test]
    fn a_kind_that_is_called_and_that_nobody_has_is_found() {
        assert_eq!(called(1.0, &["cart"]), ["no host offers chat"]);
    }

    #[test]
    fn one_that_is_back_or_that_nobody_calls_is_not() {
        assert!(called(100.0, &["chat"]).is_empty());
        assert!(called(0.4, &[]).is_empty());
    }
}

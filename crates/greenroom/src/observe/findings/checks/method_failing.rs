//! A method fails much more than it did.

use std::time::Duration;

use crate::observe::findings::{Check, Facts, Found};
use crate::observe::level::Level;
use crate::observe::subject::Subject;

pub(super) const CHECK: Check = Check {
    name: "method-failing",
    holds: Duration::from_secs(20),
    page: "#/turns",
    remedy: "Read what its turns failed with, by `greenroom turns` or on the page of those.",
    look,
};

fn look(facts: &Facts, out: &mut Vec<Found>) {
    for method in &facts.methods {
        let (now, before) = (method.failed, method.failed_usually);
        // An hour of which less is known is taken for one with as many turns that went well.
        let usually = before.of_them / before.all.max(now.all * MINUTES).max(1.0);
        let worse = now.value() > USUAL_TIMES * usually || now.value() > MOST;
        if now.of_them < MANY || now.value() <= OFTEN || !worse {
            continue;
        }
        let percent = now.value() * 100.0;
        let title = format!("{}.{} fails: {percent:.0} %", method.kind, method.method);
        let text = format!(
            "{:.0} of its {:.0} turns of the last minute; {:.1} % over the hour.",
            now.of_them,
            now.all,
            usually * 100.0
        );
        let level = if now.value() > MOST { Level::Bad } else { Level::Warn };
        let found = Found::new(level, Subject::method(&*method.kind, &*method.method), title, text);
        out.push(found.with("failed", percent, "%").with("usually", usually * 100.0, "%"));
    }
}

/// So many a minute, such a part of its turns, and so many times what is usual; or most of them.
const MANY: f64 = 10.0;
const OFTEN: f64 = 0.05;
const USUAL_TIMES: f64 = 4.0;
const MOST: f64 = 0.5;
/// Of an hour.
const MINUTES: f64 = 60.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::findings::checks::titles;
    use crate::observe::findings::{Method, Share};

    fn failing(minute: (f64, f64), hour: (f64, f64)) -> Vec<String> {
        let share = |(all, of_them)| Share { all, of_them };
        let method = Method {
            kind: "room".to_owned(),
            method: "post".to_owned(),
            failed: share(minute),
            failed_usually: share(hour),
            ..Method::default()
        };
        titles(&CHECK, &Facts { methods: vec![method], ..Facts::default() })
    }

    #[test]
    fn a_method_that_fails_more_than_usual_or_mostly_is_found() {
        assert_eq!(failing((100.0, 30.0), (6_000.0, 60.0)), ["room.post fails: 30 %"]);
        assert_eq!(failing((100.0, 60.0), (6_000.0, 3_600.0)), ["room.post fails: 60 %"], "mostly, all the time");
        assert_eq!(failing((100.0, 30.0), (100.0, 30.0)), ["room.post fails: 30 %"], "since the node started");
    }

    #[test]
    fn one_that_fails_as_ever_or_seldom_or_is_seldom_called_is_not() {
        assert!(failing((100.0, 30.0), (6_000.0, 1_800.0)).is_empty(), "as ever");
        assert!(failing((1_000.0, 50.0), (60_000.0, 60.0)).is_empty(), "seldom");
        assert!(failing((9.0, 9.0), (9.0, 9.0)).is_empty(), "seldom called");
    }
}

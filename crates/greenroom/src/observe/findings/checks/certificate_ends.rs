//! The node's certificate ends soon.

use std::time::Duration;

use crate::observe::findings::{Check, Facts, Found};
use crate::observe::level::Level;
use crate::observe::subject::Subject;

pub(super) const CHECK: Check = Check {
    name: "certificate-ends",
    holds: Duration::ZERO,
    page: "#/nodes",
    remedy: "Renew its files: the node reads them again by itself.",
    look,
};

fn look(facts: &Facts, out: &mut Vec<Found>) {
    let Some(certificate) = facts.certificate.filter(|certificate| certificate.left < WARNS) else { return };
    let hours = certificate.left.as_secs() / 3_600;
    let level = if certificate.left < URGENT { Level::Bad } else { Level::Warn };
    let title = match certificate.left.is_zero() {
        true => format!("The certificate of {} has ended", facts.node),
        false => format!("The certificate of {} ends in {hours} hours", facts.node),
    };
    let text = "Without one, other nodes refuse its new connections.";
    out.push(Found::new(level, Subject::node(&*facts.node), title, text).with("left", hours as f64, "h"));
}

const WARNS: Duration = Duration::from_secs(7 * 24 * 3_600);
const URGENT: Duration = Duration::from_secs(24 * 3_600);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::findings::Certificate;
    use crate::observe::findings::checks::titles;

    fn left(hours: u64) -> Vec<String> {
        let certificate = Some(Certificate { left: Duration::from_secs(hours * 3_600) });
        titles(&CHECK, &Facts { node: "a".to_owned(), certificate, ..Facts::default() })
    }

    #[test]
    fn a_certificate_of_the_last_week_is_found() {
        assert_eq!(left(7 * 24 - 1), ["The certificate of a ends in 167 hours"]);
        assert_eq!(left(0), ["The certificate of a has ended"]);
    }

    #[test]
    fn one_that_lasts_for_longer_is_not() {
        assert!(left(7 * 24).is_empty());
    }
}

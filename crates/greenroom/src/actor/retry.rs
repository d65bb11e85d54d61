//! When a refused call is made again. Only what has surely not run is, so a retry is always safe.

use std::time::Duration;

use super::error::Refusal;

/// Whether another try within the call's time may be answered.
pub(crate) fn may_help(refusal: &Refusal) -> bool {
    match refusal {
        Refusal::Overloaded { .. }
        | Refusal::Shed { .. }
        | Refusal::Stopping
        | Refusal::Moved
        | Refusal::Recovering
        | Refusal::Unreachable { .. }
        | Refusal::NoHost { .. }
        | Refusal::Fenced => true,
        // Its time is over, or it would be refused again: these are for people.
        _ => false,
    }
}

/// The pause before try number `attempt` (from 0), of `random` bits: it doubles, up to what the refusal asks for and at most
/// [`PAUSE_MAX`]; half of it is left to chance, so that callers who were refused together do not come back together. Who
/// sheds load is not asked again before it said.
pub(crate) fn pause(attempt: u32, refusal: &Refusal, random: u64) -> Duration {
    let hint = refusal.retry_after().unwrap_or(PAUSE_MAX);
    let doubled = PAUSE_MIN.saturating_mul(1 << attempt.min(16)).min(PAUSE_MAX);
    let (least, most) = match refusal {
        Refusal::Shed { .. } => (hint, hint + doubled),
        _ => {
            let pause = doubled.min(hint.max(PAUSE_MIN));
            (pause / 2, pause)
        }
    };
    least + (most - least).mul_f64((random >> 11) as f64 / (1_u64 << 53) as f64)
}

/// The first pause.
pub(crate) const PAUSE_MIN: Duration = Duration::from_millis(20);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_within_what_the_refusal_asks_for_and_half_is_chance() {
        let longest = |refusal: &Refusal| [0, 1, 2, 3, 40].map(|n| pause(n, refusal, u64::MAX).as_millis());
        assert_eq!(longest(&Refusal::Stopping), [20, 40, 80, 160, 1000]);
        assert_eq!(longest(&Refusal::Moved), [20, 40, 50, 50, 50]);
        assert_eq!(pause(2, &Refusal::Stopping, 0), Duration::from_millis(40));
    }

    #[test]
    fn who_sheds_load_is_not_asked_before_it_said() {
        let shed = Refusal::Shed { node: "a".into(), why: "so".into(), retry_after_ms: 700 };
        assert_eq!(pause(0, &shed, 0), Duration::from_millis(700));
        assert!(pause(9, &shed, u64::MAX) <= Duration::from_millis(1_700));
    }

    #[test]
    fn what_would_be_refused_again_is_not_tried_again() {
        assert!(may_help(&Refusal::Stopping));
        let hopeless = [
            Refusal::Unbound,
            Refusal::Expired(Box::default()),
            Refusal::UnknownKind { kind: "k".into(), near: Vec::new() },
            Refusal::Activation { message: "no".into() },
            crate::actor::version_gap::VersionGap::nowhere("k", 2, []).into(),
        ];
        assert!(!hopeless.iter().any(may_help));
    }
}

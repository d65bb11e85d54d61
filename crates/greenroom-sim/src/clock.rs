//! A node's clock: near virtual time, never equal to it.

use std::time::Duration;

use greenroom_world::Timestamp;

use crate::faults::Faults;
use crate::random::Random;

/// Virtual time seen through a clock that runs at its own rate from its own origin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// Nanoseconds shown for each 10⁹ that pass.
    rate: u64,
    offset: u64,
}

impl Clock {
    pub(crate) fn seeded(faults: &Faults, random: &mut Random) -> Self {
        let drift = (faults.clock_drift.clamp(0.0, 0.5) * BILLION as f64) as u64;
        Self { rate: BILLION - drift + random.below(2 * drift + 1), offset: Self::origin(faults, random) }
    }

    /// The same clock after the machine was started anew.
    pub(crate) fn rebooted(self, faults: &Faults, random: &mut Random) -> Self {
        Self { offset: Self::origin(faults, random), ..self }
    }

    fn origin(faults: &Faults, random: &mut Random) -> u64 {
        random.within(&(Duration::ZERO..faults.clock_offset)).as_nanos() as u64
    }

    /// What the clock shows at `virtual_time`.
    pub(crate) fn at(self, virtual_time: Duration) -> Timestamp {
        let shown = virtual_time.as_nanos() * u128::from(self.rate) / u128::from(BILLION);
        Timestamp::from_nanos(self.offset + shown as u64)
    }

    /// The first virtual time at which the clock shows `at` or more; `None` if that is beyond [`HORIZON`].
    pub(crate) fn when(self, at: Timestamp) -> Option<Duration> {
        let shown = u128::from(at.as_nanos().saturating_sub(self.offset));
        let passed = (shown * u128::from(BILLION)).div_ceil(u128::from(self.rate));
        u64::try_from(passed).ok().map(Duration::from_nanos).filter(|time| *time < HORIZON)
    }
}

const BILLION: u64 = 1_000_000_000;
/// Further away than any simulation runs, and near enough for every clock to reach by addition.
const HORIZON: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_shows_what_was_waited_for_and_not_much_more() {
        let mut random = Random::new(1);
        for _ in 0..1000 {
            let clock = Clock::seeded(&Faults::none(), &mut random);
            let at = clock.at(Duration::ZERO) + Duration::from_nanos(random.below(1 << 50));
            let reached = clock.at(clock.when(at).unwrap());
            assert!(reached >= at && reached.since(at) <= Duration::from_nanos(1));
        }
    }

    #[test]
    fn never_is_never_reached() {
        assert_eq!(Clock::seeded(&Faults::none(), &mut Random::new(1)).when(Timestamp::NEVER), None);
    }
}

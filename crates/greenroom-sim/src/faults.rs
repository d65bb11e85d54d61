//! What may go wrong, and how often.

use std::ops::Range;
use std::time::Duration;

/// The faults of a simulated world. Probabilities are 0 to 1.
#[derive(Clone, PartialEq, Debug)]
pub struct Faults {
    /// Time that a frame is under way, between two nodes.
    pub delay: Range<Duration>,
    /// Probability that a frame takes [`Faults::spike`] longer.
    pub spike_chance: f64,
    /// How much longer such a frame takes.
    pub spike: Range<Duration>,
    /// Probability that a user frame is lost.
    pub user_loss: f64,
    /// Probability that a control frame is lost.
    pub control_loss: f64,
    /// Probability that a control frame arrives twice.
    pub control_duplication: f64,
    /// Probability that a user or control frame may overtake those before it, back to the last essential one.
    pub reordering: f64,
    /// Connections live this long and are then reset; `None`: until somebody closes them.
    pub connection_life: Option<Range<Duration>>,
    /// Probability that a crash is silent: peers see no reset, as when the machine lost its power.
    pub silent_crash: f64,
    /// Time after which a connection that crosses a cut is reset, each end at its own time.
    pub cut_reset: Range<Duration>,
    /// Patience of `connect` with a peer that does not answer.
    pub connect_timeout: Range<Duration>,
    /// Clocks run wrong by at most this ratio, either way.
    pub clock_drift: f64,
    /// Clocks start at most this far from zero.
    pub clock_offset: Duration,
    /// Bytes that one direction of a connection holds before its writer must wait.
    pub send_buffer_bytes: usize,
    /// What the stores do wrong.
    pub store: StoreFaults,
}

/// What a simulated store does wrong.
#[derive(Clone, PartialEq, Debug)]
pub struct StoreFaults {
    /// Time that each call takes.
    pub delay: Range<Duration>,
    /// Probability that a call fails and changed nothing, and says so.
    pub not_applied: f64,
    /// Probability that a call's outcome is reported as unknown. A third of those writes are not applied, a third are,
    /// and a third are applied late, after the report.
    pub unknown: f64,
    /// How long after its report a late write lands.
    pub late: Range<Duration>,
}

impl Faults {
    /// Small delays, clocks that drift, and no fault.
    pub fn none() -> Self {
        Self {
            delay: millis(1, 3),
            spike_chance: 0.0,
            spike: millis(0, 0),
            user_loss: 0.0,
            control_loss: 0.0,
            control_duplication: 0.0,
            reordering: 0.0,
            connection_life: None,
            silent_crash: 0.0,
            cut_reset: millis(5_000, 20_000),
            connect_timeout: millis(3_000, 10_000),
            clock_drift: 0.01,
            clock_offset: Duration::from_secs(1_000_000),
            send_buffer_bytes: 256 << 10,
            store: StoreFaults { delay: millis(1, 4), not_applied: 0.0, unknown: 0.0, late: millis(0, 0) },
        }
    }

    /// What a bad day on a real network brings: delays with spikes, some loss, a few resets.
    pub fn rough() -> Self {
        Self {
            delay: millis(1, 10),
            spike_chance: 0.01,
            spike: millis(50, 1_500),
            user_loss: 0.01,
            control_loss: 0.02,
            control_duplication: 0.02,
            reordering: 0.1,
            connection_life: Some(millis(5_000, 120_000)),
            silent_crash: 0.3,
            store: StoreFaults { delay: millis(1, 20), not_applied: 0.01, unknown: 0.01, late: millis(1, 3_000) },
            ..Self::none()
        }
    }

    /// Takes out what happens by chance to frames, connections and stores.
    pub(crate) fn calm(&mut self) {
        for chance in [
            &mut self.spike_chance,
            &mut self.user_loss,
            &mut self.control_loss,
            &mut self.control_duplication,
            &mut self.reordering,
            &mut self.store.not_applied,
            &mut self.store.unknown,
        ] {
            *chance = 0.0;
        }
        self.connection_life = None;
    }
}

impl Default for Faults {
    /// [`Faults::rough`].
    fn default() -> Self {
        Self::rough()
    }
}

fn millis(from: u64, to: u64) -> Range<Duration> {
    Duration::from_millis(from)..Duration::from_millis(to)
}

//! What comes to a pool.

use std::time::Duration;

use super::queue;

/// What one class of work (a method, or a codec) did in one window.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Class {
    /// Calls that came, a second: λ.
    pub rate: f64,
    /// Mean CPU time of a call, by its thread's clock: x.
    pub cpu: Duration,
    /// Mean time that a call had its thread, by the wall: z.
    pub wall: Duration,
    /// Mean time in which its thread was ready and had no core, if the system says so: r.
    pub ready: Option<Duration>,
    /// Whether it may wait for anything but a core. From those that do not it is learnt what the system does not say.
    pub blocks: bool,
    /// The variance of the time that a call has its thread, by the square of its mean: cv².
    pub variation: f64,
}

/// What came to a pool in a window, as one.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Load {
    /// Calls a second: λ.
    pub rate: f64,
    /// Mean time that a call needs a thread, with a core whenever it wants one: x + w.
    pub service: Duration,
    /// Cores that all of them keep busy: Σλx.
    pub cores: f64,
    /// The variance of the time that a call needs a thread, by the square of its mean.
    pub variation: f64,
}

impl Load {
    /// That of all classes together. Where it is not known for how long threads waited for a core, it is taken to be in
    /// proportion to their CPU time, as it is in the classes that wait for nothing else (§5.4 of the paper: α).
    ///
    /// # Panics
    /// If a rate or a variation is no number from 0 up.
    pub fn of(classes: &[Class]) -> Self {
        let is_measure = |measure: f64| measure >= 0.0 && measure.is_finite();
        assert!(
            classes.iter().all(|class| is_measure(class.rate) && is_measure(class.variation)),
            "a class was measured as what cannot be: {classes:?}"
        );
        let alpha = alpha(classes);
        let rate: f64 = classes.iter().map(|class| class.rate).sum();
        if rate <= 0.0 {
            return Self::default();
        }
        let (mut mean, mut square, mut cores) = (0.0, 0.0, 0.0);
        for class in classes {
            let service = class.service(alpha);
            let share = class.rate / rate;
            mean += share * service;
            square += share * service * service * (1.0 + class.variation);
            cores += class.rate * class.cpu.as_secs_f64();
        }
        let variation = if mean > 0.0 { (square / (mean * mean) - 1.0).max(0.0) } else { 0.0 };
        Self { rate, service: Duration::from_secs_f64(mean.min(SERVICE_MAX_S)), cores, variation }
    }

    /// Threads that it keeps busy: λ/s.
    pub fn offered(&self) -> f64 {
        self.rate * self.service.as_secs_f64()
    }

    /// The mean wait for one of so many threads; `None` if they cannot do the work.
    pub fn wait(&self, threads: usize) -> Option<Duration> {
        Duration::try_from_secs_f64(self.wait_s(threads)).ok()
    }

    pub(super) fn wait_s(&self, threads: usize) -> f64 {
        queue::wait_s(threads, self.rate, self.service.as_secs_f64(), self.variation)
    }

    /// The part of its time in which a busy thread needs a core: β.
    pub(super) fn busy_part(&self) -> f64 {
        let offered = self.offered();
        if offered > 0.0 { (self.cores / offered).min(1.0) } else { 0.0 }
    }
}

impl Class {
    /// x + w, in seconds; never less than the CPU time.
    fn service(&self, alpha: f64) -> f64 {
        let (cpu, wall) = (self.cpu.as_secs_f64(), self.wall.as_secs_f64());
        let ready = self.ready.map_or(alpha * cpu, |ready| ready.as_secs_f64());
        (wall - ready).max(cpu)
    }
}

/// How much longer than it runs a thread waits for a core, by the classes that wait for nothing else.
fn alpha(classes: &[Class]) -> f64 {
    let computing = || classes.iter().filter(|class| !class.blocks && class.rate > 0.0 && !class.cpu.is_zero());
    let each = computing().map(|class| (class.wall.as_secs_f64() / class.cpu.as_secs_f64() - 1.0).max(0.0));
    match computing().count() {
        0 => 0.0,
        count => each.sum::<f64>() / count as f64,
    }
}

/// Nothing has a thread for longer, in the mean.
const SERVICE_MAX_S: f64 = 1e9;

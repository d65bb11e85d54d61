//! Steps that do not end: a thread of its own looks at all explorations of the process, and names the actor whose step it is.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use crate::numbers::Numbers;
use crate::report::actor_of;

/// What one thread does that runs schedules.
pub(crate) struct Vigil {
    pulse: Arc<Pulse>,
    /// Whose names are known there.
    known: RefCell<Numbers>,
}

/// The same, for who looks at it from another thread.
struct Pulse {
    test: String,
    /// Steps that have begun.
    steps: AtomicU64,
    /// Whose step it is, as a hash; 0 between steps.
    at: AtomicU64,
    names: Mutex<BTreeMap<u64, String>>,
}

impl Vigil {
    /// Is looked at from here on.
    pub(crate) fn begin(test: String) -> Self {
        let (steps, at, names) = (AtomicU64::new(0), AtomicU64::new(0), Mutex::default());
        let pulse = Arc::new(Pulse { test, steps, at, names });
        locked(&PULSES).push(Arc::downgrade(&pulse));
        static LOOKS: Once = Once::new();
        LOOKS.call_once(|| {
            // Without it nothing is named, and all else is as it was.
            drop(thread::Builder::new().name("vigil".to_owned()).spawn(look));
        });
        Self { pulse, known: RefCell::default() }
    }

    /// Hears by a step's name what an actor is called, if it does not know.
    pub(crate) fn know(&self, at: u64, step: impl FnOnce() -> String) {
        if self.known.borrow_mut().insert(at) {
            locked(&self.pulse.names).insert(at, actor_of(&step()));
        }
    }

    /// A step begins of whom this hash stands for.
    pub(crate) fn begin_step(&self, at: u64) {
        let Pulse { steps, at: of, .. } = &*self.pulse;
        // No other thread writes them.
        steps.store(steps.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        of.store(at, Ordering::Relaxed);
    }

    /// It has ended.
    pub(crate) fn end_step(&self) {
        self.pulse.at.store(0, Ordering::Relaxed);
    }
}

impl Pulse {
    /// The step that it is in, if it is in one.
    fn step(&self) -> Option<u64> {
        (self.at.load(Ordering::Relaxed) != 0).then(|| self.steps.load(Ordering::Relaxed))
    }

    fn told(&self) -> String {
        let who = match self.at.load(Ordering::Relaxed) {
            1 => "the test".to_owned(),
            client if client <= u64::from(u32::MAX) => format!("client {}", client - 1),
            actor => locked(&self.names).get(&actor).cloned().unwrap_or_else(|| "somebody".to_owned()),
        };
        format!(
            "{}: {who} has been in one step for {} s: a loop that does not await, or something that blocks; if it has to, let \
             `#[blocking]` have it\n",
            self.test,
            LOOKS_PATIENT * LOOK_EACH.as_secs() as u32
        )
    }
}

/// How often each exploration was found in the same step.
#[derive(Default)]
struct Found(BTreeMap<usize, (u64, u32)>);

impl Found {
    /// Looks at one, and says so if it has been in one step for long.
    fn look(&mut self, pulse: &Arc<Pulse>) -> Option<String> {
        let place = Arc::as_ptr(pulse) as usize;
        let Some(step) = pulse.step() else {
            self.0.remove(&place);
            return None;
        };
        let (known, times) = self.0.entry(place).or_insert((step, 0));
        (*known, *times) = if *known == step { (step, *times + 1) } else { (step, 0) };
        (*times == LOOKS_PATIENT).then(|| pulse.told())
    }
}

/// Looks at all of them, for ever.
fn look() {
    let mut found = Found::default();
    loop {
        thread::sleep(LOOK_EACH);
        let mut pulses = locked(&PULSES);
        pulses.retain(|pulse| pulse.strong_count() > 0);
        for told in pulses.iter().filter_map(Weak::upgrade).filter_map(|pulse| found.look(&pulse)) {
            // What a test prints is shown when it has ended, which this one does not.
            drop(io::stderr().write_all(told.as_bytes()));
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is looked at.
static PULSES: Mutex<Vec<Weak<Pulse>>> = Mutex::new(Vec::new());
const LOOK_EACH: Duration = Duration::from_secs(1);
/// Looks that find the same step before it is told.
const LOOKS_PATIENT: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    const ADA: u64 = 1 << 40;

    #[test]
    fn who_does_not_end_a_step_is_named_once() {
        let (vigil, mut found) = (Vigil::begin("bank".to_owned()), Found::default());
        let looks = |found: &mut Found| (0..40).filter_map(|_| found.look(&vigil.pulse)).collect::<Vec<_>>();
        vigil.know(ADA, || "account/ada.add<client 1".to_owned());
        vigil.begin_step(ADA);
        let told = looks(&mut found);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("bank: account/ada has been in one step for 10 s"), "{told:?}");
        vigil.end_step();
        assert_eq!(looks(&mut found), [""; 0], "it has ended");
        for _ in 0..40 {
            vigil.begin_step(ADA);
            assert_eq!(found.look(&vigil.pulse), None, "each is another step");
        }
        vigil.begin_step(3);
        assert!(looks(&mut found)[0].starts_with("bank: client 2 has been"));
    }
}

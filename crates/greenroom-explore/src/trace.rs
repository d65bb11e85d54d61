//! Schedules, up to the order of steps that have nothing to do with each other (Mazurkiewicz).

use greenroom::rehearsal::{Kind, Step, mix};

/// A hash of one schedule: the same for all that differ only in the order of independent steps.
#[derive(Default)]
pub(crate) struct Trace {
    /// What has happened at each actor and client, in its order.
    at: Vec<(u64, u64)>,
    /// What has happened to all.
    all: u64,
}

impl Trace {
    /// One with room for so many actors and clients.
    pub(crate) fn with_room(len: usize) -> Self {
        Self { at: Vec::with_capacity(len), all: 0 }
    }

    pub(crate) fn add(&mut self, step: &Step) {
        // A choice is a part of the step that makes it.
        let at = if step.kind == Kind::Choice { step.by } else { step.at };
        if step.kind.touches_all() {
            self.all = mix(self.hash(), step.number);
            return self.at.clear();
        }
        match self.at.iter_mut().find(|(known, _)| *known == at) {
            Some((_, hash)) => *hash = mix(*hash, step.number),
            None => self.at.push((at, mix(self.all, step.number))),
        }
    }

    pub(crate) fn hash(&self) -> u64 {
        self.at.iter().fold(self.all, |sum, (at, hash)| sum.wrapping_add(mix(*at, *hash)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(steps: &[(u64, u64, Kind)]) -> u64 {
        let mut trace = Trace::default();
        for (number, at, kind) in steps {
            trace.add(&Step { number: *number, kind: *kind, at: *at, by: 0, born: 0, read: false, queue: 0 });
        }
        trace.hash()
    }

    #[test]
    fn only_the_order_of_dependent_steps_makes_a_trace() {
        use Kind::{Start, Time};
        let (a, b, c) = ((1, 7, Start), (2, 7, Start), (3, 8, Start));
        assert_eq!(hash(&[a, b, c]), hash(&[a, c, b]));
        assert_eq!(hash(&[a, b, c]), hash(&[c, a, b]));
        assert_ne!(hash(&[a, b, c]), hash(&[b, a, c]));
        let time = (4, 0, Time);
        assert_ne!(hash(&[a, time, c]), hash(&[a, c, time]));
        assert_eq!(hash(&[a, c, time, b]), hash(&[c, a, time, b]));
    }
}

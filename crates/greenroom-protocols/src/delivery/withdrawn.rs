//! Calls whose callers do not wait any more, and actors for which too many do.

use super::Partition;
use super::mailbox::Known;

impl<A: Clone + Ord, M: Clone> Partition<A, M> {
    /// Takes in that nobody waits for a call any more. It is gone if its turn has not begun, and so is the wish for its
    /// actor's records if nothing else waits for these.
    pub(super) fn withdrawn(&mut self, actor: &A, call: &str) {
        if self.recalls.remove(call).is_some() {
            self.unqueue();
            return self.answers.end(call);
        }
        let Some(mailbox) = self.mailboxes.get_mut(actor) else { return };
        let called = |key: Option<&str>| key == Some(call);
        let at =
            mailbox.queue.iter().position(|item| called(item.envelope.call.as_ref().map(|call| call.key.as_str())));
        let Some(at) = at else { return };
        mailbox.queue.remove(at);
        let wanted = mailbox.owed || mailbox.records != Known::Reading;
        self.unqueue();
        self.answers.end(call);
        if !wanted {
            self.forget(actor);
        }
    }

    /// Whether the records of an actor are being read for something that waits.
    pub fn awaits(&self, actor: &A) -> bool {
        self.mailboxes.get(actor).is_some_and(|mailbox| mailbox.records == Known::Reading)
    }

    /// Whether so much waits for an actor that no more is taken in for it from who can be told so.
    pub(super) fn is_crowded(&self, actor: &A) -> bool {
        let queued = self.mailboxes.get(actor).map_or(0, |mailbox| mailbox.queue.len());
        queued + self.recalls.of(actor) >= self.config.queued_of_actor_max
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        Action, Answer, Call, Config, Deferred, Envelope, Epoch, Event, Kept, Life, Loose, Ownership, PartitionId,
        Recorded, Recovered, Sealed, Slot, TurnId,
    };
    use super::*;
    use crate::reminders::Wall;
    use crate::time::Timestamp;

    type Machine = Partition<u8, u8>;

    fn step(machine: &mut Machine, event: Event<u8, u8>) -> Vec<Action<u8, u8>> {
        let mut out = Vec::new();
        machine.handle(Timestamp::default(), event, &mut out);
        out
    }

    fn begun(queued: Vec<u8>) -> Machine {
        begun_with(Recovered { queued, ..Recovered::empty(Life(1)) })
    }

    fn begun_with(recovered: Recovered<u8, u8>) -> Machine {
        let config = Config { queued_max: 8, queued_of_actor_max: 2, ..Config::default() };
        let owner = Ownership { partition: PartitionId(0), epoch: Epoch(1) };
        Partition::recover(config, owner, recovered, (Timestamp::default(), Wall(0)), &mut Vec::new())
    }

    fn message(to: u8, key: u8) -> Sealed<u8, u8> {
        let call = Call { key: key.to_string(), request: 1, as_written: None, recorded: true };
        Sealed::new(Envelope { from: None, to, birth: None, creates: false, call: Some(call), body: key })
    }

    fn loaded(actor: u8) -> Event<u8, u8> {
        Event::Loaded { actor, presence: None, queue: Vec::new() }
    }

    fn withdrawn(actor: u8, key: u8) -> Event<u8, u8> {
        Event::Withdrawn { actor, call: key.to_string() }
    }

    fn runs(out: &[Action<u8, u8>]) -> Vec<u8> {
        let runs = out.iter().filter_map(|action| match action {
            Action::Run { envelope, .. } => Some(envelope.body),
            _ => None,
        });
        runs.collect()
    }

    #[test]
    fn a_call_that_nobody_waits_for_never_begins_and_makes_room() {
        let mut machine = begun(Vec::new());
        step(&mut machine, Event::Called(message(7, 1)));
        step(&mut machine, Event::Called(message(7, 2)));
        assert!(machine.awaits(&7));
        step(&mut machine, withdrawn(7, 1));
        assert_eq!(machine.queued(), 1);
        assert_eq!(runs(&step(&mut machine, loaded(7))), [2]);
    }

    #[test]
    fn records_are_not_read_for_nobody() {
        let mut machine = begun(Vec::new());
        step(&mut machine, Event::Called(message(7, 1)));
        step(&mut machine, withdrawn(7, 1));
        assert!(machine == begun(Vec::new()), "nothing is left of it");
        assert_eq!(step(&mut machine, loaded(7)), [], "what comes late finds nobody");
        assert_eq!(step(&mut machine, Event::Called(message(7, 1))), [Action::Load(7)]);
    }

    #[test]
    fn what_an_actor_has_deferred_is_read_whoever_leaves() {
        let mut machine = begun(vec![7]);
        step(&mut machine, Event::Called(message(7, 1)));
        step(&mut machine, withdrawn(7, 1));
        let slot = Slot { epoch: Epoch(0), serial: 1 };
        let queue = vec![Deferred { slot, envelope: message(7, 9) }];
        assert_eq!(runs(&step(&mut machine, Event::Loaded { actor: 7, presence: None, queue })), [9]);
    }

    #[test]
    fn a_call_whose_turn_has_begun_is_not_withdrawn() {
        let mut machine = begun(Vec::new());
        step(&mut machine, Event::Called(message(7, 1)));
        assert_eq!(runs(&step(&mut machine, loaded(7))), [1]);
        let before = machine.clone();
        step(&mut machine, withdrawn(7, 1));
        assert!(machine == before);
        let outcome = super::super::Outcome::Done(Default::default());
        let out = step(&mut machine, Event::Ended { turn: TurnId(1), outcome });
        assert!(matches!(&out[..], [Action::Commit(_)]), "{out:?}");
    }

    #[test]
    fn a_call_whose_answer_is_looked_for_is_withdrawn_and_what_is_found_late_is_for_nobody() {
        let begun = || {
            let loose = Loose { number: 5, key: "1".to_owned(), at: Wall(0), bytes: 1 };
            let answers = Kept { loose: vec![loose], last: 5, ..Kept::none() };
            begun_with(Recovered { answers, ..Recovered::empty(Life(1)) })
        };
        let mut machine = begun();
        let recall = [Action::Recall { key: "1".to_owned(), numbers: vec![5] }];
        assert_eq!(step(&mut machine, Event::Called(message(7, 1))), recall);
        assert_eq!(machine.queued(), 1);
        step(&mut machine, withdrawn(7, 1));
        assert!(machine == begun(), "nothing is left of it");
        let found = |numbers: Vec<u64>| {
            let recorded = Recorded { key: "1".to_owned(), request: 1, at: Wall(0), answer: Some(9) };
            Event::Recalled { key: "1".to_owned(), numbers, found: Ok(Some(recorded)) }
        };
        assert_eq!(step(&mut machine, found(vec![5])), [], "what comes late finds nobody");

        assert_eq!(step(&mut machine, Event::Called(message(7, 1))), recall, "it is not taken for one that runs");
        assert_eq!(step(&mut machine, found(vec![4])), [], "this was looked for by an earlier one");
        let call = Call { key: "1".to_owned(), request: 1, as_written: None, recorded: true };
        assert_eq!(step(&mut machine, found(vec![5])), [Action::Answer { call, answer: Answer::Done(Some(9)) }]);
        assert_eq!(machine.queued(), 0);
    }

    #[test]
    fn one_actor_does_not_take_the_room_of_the_others() {
        let mut machine = begun(Vec::new());
        for key in 0..2 {
            step(&mut machine, Event::Called(message(7, key)));
        }
        for key in 2..20 {
            let out = step(&mut machine, Event::Called(message(7, key)));
            assert!(matches!(&out[..], [Action::Answer { answer: Answer::Crowded, .. }]), "{out:?}");
        }
        assert_eq!(step(&mut machine, Event::Called(message(8, 20))), [Action::Load(8)]);
    }

    #[test]
    fn calls_whose_answers_are_looked_for_take_their_actors_room_and_no_more() {
        let loose = |key: u64| Loose { number: key, key: key.to_string(), at: Wall(0), bytes: 1 };
        let answers = Kept { loose: (1..=4).map(loose).collect(), last: 4, ..Kept::none() };
        let mut machine = begun_with(Recovered { answers, ..Recovered::empty(Life(1)) });
        for key in 1..3 {
            let out = step(&mut machine, Event::Called(message(7, key)));
            assert!(matches!(&out[..], [Action::Recall { .. }]), "{out:?}");
        }
        let out = step(&mut machine, Event::Called(message(7, 3)));
        assert!(matches!(&out[..], [Action::Answer { answer: Answer::Crowded, .. }]), "{out:?}");
        let out = step(&mut machine, Event::Called(message(8, 4)));
        assert!(matches!(&out[..], [Action::Recall { .. }]), "another actor has its own room: {out:?}");
        step(&mut machine, withdrawn(7, 1));
        let out = step(&mut machine, Event::Called(message(7, 3)));
        assert!(matches!(&out[..], [Action::Recall { .. }]), "there is room again: {out:?}");
    }
}

//! Actors whose records cannot be read, for a reason that no retry changes.

use super::mailbox::{Effect, Known, Ready};
use super::{Action, Answer, Partition, Source};

impl<A: Clone + Ord, M: Clone> Partition<A, M> {
    /// Takes in that an actor's records cannot be read. Nothing waits for what will not be: who called is told, and every
    /// other message is parked with the reason, for an operator to retry when the records are whole again. What is in the
    /// actor's own queue stays there; the next message reads the records again.
    pub(super) fn unloadable(&mut self, actor: &A, error: &str, out: &mut Vec<Action<A, M>>) {
        let Some(mailbox) = self.mailboxes.get_mut(actor).filter(|mailbox| mailbox.records == Known::Reading) else {
            return;
        };
        mailbox.records = Known::No;
        for item in std::mem::take(&mut mailbox.queue) {
            if let (Some(call), Source::Uncounted) = (&item.envelope.call, item.source) {
                self.unqueue();
                self.answers.end(&call.key);
                out.push(Action::Answer { call: call.clone(), answer: Answer::Unloadable(error.to_owned()) });
                continue;
            }
            let slot = if let Source::Parked(slot) = item.source { slot } else { self.slot() };
            self.wake(actor).uncommitted += 1;
            self.ready.push_back(Ready { turn: None, item, effect: Effect::Parked(slot, error.to_owned()) });
        }
        self.forget(actor);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        Call, Config, Envelope, Epoch, Event, Life, Ownership, Parked, PartitionId, Recovered, Sealed, Slot, Wire,
        Write,
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

    fn begun() -> Machine {
        begun_with(Recovered::empty(Life(1)))
    }

    fn begun_with(recovered: Recovered<u8, u8>) -> Machine {
        let owner = Ownership { partition: PartitionId(0), epoch: Epoch(1) };
        Partition::recover(Config::default(), owner, recovered, (Timestamp::default(), Wall(0)), &mut Vec::new())
    }

    fn message(body: u8, call: Option<Call>) -> Sealed<u8, u8> {
        Sealed::new(Envelope { from: None, to: 7, birth: None, creates: false, call, body })
    }

    fn unloadable() -> Event<u8, u8> {
        Event::Unloadable { actor: 7, error: "damaged".to_owned() }
    }

    /// The slots, and the reasons, of what a commit parks.
    fn parked(out: &[Action<u8, u8>]) -> Vec<(Slot, &str)> {
        let writes = out.iter().filter_map(|action| match action {
            Action::Commit(commit) => Some(&commit.writes),
            _ => None,
        });
        let parked = writes.flatten().filter_map(|write| match write {
            Write::Park(parked) => Some((parked.slot, parked.error.as_str())),
            _ => None,
        });
        parked.collect()
    }

    #[test]
    fn who_called_an_actor_that_cannot_be_read_is_told_at_once_and_messages_for_it_are_parked() {
        let mut machine = begun();
        let call = Call { key: "k".to_owned(), request: 1, as_written: None, recorded: true };
        assert_eq!(step(&mut machine, Event::Called(message(1, Some(call.clone())))), [Action::Load(7)]);
        assert_eq!(step(&mut machine, Event::Arrived(Wire::Single(message(2, None)))), []);
        let out = step(&mut machine, unloadable());
        let answer = Answer::Unloadable("damaged".to_owned());
        assert_eq!(out[0], Action::Answer { call: call.clone(), answer: answer.clone() });
        assert_eq!(parked(&out).len(), 1);
        assert_eq!(machine.queued(), 1, "the one that is about to be parked");

        // It is asked again, and not taken for one that runs.
        let again = step(&mut machine, Event::Called(message(1, Some(call.clone()))));
        assert_eq!(again, [Action::Load(7)]);
        assert!(step(&mut machine, unloadable()).contains(&Action::Answer { call, answer }));
    }

    #[test]
    fn a_parked_message_that_is_tried_too_early_stays_where_it_is() {
        let slot = Slot { epoch: Epoch(1), serial: 9 };
        let mut machine = begun_with(Recovered { parked: vec![(slot, None)], ..Recovered::empty(Life(1)) });
        let parked_one = Parked { slot, envelope: message(2, None), error: "damaged".to_owned(), leaves: None };
        assert_eq!(step(&mut machine, Event::Retry(parked_one)), [Action::Load(7)]);
        assert_eq!(parked(&step(&mut machine, unloadable())), [(slot, "damaged")]);
    }

    #[test]
    fn what_is_said_of_an_actor_that_nobody_reads_changes_nothing() {
        let mut machine = begun();
        let before = machine.clone();
        assert_eq!(step(&mut machine, unloadable()), []);
        assert!(machine == before);
    }
}

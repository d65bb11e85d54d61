//! A check for tests: each turn runs a second time before its commit, on a fresh activation of what the journal held before
//! it, and must come to the same (non-interference, RSM Prop. 3.1). What fields that are not kept have a say in would be
//! decided otherwise after a failover.

mod alike;
mod record;

use greenroom_protocols::delivery::{Effects, Outgoing, TurnId};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(super) use self::alike::Fields;
pub(super) use self::record::{Record, read, write};
use super::cast::{Cast, End, cut};
use super::errands::subject;
use super::kept::Memory;
use super::machine::STATE;
use super::name::{Body, Letter, Named};
use super::takings::{Ended, takings};
use crate::actor::cx::Cx;
use crate::actor::key::{ActorId, Kind};
use crate::shard::{Shard, Slot};

impl Cx {
    /// What `make` gives: chance, the time, whatever else is decided neither by the message nor by fields that are kept. Where
    /// turns are [run again](crate::Reliability::rerun) by a test, the second run gets what the first one got.
    ///
    /// Anywhere else it does nothing besides, and a turn may decide such things without it.
    pub fn choose<T: Serialize + DeserializeOwned>(&self, make: impl FnOnce() -> T) -> T {
        let Some(takings) = takings() else { return make() };
        match takings.chosen() {
            None => make(),
            Some((_, Some(chosen))) => chosen,
            Some((at, None)) => {
                let chosen = make();
                takings.choose(at, &chosen);
                chosen
            }
        }
    }
}

/// A turn whose end is not believed before a second run has come to the same.
pub(super) struct Doubted {
    letter: Letter,
    method: u16,
    /// What the first run came to, and the second one's activation.
    first: Option<(Ended, Slot)>,
}

impl Doubted {
    pub(super) fn new(letter: &Letter, method: u16) -> Box<Self> {
        Box::new(Self { letter: letter.clone(), method, first: None })
    }
}

impl Cast {
    /// Takes in the end of a run: that of the turn, if it was the second one.
    pub(super) fn run_over(&mut self, turn: TurnId, mut doubted: Box<Doubted>, end: End) -> End {
        match (doubted.first.take(), end) {
            (None, End::Done(mut first)) => match first.record.take() {
                Some(record) => self.run_again(turn, doubted, first, &record),
                None => End::Done(first),
            },
            (None, end) => end,
            (Some((first, slot)), end) => {
                cut(Some(slot));
                let what = match &end {
                    End::Again => return End::Again,
                    End::Died => return End::Died,
                    End::Done(second) => self.difference(&doubted.letter.to, &first, second),
                    End::Failed(why) => Some(format!("it fails ({why})")),
                    End::Deferred | End::Twice(_) => Some("it is deferred".to_owned()),
                };
                match what {
                    None => End::Done(first),
                    Some(what) => self.found(&doubted.letter, &what),
                }
            }
        }
    }

    /// Runs a turn that has ended once more, on an activation of what there was before it.
    fn run_again(&mut self, turn: TurnId, mut doubted: Box<Doubted>, first: Ended, record: &Record) -> End {
        let to = doubted.letter.to.clone();
        let before = self.actors.get(&to).and_then(|entry| entry.before.as_ref());
        let stored = before.map(|before| before.stored()).unwrap_or_default();
        let Some(kind) = Kind::known(&to.kind) else { return End::Again };
        let id = ActorId::unchecked(kind, &*to.key);
        let begun = Shard::with(|shard| {
            let shard = shard?;
            let slot = shard.activate_apart(id, self.epoch, Memory::seed(stored)).ok()?;
            let activation = shard.activation(slot)?;
            let (letter, method) = (doubted.letter.clone(), doubted.method);
            doubted.first = Some((first, slot));
            let again = Some((Box::new(record.again()), doubted));
            Some(self.offer(shard, turn, (&letter, method), activation, again))
        });
        begun.map_or(End::Again, End::Twice)
    }

    /// What is another one after the second run.
    fn difference<'a>(&self, actor: &Named, first: &'a Ended, second: &'a Ended) -> Option<String> {
        let (one, other) = (&first.effects, &second.effects);
        let differ = |what: &str| Some(format!("{what} differs"));
        if one.halts != other.halts {
            return differ("whether the actor halts");
        }
        let before = self.actors.get(actor).and_then(|entry| entry.before.as_deref());
        match before.and_then(|before| before.other(&first.changes.1, &second.changes.1)) {
            Some(field) if field == STATE => return differ("the machine state that it jumps to"),
            Some(field) => return differ(&format!("field `{field}`")),
            None => {}
        }
        if let Some(message) = other_message(one.sends.iter(), other.sends.iter()) {
            return differ(&format!("what it sends to {message}"));
        }
        let later = |effects: &'a Effects<Named, Body>| effects.timers.iter().map(|timer| &timer.outgoing);
        if let Some(message) = other_message(later(one), later(other)) {
            return differ(&format!("the timer for {message}"));
        }
        if let Some((timer, _)) = one.timers.iter().zip(&other.timers).find(|(one, other)| one.due != other.due) {
            return differ(&format!("when the timer for {} is due", subject(&timer.outgoing.envelope)));
        }
        if let Some((timer, _)) = one.timers.iter().zip(&other.timers).find(|(one, other)| one.name != other.name) {
            return differ(&format!("the name of the timer for {}", subject(&timer.outgoing.envelope)));
        }
        if one.cancels != other.cancels {
            return differ("which timers it cancels");
        }
        if first.told != second.told {
            let told = first.told.iter().chain(&second.told);
            let mut other = told.filter(|whom| !first.told.contains(whom) || !second.told.contains(whom));
            let whom = other.next().map_or("others, by its order,", String::as_str);
            return differ(&format!("what it sends to {whom}"));
        }
        match (&one.answer, &other.answer) {
            (Some(answer), Some(wanted)) if !alike::bodies(answer, wanted) => differ("its answer"),
            _ => None,
        }
    }

    /// Lets the turn fail for good: a new try on a fresh activation would find nothing.
    fn found(&mut self, letter: &Letter, what: &str) -> End {
        let remedy = match self.port.node.kinds().has_linked(&letter.to.kind) {
            true => "so remove `#[volatile]` from the one that does, or choose it by `cx.choose(|| ..)`",
            false => "not what its host has in memory besides, or choose it by `cx.choose`",
        };
        let found = format!(
            "{} would commit something else after a failover: {what} when the turn is run again with its volatile fields \
             reset; let only fields that are kept decide, {remedy}",
            subject(letter)
        );
        tracing::error!("{found}");
        self.port.node.reliable().differ(&found);
        if let Body::Call { method, .. } = &letter.body {
            self.faulty.insert((letter.to.clone(), method.clone()), found.clone());
        }
        End::Failed(found)
    }
}

/// The first message that only one of the runs sends.
fn other_message<'a>(
    first: impl ExactSizeIterator<Item = &'a Outgoing<Named, Body>>,
    second: impl ExactSizeIterator<Item = &'a Outgoing<Named, Body>>,
) -> Option<String> {
    let (longer, mut shorter): (Vec<_>, Vec<_>) = match first.len() >= second.len() {
        true => (first.collect(), second.collect()),
        false => (second.collect(), first.collect()),
    };
    shorter.reverse();
    longer.into_iter().find(|one| !shorter.pop().is_some_and(|other| alike::messages(one, other))).map(|found| {
        match &found.envelope.body {
            Body::Output(_) => format!("the outlet {:?}", &*found.envelope.to.key),
            _ => subject(&found.envelope),
        }
    })
}

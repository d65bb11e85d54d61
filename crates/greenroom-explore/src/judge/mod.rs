//! Who judges a schedule beside the test's own claims: monitors see all that happens, and the calls of clients are compared with those
//! of runs in which they come one at a time.

pub(crate) mod crowd;
pub(crate) mod history;
pub(crate) mod letters;
mod monitor;
pub(crate) mod serial;
pub(crate) mod twice;

use std::collections::BTreeMap;
use std::mem;

use greenroom::ActorId;
use greenroom::rehearsal::{Event as Raw, Happened, Party, Stage};

pub use self::monitor::{Event, Monitor, Verdict, What};
use crate::driver::Violated;
use crate::run::Tell;

/// A message that was sent.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) from: Party,
    pub(crate) to: ActorId,
    pub(crate) method: &'static str,
    pub(crate) arguments: String,
}

/// What has happened in one schedule, and who judges it.
#[derive(Default)]
pub(crate) struct Judges {
    listen: bool,
    monitors: Vec<Watching>,
    messages: BTreeMap<u64, Message>,
    pub(crate) events: Vec<Raw>,
    /// What the actors were after each step; only where a schedule is told.
    pub(crate) states: Option<Vec<States>>,
}

/// What actors are, by their names.
pub(crate) type States = Vec<(String, String)>;

/// A monitor, and what it said last.
struct Watching {
    name: String,
    monitor: Box<dyn Monitor>,
    last: Verdict,
    /// For how many fair steps something must come yet.
    hot: usize,
}

impl Judges {
    /// Judges of a schedule that begins. If they are not to `listen`, and it is not to be told, only monitors hear of what happens.
    pub(crate) fn begin(monitors: Vec<(String, Box<dyn Monitor>)>, listen: bool, tell: Tell, stage: &Stage) -> Self {
        let listen = listen || tell != Tell::Nothing || !monitors.is_empty();
        stage.listen(listen);
        let watching = |(name, monitor)| Watching { name, monitor, last: Verdict::Cold, hot: 0 };
        let monitors = monitors.into_iter().map(watching).collect();
        Self { listen, monitors, states: (tell == Tell::All).then(Vec::new), ..Self::default() }
    }

    /// Takes in what has happened in a step.
    pub(crate) fn step(&mut self, stage: &Stage) -> Result<(), Violated> {
        if let Some(states) = &mut self.states {
            states.push(stage.look().shown());
        }
        if let Some((actor, why)) = stage.unsound() {
            return Err(format!("{actor} is not sound: {why}"));
        }
        if !self.listen {
            return Ok(());
        }
        for event in stage.take_events() {
            self.saw(&event)?;
            self.events.push(event);
        }
        Ok(())
    }

    fn saw(&mut self, event: &Raw) -> Result<(), Violated> {
        if let Happened::Sent { message, from, to, method, arguments, .. } = &event.what {
            let (from, to, arguments) = (from.clone(), to.clone(), arguments.clone());
            self.messages.insert(*message, Message { from, to, method, arguments });
        }
        if self.monitors.is_empty() {
            return Ok(());
        }
        let Some(event) = Event::of(event, &self.messages) else { return Ok(()) };
        for Watching { name, monitor, last, .. } in &mut self.monitors {
            match monitor.saw(&event) {
                Verdict::Violated(why) => return Err(format!("{name}: {why}")),
                Verdict::Warm => {}
                verdict => *last = verdict,
            }
        }
        Ok(())
    }

    /// Takes in what has happened in the end, when nobody judges steps any more.
    pub(crate) fn aftermath(&mut self, stage: &Stage) {
        self.events.extend(stage.take_events());
    }

    /// Takes in a step of a schedule in which all get their turns: nothing is to be waited for during more of them than `patience`.
    pub(crate) fn be_patient(&mut self, patience: usize) -> Result<(), Violated> {
        for Watching { name, last, hot, .. } in &mut self.monitors {
            *hot = if *last == Verdict::Hot { *hot + 1 } else { 0 };
            if *hot >= patience {
                return Err(format!("{name}: hot for {patience} fair steps"));
            }
        }
        Ok(())
    }

    /// Nothing is left to do.
    pub(crate) fn end(&mut self) -> Result<(), Violated> {
        let hot = self.monitors.iter().find(|watching| watching.last == Verdict::Hot);
        hot.map_or(Ok(()), |watching| Err(format!("{}: hot in the end", watching.name)))
    }

    pub(crate) fn take_events(&mut self) -> Vec<Raw> {
        mem::take(&mut self.events)
    }

    pub(crate) fn take_states(&mut self) -> Vec<States> {
        self.states.take().unwrap_or_default()
    }
}

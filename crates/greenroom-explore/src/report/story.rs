//! What happened in a schedule: who did what, whose message it was, and how each actor was after it.

use std::collections::{BTreeMap, BTreeSet};

use greenroom::rehearsal::{Event, Happened, Party};
use serde::Serialize;

use crate::judge::letters::{Letter, letters, told};
use crate::run::Told;

/// A schedule, for people. It is also what `greenroom replay --step` reads: fields are added, never changed.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Story {
    pub(crate) version: u32,
    pub(crate) test: String,
    pub(crate) violated: String,
    pub(crate) replay: String,
    /// What the violation depends on.
    pub(crate) matters: Vec<String>,
    pub(crate) lanes: Vec<Lane>,
    pub(crate) steps: Vec<Scene>,
    /// What clients were told in the end.
    pub(crate) end: Vec<String>,
    /// Who waits for whom when nothing is left to do.
    pub(crate) waiting: Vec<String>,
}

/// Somebody who acts.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Lane {
    pub(crate) name: String,
    /// Whether the violation depends on what it does.
    pub(crate) matters: bool,
}

/// A step.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Scene {
    pub(crate) name: String,
    /// Who acts in it: a place among the lanes.
    pub(crate) lane: usize,
    /// What came: `deposit(10)`, or the answer to it; of a choice, what it is about: `the provider refuses: yes`.
    pub(crate) what: String,
    /// Whence it came.
    pub(crate) from: Option<usize>,
    /// What happens that is no message: `write`, `crash`, `lost`; nothing where somebody goes on.
    pub(crate) deed: String,
    /// In which step it was sent; `None` if before the first.
    pub(crate) sent: Option<usize>,
    pub(crate) is_answer: bool,
    /// What the test has said in it.
    pub(crate) notes: Vec<String>,
    /// The step that would have come by itself.
    pub(crate) instead_of: Option<String>,
    /// The steps that could have come.
    pub(crate) others: Vec<String>,
    /// Whether the violation depends on it.
    pub(crate) matters: bool,
    /// The actors that are different from before, with what they are now.
    pub(crate) states: Vec<(usize, String)>,
}

impl Story {
    pub(crate) fn new(test: String, violated: String, replay: String, steps: &[Told], events: &[Event]) -> Self {
        let letters = &letters(events)[..];
        let mut lanes = Lanes::default();
        let numbers: BTreeMap<u64, usize> = steps.iter().enumerate().map(|(at, step)| (step.number, at)).collect();
        let parties = letters.iter().filter(|letter| letter.from != Party::Client(0));
        for letter in parties.clone() {
            lanes.of(&letter.from.to_string());
        }
        let mut scenes: Vec<Scene> = steps.iter().map(|step| lanes.scene(step)).collect();
        for letter in parties {
            let (from, to) = (lanes.of(&letter.from.to_string()), lanes.of(&letter.to.to_string()));
            let step = |number: u64| numbers.get(&number).copied();
            if let Some(at) = letter.came.and_then(|came| step(came.step)) {
                let (scene, sent) = (&mut scenes[at], step(letter.sent.step));
                (scene.lane, scene.from, scene.sent) = (to, Some(from), sent);
                scene.what.clone_from(&letter.call);
            }
            if let (Some(at), Some((answered, answer))) =
                (letter.heard.and_then(|heard| step(heard.step)), &letter.answered)
            {
                let (scene, sent) = (&mut scenes[at], step(answered.step));
                (scene.lane, scene.from, scene.sent, scene.is_answer) = (from, Some(to), sent, true);
                scene.what = told(answer);
            }
        }
        for event in events {
            if let (Happened::Fault { actors, .. }, Some(at)) = (&event.what, numbers.get(&event.step))
                && !actors.is_empty()
            {
                scenes[*at].what = format!("with {}", actors.join(", "));
            }
        }
        let mut before: BTreeMap<&str, &str> = BTreeMap::new();
        for (scene, step) in scenes.iter_mut().zip(steps) {
            let gone = events.iter().filter(|event| event.step == step.number).flat_map(gone);
            let gone = gone.filter(|actor| before.contains_key(*actor)).map(|actor| (actor, GONE)).collect::<Vec<_>>();
            let states = step.states.iter().map(|(actor, state)| (actor.as_str(), state.as_str()));
            for (actor, state) in gone.into_iter().chain(states) {
                if before.insert(actor, state) != Some(state) {
                    scene.states.push((lanes.of(actor), state.to_owned()));
                }
            }
        }
        let in_the_end = letters.iter().filter(|letter| letter.from == Party::Client(0));
        let end: Vec<String> = in_the_end
            .clone()
            .map(|letter| {
                let answer =
                    letter.answered.as_ref().map_or_else(String::new, |(_, answer)| format!(" = {}", told(answer)));
                format!("{}.{}{answer}", letter.to, letter.call)
            })
            .collect();
        let asked: BTreeSet<usize> = in_the_end.map(|letter| lanes.of(&letter.to.to_string())).collect();
        let names = lanes.0.into_iter().map(|name| Lane { name, matters: false });
        let mut story = Self {
            version: VERSION,
            test,
            violated,
            replay,
            matters: Vec::new(),
            lanes: names.collect(),
            steps: scenes,
            end,
            waiting: waiting(letters),
        };
        story.mark(&asked);
        story
    }

    /// Marks what the violation depends on: the last step, those that came early, what happened to actors that were asked in the end,
    /// and all that those come from.
    fn mark(&mut self, asked: &BTreeSet<usize>) {
        let mut wanted: Vec<usize> = Vec::new();
        wanted.extend(self.steps.len().checked_sub(1).filter(|_| asked.is_empty()));
        wanted.extend((0..self.steps.len()).filter(|at| self.steps[*at].instead_of.is_some()));
        for lane in asked {
            wanted.extend(self.steps.iter().rposition(|step| step.lane == *lane));
        }
        while let Some(at) = wanted.pop() {
            if std::mem::replace(&mut self.steps[at].matters, true) {
                continue;
            }
            let lane = self.steps[at].lane;
            self.lanes[lane].matters = true;
            wanted.extend(self.steps[at].sent);
            wanted.extend((0..at).rev().find(|before| self.steps[*before].lane == lane));
        }
    }
}

/// The actors that go with their node.
fn gone(event: &Event) -> impl Iterator<Item = &str> {
    let gone: &[String] = match &event.what {
        Happened::Fault { what, actors } if !what.starts_with("skew ") => actors,
        _ => &[],
    };
    gone.iter().map(String::as_str)
}

/// Who waits for an answer that did not come.
fn waiting(letters: &[Letter]) -> Vec<String> {
    let open = letters.iter().filter(|letter| letter.awaited && letter.heard.is_none());
    open.map(|letter| format!("{} waits for {}.{}", letter.from, letter.to, letter.call)).collect()
}

/// The names of who acts, clients first.
#[derive(Default)]
struct Lanes(Vec<String>);

impl Lanes {
    fn of(&mut self, name: &str) -> usize {
        if let Some(at) = self.0.iter().position(|known| known == name) {
            return at;
        }
        self.0.push(name.to_owned());
        self.0.len() - 1
    }

    /// A step of whoever its name says.
    fn scene(&mut self, step: &Told) -> Scene {
        let (deed, who) = deed(&step.name);
        Scene {
            name: step.name.clone(),
            lane: self.of(&who),
            deed,
            what: step.about.clone(),
            notes: step.notes.clone(),
            instead_of: step.instead_of.clone(),
            others: step.others.clone(),
            ..Scene::default()
        }
    }
}

/// Who acts in a step of this name.
pub(crate) fn actor_of(step: &str) -> String {
    deed(step).1
}

/// What a step does beside bringing a message, and who does it: `write account/ada` is a deed of `account/ada`, as is what goes wrong with
/// what is under way to it.
fn deed(step: &str) -> (String, String) {
    let mut deeds = Vec::new();
    let mut rest = step;
    while let Some((deed, of)) = rest.split_once(' ').filter(|(deed, _)| DEEDS.contains(deed)) {
        deeds.push(deed);
        rest = of;
    }
    let (rest, outcome) = match deeds.first() {
        Some(&"store") => rest.split_once(": ").unwrap_or((rest, "")),
        _ => (rest, ""),
    };
    let mut deed = deeds.iter().filter(|deed| **deed != "wake").copied().collect::<Vec<_>>().join(" ");
    if !outcome.is_empty() {
        deed = format!("{deed}: {outcome}");
    }
    let who = rest.split(['<', '#']).next().unwrap_or_default();
    let who = match who.rsplit_once('.') {
        Some((actor, _)) if actor.contains('/') => actor.to_owned(),
        _ if deeds.iter().any(|deed| OF_NODES.contains(deed)) => format!("node {who}"),
        _ => who.to_owned(),
    };
    match who.strip_prefix("choice ") {
        Some(chosen) => (format!("chooses {chosen}"), "choice".to_owned()),
        None => (deed, who),
    }
}

/// What the names of steps begin with that bring no message.
const DEEDS: [&str; 13] =
    ["wake", "read", "write", "commit", "crash", "lose", "late", "idle", "store", "pause", "move", "repeat", "skew"];
/// Those of nodes.
const OF_NODES: [&str; 3] = ["crash", "pause", "skew"];
/// What an actor is whose node is lost, until it begins anew.
const GONE: &str = "gone with its node";
/// Of this form of a story.
const VERSION: u32 = 1;

#[cfg(test)]
mod tests {
    use super::deed;

    #[test]
    fn what_happens_to_somebody_is_told_of_him() {
        let of = |step: &str| deed(step);
        let is = |deed: &str, who: &str| (deed.to_owned(), who.to_owned());
        assert_eq!(of("account/ada.add<client 1"), is("", "account/ada"));
        assert_eq!(of("client 1<account/ada.add#2"), is("", "client 1"));
        assert_eq!(of("wake account/ada.add"), is("", "account/ada"));
        assert_eq!(of("write account/ada"), is("write", "account/ada"));
        assert_eq!(of("late write account/ada#2"), is("late write", "account/ada"));
        assert_eq!(of("store write account/ada: unknown, applied"), is("store write: unknown, applied", "account/ada"));
        assert_eq!(of("commit pool/ada"), is("commit", "pool/ada"));
        assert_eq!(of("lose client 1<account/ada.add"), is("lose", "client 1"));
        assert_eq!(of("idle account/ada"), is("idle", "account/ada"));
        assert_eq!(of("crash b"), is("crash", "node b"));
        assert_eq!(of("choice 2"), is("chooses 2", "choice"));
        assert_eq!(of("time"), is("", "time"));
    }
}

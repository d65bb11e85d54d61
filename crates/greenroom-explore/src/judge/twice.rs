//! One schedule, run again: if something else happens, what runs in it is not decided by its messages.

use greenroom::rehearsal::{Event, Happened};

use super::letters::{shown, told};
use crate::run::{Plan, Ran, Subject, Tell};

/// What differs between two runs of one schedule; `None` if nothing does. `ran` is one of them if its steps are told, and if it has gone on to the end.
pub(crate) fn differs(subject: &Subject, ran: &Ran) -> Option<String> {
    let run = || scenes(&subject.run(Plan::Picks(ran.picks.clone()), Tell::Steps));
    let one = if ran.told.is_empty() || ran.is_given_up { run() } else { scenes(ran) };
    let other = run();
    let at = first_difference(&one, &other)?;
    let third = run();
    let scene = |scenes: &[Scene]| scenes.get(at).cloned().unwrap_or_default();
    let (before, then) = (scene(&one), scene(&other));
    let what = if before.name == then.name { (before.said(), then.said()) } else { (before.name.clone(), then.name) };
    let why = match first_difference(&other, &third) {
        None => {
            "what the first run left behind was there in the second: keep it in actors, not in a `static`, a `OnceLock` or a `thread_local!`"
        }
        Some(_) => {
            "if it iterates a HashMap or HashSet, take a BTreeMap; chance comes from `world.choose` or `cx.maybe`, time from \
             `tokio::time`; and nothing is kept outside of actors"
        }
    };
    Some(format!(
        "not deterministic: step {} of the same schedule, {}, {} in one run, and {} in the next; {why}",
        at + 1,
        who(&before.name),
        what.0,
        what.1
    ))
}

/// A step, and what came of it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct Scene {
    name: String,
    made: Vec<String>,
}

impl Scene {
    fn said(&self) -> String {
        if self.made.is_empty() { "did nothing".to_owned() } else { self.made.join(", ") }
    }
}

fn scenes(ran: &Ran) -> Vec<Scene> {
    let made = |number: u64| ran.events.iter().filter(move |event| event.step == number).filter_map(made);
    let scenes = ran.told.iter().map(|step| Scene { name: step.name.clone(), made: made(step.number).collect() });
    scenes.collect()
}

fn made(event: &Event) -> Option<String> {
    match &event.what {
        Happened::Sent { to, method, arguments, .. } => Some(format!("called {to}.{method}{}", shown(arguments))),
        Happened::Answered { answer, .. } => Some(format!("answered {}", told(answer))),
        _ => None,
    }
}

fn first_difference(one: &[Scene], other: &[Scene]) -> Option<usize> {
    let same = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    (same < one.len().max(other.len())).then_some(same)
}

/// Whose step it is.
fn who(step: &str) -> &str {
    step.split('<').next().unwrap_or(step)
}

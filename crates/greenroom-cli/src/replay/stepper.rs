//! A schedule, step by step in a terminal, forward and back.

use std::io::{self, BufRead, Write};

use serde::Deserialize;

use super::line;

/// A schedule as the test tells it.
#[derive(Deserialize)]
pub(super) struct Story {
    violated: String,
    matters: Vec<String>,
    lanes: Vec<Lane>,
    steps: Vec<Scene>,
    end: Vec<String>,
    waiting: Vec<String>,
    /// The whole as text, and as a diagram's.
    pub(super) text: String,
    pub(super) mermaid: String,
    /// Where the page is.
    pub(super) page: String,
}

#[derive(Deserialize)]
struct Lane {
    name: String,
}

#[derive(Deserialize)]
struct Scene {
    name: String,
    lane: usize,
    what: String,
    sent: Option<usize>,
    is_answer: bool,
    #[serde(default)]
    notes: Vec<String>,
    instead_of: Option<String>,
    others: Vec<String>,
    states: Vec<(usize, String)>,
}

/// Lets somebody go through it.
pub(super) fn step(story: &Story, from: &mut dyn BufRead, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}\n{HELP}", story.violated)?;
    let mut at = 0;
    loop {
        show(story, at, out)?;
        write!(out, "> ")?;
        out.flush()?;
        let Some(asked) = line(from)? else { return Ok(()) };
        let (word, rest) = asked.trim().split_once(' ').unwrap_or((asked.trim(), ""));
        match word {
            "" | "n" | "\u{1b}[C" => at = (at + 1).min(story.steps.len()),
            "b" | "\u{1b}[D" => at = at.saturating_sub(1),
            "g" => match rest.trim().parse::<usize>() {
                Ok(wanted) if wanted <= story.steps.len() => at = wanted,
                _ => writeln!(out, "there are steps 0 to {}", story.steps.len())?,
            },
            "s" => state(story, at, rest.trim(), out)?,
            "w" => waits(story, at, out)?,
            "q" => return Ok(()),
            _ => writeln!(out, "{HELP}")?,
        }
    }
}

fn name(story: &Story, lane: usize) -> &str {
    story.lanes.get(lane).map_or("?", |lane| &lane.name)
}

fn show(story: &Story, at: usize, out: &mut dyn Write) -> io::Result<()> {
    let Some(scene) = at.checked_sub(1).and_then(|at| story.steps.get(at)) else {
        return writeln!(out, "before the first of {} steps", story.steps.len());
    };
    let what = match (scene.is_answer, scene.what.as_str()) {
        (_, "") => String::new(),
        (true, answer) => format!("  hears {answer}"),
        (false, call) => format!("  {call}"),
    };
    writeln!(out, "step {at} of {}: {}{what}", story.steps.len(), scene.name)?;
    for note in &scene.notes {
        writeln!(out, "  says: {note}")?;
    }
    if let Some(sent) = scene.sent {
        writeln!(out, "  sent in step {}", sent + 1)?;
    }
    if let Some(other) = &scene.instead_of {
        writeln!(out, "  before its time: by itself, {other} would have come")?;
    }
    let others: Vec<&str> = scene.others.iter().map(String::as_str).filter(|other| *other != scene.name).collect();
    if !others.is_empty() {
        writeln!(out, "  could have come instead: {}", others.join(", "))?;
    }
    for (lane, state) in &scene.states {
        writeln!(out, "  {} is now {}", name(story, *lane), one_line(state))?;
    }
    if at == story.steps.len() {
        for told in story.end.iter().chain(&story.waiting) {
            writeln!(out, "  end: {told}")?;
        }
        writeln!(out, "  violated: {}", story.violated)?;
        for pair in &story.matters {
            writeln!(out, "  it matters that {pair}")?;
        }
    }
    Ok(())
}

/// What an actor is after a step, or all whose names begin so.
fn state(story: &Story, at: usize, wanted: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut found = false;
    for lane in 0..story.lanes.len() {
        let mut changes = story.steps.iter().take(at).flat_map(|scene| &scene.states).filter(|(of, _)| *of == lane);
        if let Some((_, state)) = changes.next_back().filter(|_| name(story, lane).starts_with(wanted)) {
            found = true;
            writeln!(out, "{}: {state}", name(story, lane))?;
        }
    }
    if !found {
        writeln!(out, "no state of {wanted:?} is known here: derive Debug for the actor's type")?;
    }
    Ok(())
}

/// Who waits for whom after a step.
fn waits(story: &Story, at: usize, out: &mut dyn Write) -> io::Result<()> {
    let mut nobody = true;
    for scene in story.steps.iter().skip(at).filter(|scene| scene.sent.is_some_and(|sent| sent < at)) {
        nobody = false;
        let word = if scene.is_answer { "an answer is under way to" } else { "a message is under way to" };
        writeln!(out, "{word} {}: {}", name(story, scene.lane), scene.name)?;
    }
    if at == story.steps.len() {
        for waiting in &story.waiting {
            nobody = false;
            writeln!(out, "{waiting}")?;
        }
    }
    if nobody {
        writeln!(out, "nothing is under way")?;
    }
    Ok(())
}

/// A state in one line.
fn one_line(state: &str) -> String {
    state.split_whitespace().collect::<Vec<_>>().join(" ")
}

const HELP: &str = "enter: next · b: back · g N: go to a step · s ACTOR: what it is · w: what is under way · q: quit";

#[cfg(test)]
mod tests {
    use super::*;

    const STORY: &str = r#"{"violated":"a deposit is lost","matters":["a came before b"],"lanes":[{"name":"client 1"},{"name":"account/ada"}],
        "steps":[{"name":"client 1","lane":0,"what":"","sent":null,"is_answer":false,"instead_of":null,"others":["client 1","client 2"],"states":[]},
        {"name":"account/ada.add<client 1","lane":1,"what":"add(10)","sent":0,"is_answer":false,"instead_of":"client 2","others":[],
        "states":[[1,"Account {\n balance: 10\n}"]]}],"end":["account/ada.balance() = 10"],"waiting":[],"text":"","mermaid":"","page":"","new":1}"#;

    #[test]
    fn somebody_goes_forward_and_back() {
        let story: Story = serde_json::from_str(STORY).expect("it is well formed");
        let mut out = Vec::new();
        step(&story, &mut "\n\nw\ns acc\nb\ng 9\nx\nq\n".as_bytes(), &mut out).expect("all is in memory");
        let text = String::from_utf8(out).expect("it is text");
        for wanted in [
            "step 1 of 2: client 1\n  could have come instead: client 2",
            "step 2 of 2: account/ada.add<client 1  add(10)\n  sent in step 1\n  before its time: by itself, client 2 would have come",
            "account/ada is now Account { balance: 10 }",
            "end: account/ada.balance() = 10",
            "it matters that a came before b",
            "nothing is under way",
            "there are steps 0 to 2",
        ] {
            assert!(text.contains(wanted), "{wanted:?} is not in:\n{text}");
        }
    }
}

//! What is told of a schedule that violates something.

use std::env;
use std::fmt;
use std::fs;
use std::io;
use std::path::PathBuf;

use serde::Serialize;

use crate::deviations::Deviations;
use crate::report::{self, Saved, Scene, Story, Swapped};
use crate::run::Ran;

/// A schedule that breaks a test.
#[derive(Clone, Debug)]
pub struct Failure {
    schedule: u64,
    schedules: Option<u64>,
    /// Runs that it took to make it short; `None` if that was not tried, or failed.
    shrunk: Option<usize>,
    deviations: usize,
    /// What its files are called, without their endings.
    file: String,
    story: Story,
}

/// Where a failure was written to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Files {
    /// The page.
    pub page: PathBuf,
    /// The schedule, for `greenroom replay`.
    pub schedule: PathBuf,
}

impl Failure {
    /// What is told of `ran`, which violates something: the first schedule that does is the first of `schedule`, of as many as the
    /// second, if there is a bound.
    pub(crate) fn new(schedule: (u64, Option<u64>), shrunk: Option<usize>, ran: &Ran, matters: &[Swapped]) -> Self {
        let left = Deviations::of(&ran.told);
        let replay = left.without(&ran.without);
        let violated = ran.violated.clone().unwrap_or_default();
        let mut story = Story::new(report::test_name(), violated, replay.to_string(), &ran.told, &ran.events);
        story.matters = matters.iter().map(ToString::to_string).collect();
        let (schedule, schedules) = schedule;
        Self { schedule, schedules, shrunk, deviations: left.0.len(), file: report::file_name(), story }
    }

    /// What was violated.
    pub fn violated(&self) -> &str {
        &self.story.violated
    }

    /// Which schedule broke it first, counted from 1.
    pub fn schedule(&self) -> u64 {
        self.schedule
    }

    /// The schedule, for [`Explore::replay`](crate::Explore::replay).
    pub fn replay(&self) -> &str {
        &self.story.replay
    }

    /// How often it leaves the default order.
    pub fn deviations(&self) -> usize {
        self.deviations
    }

    /// The names of its steps.
    pub fn steps(&self) -> impl Iterator<Item = &str> {
        self.story.steps.iter().map(|step| step.name.as_str())
    }

    /// What the violation depends on: pairs of steps that came in this order, and break nothing in the other one.
    pub fn matters(&self) -> impl Iterator<Item = &str> {
        self.story.matters.iter().map(String::as_str)
    }

    /// The schedule as a page: one file that needs no network, whose slider steps through it, forward and back.
    pub fn page(&self) -> String {
        report::page(&self.story)
    }

    /// The schedule as the text of a Mermaid diagram, for issues.
    pub fn mermaid(&self) -> String {
        report::mermaid(&self.story)
    }

    /// The schedule as JSON: steps, lanes, what actors were after each step, and the whole as text.
    pub fn story(&self) -> String {
        #[derive(Serialize)]
        struct Told<'a> {
            #[serde(flatten)]
            story: &'a Story,
            text: String,
            mermaid: String,
            page: PathBuf,
        }
        let (text, mermaid, page) = (self.to_string(), self.mermaid(), self.file("html"));
        let told = Told { story: &self.story, text, mermaid, page };
        serde_json::to_string(&told).unwrap_or_else(|error| panic!("a story is plain data: {error}"))
    }

    fn file(&self, ending: &str) -> PathBuf {
        report::folder().join(format!("{}.{ending}", self.file))
    }

    /// Writes the page, and the file that replays the schedule, to `explore` in the folder that the compiler writes to.
    ///
    /// # Errors
    /// The system's; one of the files may be there.
    pub fn save(&self) -> io::Result<Files> {
        fs::create_dir_all(report::folder())?;
        let files = Files { page: self.file("html"), schedule: self.file("schedule") };
        fs::write(&files.page, self.page())?;
        let saved = Saved::new(self.replay(), self.violated(), self.steps().map(str::to_owned).collect());
        fs::write(&files.schedule, serde_json::to_string_pretty(&saved)?)?;
        if let Some(story) = env::var_os("GREENROOM_STORY") {
            fs::write(story, self.story())?;
        }
        Ok(files)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { schedule, schedules, deviations, story, .. } = self;
        writeln!(f, "{}: violated: {}", story.test, story.violated)?;
        let shrunk = self.shrunk.map_or_else(String::new, |runs| format!(", shrunk in {runs} runs"));
        let of = schedules.map_or_else(String::new, |schedules| format!(" of {schedules}"));
        let steps = story.steps.len();
        writeln!(f, "  schedule {schedule}{of}{shrunk}: {steps} steps, {deviations} of them before their time")?;
        let width = story.steps.iter().map(|step| step.name.chars().count()).max().unwrap_or(0).min(NAME_LEN_MAX);
        let (mut passed, all) = (0, steps <= STEPS_TOLD_MAX);
        for (at, scene) in story.steps.iter().enumerate() {
            if !all && !scene.matters {
                passed += 1;
                continue;
            }
            if passed > 0 {
                writeln!(f, "        {} that do not matter", std::mem::take(&mut passed))?;
            }
            let Scene { name, what, notes, instead_of, is_answer, from, .. } = scene;
            let what = match (from, is_answer) {
                (None, _) => what.chars().take(VALUE_LEN_MAX).collect(),
                (Some(_), true) => format!("= {}", what.chars().take(VALUE_LEN_MAX).collect::<String>()),
                (Some(_), false) => {
                    what.find('(').map_or_else(String::new, |at| what[at..].chars().take(VALUE_LEN_MAX).collect())
                }
            };
            let line = match instead_of {
                None => format!("   {:>3}  {name:<width$}  {what}", at + 1),
                Some(other) => format!(" \u{25cf} {:>3}  {name:<width$}  {what:<8}  before  {other}", at + 1),
            };
            writeln!(f, "{}", line.trim_end())?;
            for note in notes {
                writeln!(f, "          {note}")?;
            }
        }
        if passed > 0 {
            writeln!(f, "        {passed} that do not matter")?;
        }
        for line in &story.end {
            writeln!(f, "   end  {line}")?;
        }
        for pair in &story.matters {
            writeln!(f, "  it matters that  {pair}")?;
        }
        write!(f, "  keep it as a test  replay = {:?}", story.replay)
    }
}

/// Steps of a schedule that is told as a whole.
const STEPS_TOLD_MAX: usize = 60;
/// Widths of columns.
const NAME_LEN_MAX: usize = 48;
const VALUE_LEN_MAX: usize = 60;

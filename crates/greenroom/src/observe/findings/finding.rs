//! What is told of something that is wrong.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::observe::level::Level;
use crate::observe::subject::Subject;

/// Something that a node finds wrong, or better than before.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Finding {
    /// Tells it from others: its check, and what it is about. All nodes that find the same say the same.
    pub id: String,
    /// The check that has found it, as `table-failing`.
    pub check: Cow<'static, str>,
    /// How much it matters.
    pub level: Level,
    /// What is so, in a few words.
    pub title: String,
    /// The same with what is known of it.
    pub text: String,
    /// What to do.
    pub remedy: Cow<'static, str>,
    /// Since when, in Unix milliseconds.
    pub since: u64,
    /// What it is about.
    pub subject: Subject,
    /// The figures that say so.
    pub evidence: Vec<Evidence>,
    /// The page of the console to look at.
    pub page: Cow<'static, str>,
    /// Where the guide says more.
    pub docs: String,
    /// The name of the node that has found it.
    pub node: String,
}

/// A figure that a finding rests on.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Evidence {
    /// What it is.
    pub name: Cow<'static, str>,
    /// How much of it.
    pub value: f64,
    /// Its unit; empty for a number of things.
    pub unit: Cow<'static, str>,
}

//! Surveys in which each vote counts once (RSM §6.2): `cargo run -p greenroom --example survey`.
//!
//! A coordinator makes surveys, each of which is a state machine of its own, and hears of their ends.

use std::time::Duration;

use greenroom::prelude::*;
use serde::{Deserialize, Serialize};

/// Makes surveys and keeps their results.
#[derive(Default, Actor)]
pub struct Coordinator {
    open: Map<String, SurveyRef>,
    closed: Map<String, Vec<(String, u64)>>,
}

#[actor(reliable)]
impl Coordinator {
    /// Makes a survey that closes by itself.
    pub async fn open(&mut self, cx: &Cx, title: String, choices: Vec<String>, open_ms: u64) -> SurveyRef {
        if let Some(known) = self.open.get(&title) {
            return known.clone();
        }
        let survey = Survey::create(cx);
        survey.begin(title.clone(), choices, CoordinatorRef::me(cx)).send();
        survey.close().after(Duration::from_millis(open_ms)).send();
        self.open.insert(title, survey.clone());
        survey
    }

    /// A survey has come to its end.
    pub async fn ended(&mut self, title: String, counts: Vec<(String, u64)>) {
        self.open.remove(&title);
        self.closed.insert(title, counts);
    }

    /// The result, once it is there.
    pub async fn result(&self, title: String) -> Option<Vec<(String, u64)>> {
        self.closed.get(&title).cloned()
    }
}

/// One survey.
#[derive(Default, Actor)]
pub struct Survey {
    title: Register<String>,
    coordinator: Register<Option<CoordinatorRef>>,
    counts: Map<String, u64>,
    voters: Set<String>,
}

/// Why a vote does not count.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum VoteError {
    /// The voter has voted.
    Twice,
    /// There is no such choice.
    NoChoice,
    /// The survey is closed.
    Closed,
}

#[actor(reliable, start = "Fresh")]
impl Survey {
    /// What it asks.
    #[on(begin, state = "Fresh")]
    async fn begin(&mut self, cx: &Cx, title: String, choices: Vec<String>, coordinator: CoordinatorRef) {
        self.title.set(title);
        self.coordinator.set(Some(coordinator));
        for choice in choices {
            self.counts.insert(choice, 0);
        }
        cx.jump("Open");
    }

    /// A vote. One that overtakes the beginning waits for it.
    #[on(vote, state = "Open", defer = "Fresh")]
    async fn vote(&mut self, voter: String, choice: String) -> Result<u64, VoteError> {
        let count = *self.counts.get(&choice).ok_or(VoteError::NoChoice)? + 1;
        if !self.voters.insert(voter) {
            return Err(VoteError::Twice);
        }
        self.counts.insert(choice, count);
        Ok(count)
    }

    /// It is too late.
    #[on(vote, state = "Closed")]
    async fn vote_late(&mut self, voter: String, choice: String) -> Result<u64, VoteError> {
        let _ = (voter, choice);
        Err(VoteError::Closed)
    }

    /// Counts no more, and tells the result.
    #[on(close, state = "Open", defer = "Fresh", ignore = "Closed")]
    async fn close(&mut self, cx: &Cx) {
        if let Some(coordinator) = self.coordinator.get() {
            let counts = self.counts.iter().map(|(choice, count)| (choice.clone(), *count)).collect();
            coordinator.ended(self.title.get().clone(), counts).send();
        }
        cx.jump("Closed");
    }
}

#[tokio::main]
async fn main() -> greenroom::Result<()> {
    let node = Node::builder().journal("memory:").register::<Coordinator>().register::<Survey>().start().await?;
    let coordinator = CoordinatorRef::of(&node, "office");
    let survey = coordinator.open("lunch", vec!["soup".to_owned(), "salad".to_owned()], 300).await?.bind(&node);
    for (voter, choice) in [("ada", "soup"), ("bob", "salad"), ("cy", "soup"), ("ada", "salad")] {
        // The key makes it one vote, however often the call is repeated.
        match survey.vote(voter, choice).idempotent(voter).await {
            Ok(count) => println!("{voter} votes for {choice}, which has {count} now"),
            Err(error) => println!("{voter}'s vote for {choice} does not count: {error:?}"),
        }
    }
    while coordinator.result("lunch").await?.is_none() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    println!("{:?}", coordinator.result("lunch").await?);
    node.stop().await;
    Ok(())
}

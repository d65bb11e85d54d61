//! A session with a language model that may use tools, within a budget.

// anchor: recipe
use std::pin::Pin;
use std::sync::Arc;

use greenroom::prelude::*;
use serde::{Deserialize, Serialize};

/// What was said in a session.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Said {
    /// By the user.
    User(String),
    /// By the model.
    Model(String),
    /// The model wants this of a tool: the actor of kind `tool` with that key.
    Wants { tool: String, input: String },
    /// By the tool.
    Tool(String),
}

/// What a model says next, and the tokens that it took; or why it says nothing.
pub type Step = Pin<Box<dyn Future<Output = Result<(Said, u64), String>> + Send>>;

/// A language model: asks a service, or is a program of its own.
pub trait Model: Send + Sync + 'static {
    /// Goes on from what was said: an answer or a wish.
    fn next(&self, said: &[Said]) -> Step;
}

/// What outlives the node: what was said, and what is left of the budget.
#[derive(Default, Serialize, Deserialize)]
pub struct Transcript {
    said: Vec<Said>,
    tokens_used: u64,
}

impl State for Transcript {}

/// A session, by its name as key.
#[derive(Default, Actor)]
pub struct Session {
    transcript: Stored<Transcript>,
    model: Option<Arc<dyn Model>>,
    tokens_max: u64,
}

impl Session {
    /// Nothing said yet. Give it to the node: `register_with(move |_| Session::of(model.clone(), 10_000))`.
    pub fn of(model: Arc<dyn Model>, tokens_max: u64) -> Self {
        Self { transcript: Stored::default(), model: Some(model), tokens_max }
    }
}

#[actor]
impl Session {
    /// Asks, and answers when the model has no more wishes. What a step costs is saved before the next one.
    pub async fn ask(&mut self, cx: &Cx, text: String) -> Result<String, String> {
        let model = self.model.clone().ok_or("this node has no model")?;
        self.transcript.said.push(Said::User(text));
        for _ in 0..STEPS_MAX {
            if self.transcript.tokens_used >= self.tokens_max {
                return Err("the budget is used up".to_owned());
            }
            let (next, tokens) = model.next(&self.transcript.said).await?;
            self.transcript.tokens_used += tokens;
            self.transcript.said.push(next.clone());
            self.transcript.save(cx).await.map_err(|error| error.to_string())?;
            match next {
                Said::Wants { tool, input } => {
                    let result = ToolRef::of(cx, tool).run(input).await;
                    let result = result.unwrap_or_else(|error| format!("failed: {error}"));
                    self.transcript.said.push(Said::Tool(result));
                }
                Said::Model(answer) => return Ok(answer),
                Said::User(_) | Said::Tool(_) => return Err("the model speaks for somebody else".to_owned()),
            }
        }
        Err(format!("no answer after {STEPS_MAX} steps"))
    }

    /// What is left of the budget.
    pub async fn tokens_left(&self) -> u64 {
        self.tokens_max.saturating_sub(self.transcript.tokens_used)
    }
}

/// What a model may want done.
#[derive(Default, Actor)]
pub struct Tool {}

#[actor]
impl Tool {
    /// Does it.
    pub async fn run(&self, cx: &Cx, input: String) -> Result<String, String> {
        match cx.key().as_str() {
            "add" => {
                let numbers: Result<Vec<i64>, _> = input.split_whitespace().map(str::parse::<i64>).collect();
                numbers.map(|numbers| numbers.iter().sum::<i64>().to_string()).map_err(|error| error.to_string())
            }
            other => Err(format!("there is no tool {other}")),
        }
    }
}

const STEPS_MAX: u32 = 10;
// end: recipe

#[cfg(test)]
mod tests {
    use greenroom_test::Cluster;

    use super::*;

    /// A model of few words: it has sums added, and says the result.
    struct Adder;

    impl Model for Adder {
        fn next(&self, said: &[Said]) -> Step {
            let next = match said.last() {
                Some(Said::User(text)) => Ok(Said::Wants { tool: "add".to_owned(), input: text.clone() }),
                Some(Said::Tool(result)) => Ok(Said::Model(format!("it is {result}"))),
                other => Err(format!("nothing to say to {other:?}")),
            };
            Box::pin(async move { next.map(|next| (next, 10)) })
        }
    }

    fn kinds(builder: greenroom::Builder) -> greenroom::Builder {
        builder.register_with(|_| Session::of(Arc::new(Adder), 45)).register::<Tool>()
    }

    #[test]
    fn a_session_uses_tools_until_its_budget_is_used_up_and_no_death_of_a_node_fills_it_again() {
        Cluster::of(3, kinds).seeds(10, |cluster| async move {
            let session = || SessionRef::of(&cluster.any(), "ada");
            assert_eq!(session().ask("19 23".to_owned()).await, Ok("it is 42".to_owned()));
            assert_eq!(session().tokens_left().await, Ok(25));
            for node in ["a", "b", "c"] {
                cluster.kill(node);
                cluster.start(node).await;
                cluster.settled().await;
            }
            assert_eq!(cluster.eventually(|| session().tokens_left()).await, 25);
            assert_eq!(session().ask("1 2".to_owned()).await, Ok("it is 3".to_owned()));
            let over = session().ask("1 2".to_owned()).await;
            assert!(matches!(&over, Err(CallError::Actor(why)) if why.contains("used up")), "{over:?}");
        });
    }
}

//! On which node an actor is active.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::look::{Whom, ask};
use super::question::Question;
use crate::actor::key::{ActorId, Kind};
use crate::cluster::directory::{Entry, Whereabouts};
use crate::here::Here;

/// What a node knows of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WhereWord {
    Here,
    /// Another node has it, or knows.
    Elsewhere,
    /// It is active nowhere: this node decides that.
    Nowhere,
    Unknown,
}

/// What a cluster knows of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Active {
    /// On the node of this name.
    On(String),
    Nowhere,
    /// Nobody can say; in words, why not.
    Unknown(String),
}

impl WhereWord {
    pub(super) fn of(node: &Here, kind: &str, key: &str) -> Self {
        let id = Kind::known(kind).and_then(|kind| ActorId::new(kind, key).ok());
        let (Some(id), Some(directory)) = (id, node.directory()) else { return Self::Unknown };
        match directory.whereabouts(node.world().now(), &Entry::new(id)) {
            Whereabouts::Here { .. } => Self::Here,
            Whereabouts::There(_) => Self::Elsewhere,
            Whereabouts::NotActive => Self::Nowhere,
            Whereabouts::Unknown => Self::Unknown,
        }
    }
}

/// Asks all nodes.
pub(crate) async fn find(node: &Arc<Here>, kind: &str, key: &str) -> Active {
    let question = Question::Where { kind: kind.to_owned(), key: key.to_owned() };
    let heard = ask::<WhereWord>(node, &question, &Whom::All).await;
    let view = node.view();
    let here = heard.said.iter().find(|(_, word)| **word == WhereWord::Here);
    if let Some(member) = here.and_then(|(id, _)| view.member(*id)) {
        return Active::On(member.name.clone());
    }
    if let Some((silent, why)) = heard.silent.first() {
        return Active::Unknown(format!("node {silent} gave no answer: {why}"));
    }
    match heard.said.values().any(|word| *word == WhereWord::Nowhere) {
        true => Active::Nowhere,
        false => Active::Unknown("it is on its way, or its node has just left: ask again".to_owned()),
    }
}

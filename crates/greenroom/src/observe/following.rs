//! One who follows the turns of a cluster as they end: each node is asked again and again what it has seen since.

use std::collections::BTreeMap;
use std::sync::Arc;

use greenroom_protocols::node::NodeId;

use super::look::{Heard, Whom, ask};
use super::question::Question;
use super::tail::TailWord;
use super::turns::TurnWord;
use crate::here::Here;
use crate::here::tail::Meant;

/// One who follows.
pub(crate) struct Following {
    id: u64,
    round: u64,
    meant: Meant,
    whom: Whom,
    /// How many each node had seen when it was asked last.
    matched: BTreeMap<NodeId, u64>,
}

/// What has ended since the round before.
pub(crate) struct Round {
    /// The first of them, each with its node's name, in the order of their ends.
    pub(crate) turns: Vec<(String, TurnWord)>,
    /// How many more there were.
    pub(crate) missed: u64,
    /// Who has said something.
    pub(crate) nodes: Vec<String>,
    /// Who gave no answer, by its name, and why.
    pub(crate) silent: Vec<(String, String)>,
}

impl Following {
    /// One who follows the turns that are `meant` on these nodes, and has heard nothing yet. `id` is drawn by chance.
    pub(crate) fn new(id: u64, meant: Meant, whom: Whom) -> Self {
        Self { id, round: 0, meant, whom, matched: BTreeMap::new() }
    }

    /// Asks all nodes what has ended since they were asked last; `round_max` of it is told.
    pub(crate) async fn round(&mut self, node: &Arc<Here>, round_max: usize) -> Round {
        self.round += 1;
        let question = Question::Tail { id: self.id, round: self.round, meant: self.meant.clone() };
        let Heard { said, silent, .. } = ask::<TailWord>(node, &question, &self.whom).await;
        let view = node.view();
        let name = |id: &NodeId| view.member(*id).map_or_else(|| id.to_string(), |member| member.name.clone());
        let ended: u64 =
            said.iter().map(|(id, word)| since(self.matched.insert(*id, word.matched), word.matched)).sum();
        let nodes = said.keys().map(&name).collect();
        let mut turns: Vec<_> =
            said.into_iter().flat_map(|(id, word)| word.turns.into_iter().map(move |turn| (id, turn))).collect();
        turns.sort_by_key(|(_, turn)| turn.at());
        turns.truncate(round_max);
        let turns: Vec<_> = turns.into_iter().map(|(id, turn)| (name(&id), turn)).collect();
        Round { missed: ended.saturating_sub(turns.len() as u64), turns, nodes, silent }
    }
}

/// How many a node has seen since it said `before`; it has begun anew if it says less.
fn since(before: Option<u64>, matched: u64) -> u64 {
    match before {
        Some(before) if before <= matched => matched - before,
        _ => matched,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_has_begun_anew_is_counted_from_nothing() {
        assert_eq!([since(None, 3), since(Some(3), 10), since(Some(10), 2)], [3, 7, 2]);
    }
}

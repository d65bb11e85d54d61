//! Actors that are active, page by page: each shard is looked through some thousand activations a round.

use std::time::Duration;

use futures_util::future::{Either, join_all, select};
use greenroom_world::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::here::Here;
use crate::shard::listing::{Listed, Place, Roll, Wish};
use crate::shard::{Item, Shard, ShardPort};

/// What a node says of its actors.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ActorsWord {
    /// The first of them in their order: as many as are wanted, and one more.
    actors: Vec<Listed>,
    /// How many there are, those before and behind the page too.
    matched: u64,
    /// Shards that were not looked through in time.
    unseen: Vec<u64>,
}

impl ActorsWord {
    pub(super) async fn of(node: &Here, wish: &Wish) -> Self {
        let until = node.world().now() + PATIENCE;
        let looks = node.shards().iter().map(|port| look(node, port, wish.clone(), until));
        let mut word = Self::default();
        for (shard, found) in (0..).zip(join_all(looks).await) {
            match found {
                Some(Roll { listed, matched, .. }) => {
                    word.matched += matched;
                    word.actors.extend(listed);
                }
                None => word.unseen.push(shard),
            }
        }
        word.actors.sort_by(|one, other| one.place.cmp(&other.place));
        word.actors.truncate(wish.limit + 1);
        word
    }
}

/// Looks through one shard, unless it takes too long.
async fn look(node: &Here, port: &ShardPort, wish: Wish, until: Timestamp) -> Option<Roll> {
    let mut roll = Roll::new(wish);
    let mut next = Some(0);
    while let Some(first) = next {
        let (sender, answer) = oneshot::channel();
        let run = move |shard: &Shard| {
            let next = shard.list_some(first, &mut roll);
            // Nobody waits any more if it comes too late.
            let _ = sender.send((roll, next));
        };
        port.push(Item::Run(Box::new(run))).ok()?;
        match select(answer, node.world().sleep_until(until)).await {
            Either::Left((answer, _)) => (roll, next) = answer.ok()?,
            Either::Right(_) => return None,
        }
    }
    Some(roll)
}

/// The actors of several nodes in one order, `limit` of them, with where the next page begins.
pub(crate) fn told<'a>(limit: usize, said: impl IntoIterator<Item = (&'a str, &'a ActorsWord)>) -> Value {
    let mut actors = Vec::new();
    let (mut matched, mut unseen) = (0, Vec::new());
    for (node, word) in said {
        matched += word.matched;
        unseen.extend(word.unseen.iter().map(|shard| json!({ "node": node, "shard": shard })));
        actors.extend(word.actors.iter().map(|actor| (node, actor)));
    }
    actors.sort_by(|(_, one), (_, other)| one.place.cmp(&other.place));
    let more = actors.len() > limit;
    actors.truncate(limit);
    let next = actors.last().filter(|_| more).map(|(_, last)| last.place.written());
    let actors = actors.into_iter().map(|(node, actor)| {
        json!({
            "actor": actor.place.actor, "node": node, "shard": actor.shard, "state": actor.state, "mailbox": actor.mailbox,
            "age": actor.age, "idle": actor.idle, "turns": actor.turns,
        })
    });
    json!({ "actors": actors.collect::<Vec<_>>(), "next": next, "matched": matched, "unseen": unseen })
}

impl Place {
    /// As a client hands it back.
    fn written(&self) -> String {
        format!("{}.{}", self.rank, self.actor)
    }

    /// As it was written.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (rank, actor) = text.split_once('.')?;
        Some(Self { rank: rank.parse().ok()?, actor: actor.to_owned() })
    }
}

/// Time for a node to look through its shards.
const PATIENCE: Duration = Duration::from_millis(400);

#[cfg(test)]
mod tests {
    use super::*;

    fn word(actors: &[(u64, &str)]) -> ActorsWord {
        let listed = |(rank, actor): &(u64, &str)| Listed {
            place: Place { rank: *rank, actor: (*actor).to_owned() },
            ..Listed::default()
        };
        ActorsWord { actors: actors.iter().map(listed).collect(), matched: 9, unseen: Vec::new() }
    }

    #[test]
    fn actors_of_all_nodes_stand_in_one_order_and_the_page_ends_where_the_next_begins() {
        let (one, other) = (word(&[(7, "room/b"), (2, "room/d")]), word(&[(7, "room/a"), (3, "room/c")]));
        let said = || [("one", &one), ("other", &other)];
        let page = told(3, said());
        let names: Vec<_> = page["actors"].as_array().unwrap().iter().map(|actor| actor["actor"].clone()).collect();
        assert_eq!(names, ["room/a", "room/b", "room/c"]);
        assert_eq!((&page["next"], &page["matched"]), (&json!("3.room/c"), &json!(18)));
        assert_eq!(Place::read("3.room/c"), Some(Place { rank: 3, actor: "room/c".to_owned() }));
        assert_eq!(told(4, said())["next"], Value::Null, "that is all");
    }
}

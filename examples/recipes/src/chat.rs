//! A chat room with a history that survives, and listeners that hear of each line at once.

// anchor: recipe
use greenroom::Topic;
use greenroom::prelude::*;
use serde::{Deserialize, Serialize};

/// A line, and its number in the room.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Line {
    /// From 1, without gaps.
    pub number: u64,
    /// Who said it.
    pub user: String,
    /// What was said.
    pub text: String,
}

/// A room. It keeps its last 1,000 lines.
#[derive(Default, Serialize, Deserialize, Actor)]
pub struct Room {
    lines: Vec<Line>,
    said: u64,
}

#[actor(persistent, save = "turn")]
impl Room {
    /// Says something; tells its number. It is in the store when the caller hears so.
    pub async fn post(&mut self, cx: &Cx, user: String, text: String) -> u64 {
        self.said += 1;
        let line = Line { number: self.said, user, text };
        if self.lines.len() == LINES_MAX {
            self.lines.remove(0);
        }
        self.lines.push(line.clone());
        Topic::of(cx, format!("rooms/{}", cx.key())).send(&line);
        line.number
    }

    /// The lines behind number `after`, at most 100.
    pub async fn read(&self, after: u64) -> Vec<Line> {
        self.lines.iter().filter(|line| line.number > after).take(100).cloned().collect()
    }
}

const LINES_MAX: usize = 1000;
// end: recipe

#[cfg(test)]
mod tests {
    use greenroom_test::Cluster;

    use super::*;

    #[test]
    fn lines_are_there_when_the_node_has_died() {
        Cluster::of(3, |builder| builder.register::<Room>()).seeds(10, |cluster| async move {
            let room = || RoomRef::of(&cluster.any(), "lobby");
            for text in ["one", "two", "three"] {
                room().post("ada".to_owned(), text.to_owned()).await.expect("it is said");
            }
            for node in ["a", "b", "c"] {
                cluster.kill(node);
                cluster.start(node).await;
                cluster.settled().await;
            }
            let lines = cluster.eventually(|| room().read(1)).await;
            let texts: Vec<(u64, &str)> = lines.iter().map(|line| (line.number, line.text.as_str())).collect();
            assert_eq!(texts, [(2, "two"), (3, "three")]);
        });
    }
}

//! A document that several people edit at once.

// anchor: recipe
use std::collections::VecDeque;

use greenroom::Topic;
use greenroom::prelude::*;
use serde::{Deserialize, Serialize};

/// Takes `take` characters away at `at`, and puts a text there.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Edit {
    /// Drawn by the editor, another one for each edit: tells a repeat from a second edit.
    pub id: String,
    /// So many characters are before it.
    pub at: usize,
    /// So many characters go.
    pub take: usize,
    /// What comes in their place.
    pub put: String,
}

impl Edit {
    /// The same edit after another one that its editor had not seen; nothing if both change the same place.
    pub fn after(self, other: &Edit) -> Option<Self> {
        if other.at + other.take <= self.at {
            let at = (self.at - other.take).checked_add(other.put.chars().count())?;
            return Some(Self { at, ..self });
        }
        (self.at.checked_add(self.take)? <= other.at).then_some(self)
    }

    /// What becomes of `text`; nothing if it is too short for that.
    pub fn apply(&self, text: &str) -> Option<String> {
        let letters: Vec<char> = text.chars().collect();
        let (before, after) = (letters.get(..self.at)?, letters.get(self.at.checked_add(self.take)?..)?);
        Some(before.iter().copied().chain(self.put.chars()).chain(after.iter().copied()).collect())
    }
}

/// Why a document has not taken an edit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum NotTaken {
    /// Somebody else has changed the same place: see what is there now, and decide anew.
    Overlaps,
    /// It was made at a version of which the changes since are not known: read the document.
    UnknownVersion,
    /// It takes what is not there, or it or the text would be too long.
    DoesNotFit,
    /// Nobody knows whether it is stored: send the same edit again.
    NotSaved(String),
}

/// A document. Its version is the number of edits that it has taken.
#[derive(Default, Serialize, Deserialize, Actor)]
pub struct Document {
    text: String,
    version: u64,
    edits: VecDeque<Edit>,
}

#[actor(persistent)]
impl Document {
    /// Takes an edit that was made at version `seen`, behind those that came since; tells the version that it makes, and what
    /// it is there.
    pub async fn edit(&mut self, cx: &Cx, seen: u64, edit: Edit) -> Result<(u64, Edit), NotTaken> {
        let unseen = self.since(seen).await.ok_or(NotTaken::UnknownVersion)?;
        let taken = match unseen.iter().find(|(_, other)| other.id == edit.id) {
            Some(repeated) => repeated.clone(),
            None => {
                let edit = unseen.iter().try_fold(edit, |edit, (_, other)| edit.after(other));
                let edit = edit.ok_or(NotTaken::Overlaps)?;
                self.take(&edit).ok_or(NotTaken::DoesNotFit)?;
                cx.save(self).await.map_err(|error| NotTaken::NotSaved(error.to_string()))?;
                (self.version, edit)
            }
        };
        Topic::of(cx, format!("documents/{}", cx.key())).send(&taken);
        Ok(taken)
    }

    /// Its version and its text.
    pub async fn read(&self) -> (u64, String) {
        (self.version, self.text.clone())
    }

    /// The edits behind version `seen` with the versions that they made; nothing if they are not known any more.
    pub async fn since(&self, seen: u64) -> Option<Vec<(u64, Edit)>> {
        let known_from = self.version - self.edits.len() as u64;
        (known_from..=self.version).contains(&seen).then(|| {
            let behind = (known_from + 1..).zip(self.edits.iter().cloned());
            behind.skip_while(|(version, _)| *version <= seen).collect()
        })
    }

    fn take(&mut self, edit: &Edit) -> Option<()> {
        if edit.id.len() + edit.put.len() > EDIT_LEN_MAX {
            return None;
        }
        self.text = edit.apply(&self.text).filter(|text| text.len() <= TEXT_LEN_MAX)?;
        self.version += 1;
        self.edits.push_back(edit.clone());
        if self.edits.len() > EDITS_MAX {
            self.edits.pop_front();
        }
        Some(())
    }
}

const EDITS_MAX: usize = 500;
const EDIT_LEN_MAX: usize = 4096;
const TEXT_LEN_MAX: usize = 100_000;
// end: recipe

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use greenroom::Delivery;
    use greenroom_test::Cluster;

    use super::*;

    fn edit(id: &str, at: usize, take: usize, put: &str) -> Edit {
        Edit { id: id.to_owned(), at, take, put: put.to_owned() }
    }

    /// What an editor shows: the text that it knows to be stored.
    struct Editor {
        cluster: Cluster,
        seen: u64,
        text: String,
    }

    impl Editor {
        fn of(cluster: &Cluster) -> Self {
            Self { cluster: cluster.clone(), seen: 0, text: String::new() }
        }

        /// By a node that is up, as soon as there is one.
        async fn document(&self) -> DocumentRef {
            while !self.cluster.names().iter().any(|node| self.cluster.is_up(node)) {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            DocumentRef::of(&self.cluster.any(), "plan")
        }

        async fn catch_up(&mut self) {
            let since = || async { self.document().await.since(self.seen).await };
            let unseen = self.cluster.eventually(since).await.expect("it is known");
            for (version, edit) in unseen {
                assert_eq!(version, self.seen + 1, "versions have no gaps");
                self.text = edit.apply(&self.text).expect("it fits");
                self.seen = version;
            }
        }

        /// Makes an edit at a place that the seed draws, until it is taken; tells by how much the text grows.
        async fn makes(&mut self, id: &str) -> usize {
            let mut random = self.cluster.sim().random();
            loop {
                let at = random.index(self.text.chars().count() + 1);
                let take = random.index(2).min(self.text.chars().count() - at);
                let edit = edit(id, at, take, "wörd ");
                let taken = loop {
                    match self.document().await.edit(self.seen, edit.clone()).by(Duration::from_secs(2)).await {
                        Ok(_) => break true,
                        Err(CallError::Actor(NotTaken::Overlaps)) => break false,
                        Err(CallError::Actor(why @ (NotTaken::UnknownVersion | NotTaken::DoesNotFit))) => {
                            panic!("{why:?}")
                        }
                        Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
                    }
                };
                self.catch_up().await;
                if taken {
                    return 5 - take;
                }
            }
        }
    }

    #[test]
    fn editors_come_to_one_text_with_each_edit_once_whatever_dies() {
        Cluster::of(3, |builder| builder.register::<Document>()).seeds(20, |cluster| async move {
            let editing = |name: &'static str| {
                let mut editor = Editor::of(&cluster);
                async move {
                    let mut grown = 0;
                    for number in 0..12 {
                        grown += editor.makes(&format!("{name}-{number}")).await;
                        tokio::time::sleep(Duration::from_millis(500)).await;
                    }
                    (editor, grown)
                }
            };
            cluster.supervise();
            let faults = cluster.nemesis().store(cluster.states()).run(Duration::from_secs(10));
            let (ada, bob, eve, _) = tokio::join!(editing("ada"), editing("bob"), editing("eve"), faults);
            let read = || async { ada.0.document().await.read().await };
            let (version, text) = cluster.eventually(read).await;
            assert_eq!(version, 36);
            assert_eq!(text.chars().count(), ada.1 + bob.1 + eve.1);
            for (mut editor, _) in [ada, bob, eve] {
                editor.catch_up().await;
                assert_eq!((editor.seen, &editor.text), (version, &text));
            }
        });
    }

    #[test]
    fn an_edit_goes_behind_what_its_editor_had_not_seen_and_who_looks_hears_it() {
        Cluster::of(2, |builder| builder.register::<Document>()).seeds(10, |cluster| async move {
            let node = cluster.node("a");
            let document = DocumentRef::of(&node, "plan");
            let mut watch = Topic::<(u64, Edit)>::of(&node, "documents/plan").watch().await.expect("it is watched");
            document.edit(0, edit("1", 0, 0, "one three")).await.expect("it is taken");
            let two = edit("2", 4, 0, "two ");
            assert_eq!(document.edit(1, two.clone()).await, Ok((2, two.clone())));
            // At version 1 the one says `zero` in front, and the other four for `three`, which has gone on by nine since.
            document.edit(1, edit("3", 0, 0, "zero ")).await.expect("it is taken");
            let four = edit("4", 13, 5, "four");
            assert_eq!(document.edit(1, edit("4", 4, 5, "four")).await, Ok((4, four)));
            assert_eq!(document.edit(1, two).await, Ok((2, edit("2", 4, 0, "two "))), "it is not made again");
            assert_eq!(document.read().await, Ok((4, "zero one two four".to_owned())));
            let five = document.edit(3, edit("5", 15, 0, "five")).await;
            assert_eq!(five, Err(CallError::Actor(NotTaken::Overlaps)), "`three` is no more");
            let far = document.edit(4, edit("6", usize::MAX, usize::MAX, "six")).await;
            assert_eq!(far, Err(CallError::Actor(NotTaken::DoesNotFit)));
            let long = document.edit(4, edit("6", 0, 0, &"x".repeat(EDIT_LEN_MAX))).await;
            assert_eq!(long, Err(CallError::Actor(NotTaken::DoesNotFit)));
            assert_eq!(document.edit(5, edit("7", 0, 0, "")).await, Err(CallError::Actor(NotTaken::UnknownVersion)));
            for heard in [1, 2, 3, 4, 2] {
                let event = watch.next().await;
                assert!(matches!(&event, Some(Ok(Delivery::Event((version, _)))) if *version == heard), "{event:?}");
            }
        });
    }
}

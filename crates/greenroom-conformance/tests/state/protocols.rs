//! One actor under every protocol, chosen by the node's configuration, and protocols of the program's own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::StreamExt;
use greenroom::prelude::*;
use greenroom::versioned::protocol::{
    Access, Action, Answer, Applied, Change, ConsistencyProtocol, Etag, Event, Now, Place, StateValue, Timestamp,
};
use greenroom::versioned::{Rejected, UpdateError, Version};
use greenroom::{CallError, KindConfig, Node};
use greenroom_store::memory::MemoryStore;
use serde::{Deserialize, Serialize};

use super::faulty::Faulty;
use super::node;

/// Points by player; nobody may have more than a hundred.
#[derive(Default, Clone, Serialize, Deserialize)]
struct Board {
    points: BTreeMap<String, u64>,
}

impl VersionedStateWithOutput for Board {
    type Update = (String, u64);
    /// What the player has then.
    type Output = u64;

    fn apply(&mut self, (player, points): &(String, u64)) -> Result<u64, Rejected> {
        let has = self.points.entry(player.clone()).or_default();
        *has += points;
        if *has > 100 { Err(Rejected::new(format!("{player} would have {has}"))) } else { Ok(*has) }
    }
}

#[derive(Default, Actor)]
struct Leaderboard {
    board: Versioned<Board>,
}

#[actor]
impl Leaderboard {
    #[update]
    pub async fn score(&self, player: String, points: u64) -> Result<(u64, Version), UpdateError> {
        let has = self.board.confirm((player, points)).await?;
        Ok((has, self.board.confirmed().1))
    }

    #[update]
    pub async fn clear(&self) -> Result<Version, StateError> {
        self.board.clear();
        self.board.confirm_updates().await?;
        Ok(self.board.confirmed().1)
    }

    pub async fn points(&self, player: String) -> u64 {
        self.board.tentative().points.get(&player).copied().unwrap_or(0)
    }

    pub async fn points_since(&self, player: String, seen: Version) -> Result<u64, StateError> {
        let (board, _) = self.board.read_at_least(seen).await?;
        Ok(board.points.get(&player).copied().unwrap_or(0))
    }

    pub async fn watch(&self, player: String) -> impl Stream<Item = u64> + use<> {
        self.board.versions().map(move |(board, _)| board.points.get(&player).copied().unwrap_or(0))
    }
}

/// A node whose leaderboards have this protocol.
async fn playing(store: Arc<MemoryStore>, protocol: &str) -> Node {
    node(Faulty::new(), |builder| {
        builder.register::<Leaderboard>().state_journal("", store).protocol("mine", Mine::new).configure(|config| {
            let mut kind = KindConfig::default();
            kind.protocol = Some(protocol.to_owned());
            config.kinds.insert("leaderboard".to_owned(), kind);
        })
    })
    .await
}

#[tokio::test]
async fn every_protocol_confirms_rejects_clears_and_tells_versions() {
    for protocol in ["bcas", "vlb", "log", "mine"] {
        let node = playing(Arc::new(MemoryStore::new()), protocol).await;
        let board = LeaderboardRef::of(&node, "a");
        let (has, first) = board.score("ada", 60).await.unwrap();
        assert_eq!(has, 60, "{protocol}");
        let error = board.score("ada", 60).await.unwrap_err();
        assert!(error.to_string().contains("ada would have 120"), "{protocol}: {error}");
        let (has, later) = board.score("ada", 40).await.unwrap();
        assert_eq!((has, later > first), (100, true), "{protocol}");
        assert_eq!(board.points_since("ada", later).await, Ok(100), "{protocol}");
        let cleared = board.clear().await.unwrap();
        assert!(cleared > later, "{protocol}");
        assert_eq!(board.points("ada").await, Ok(0), "{protocol}");
        assert_eq!(board.score("bob", 1).await.map(|(has, _)| has), Ok(1), "{protocol}");
    }
}

#[tokio::test]
async fn subscribers_see_the_last_version_and_none_twice() {
    for protocol in ["bcas", "vlb", "log"] {
        let node = playing(Arc::new(MemoryStore::new()), protocol).await;
        let board = LeaderboardRef::of(&node, "a");
        let mut seen = board.watch("ada").await.unwrap();
        assert_eq!(seen.next().await.unwrap(), Ok(0), "{protocol}: what is there comes first");
        for _ in 0..20 {
            board.score("ada", 5).await.unwrap();
        }
        let mut last = 0;
        while last < 100 {
            let next = seen.next().await.unwrap().unwrap();
            assert!(next > last, "{protocol}: {next} after {last}");
            last = next;
        }
    }
}

#[tokio::test]
async fn a_volatile_state_is_never_stored() {
    let store = Faulty::new();
    let node = node(store.clone(), |builder| {
        builder.register::<Leaderboard>().configure(|config| {
            config.kinds.entry("leaderboard".to_owned()).or_default().protocol = Some("vlb".to_owned());
        })
    })
    .await;
    let before = (store.reads.load(Ordering::Relaxed), store.writes.load(Ordering::Relaxed));
    store.down(true);
    let board = LeaderboardRef::of(&node, "a");
    assert_eq!(board.score("ada", 7).await.map(|(has, _)| has), Ok(7));
    assert_eq!(board.points("ada").await, Ok(7));
    assert_eq!((store.reads.load(Ordering::Relaxed), store.writes.load(Ordering::Relaxed)), before);
}

#[tokio::test]
async fn a_protocol_that_cannot_be_is_refused_with_what_helps() {
    let refused = |protocol: &'static str| async move {
        let builder = Node::builder().register::<Leaderboard>().configure(|config| {
            config.kinds.entry("leaderboard".to_owned()).or_default().protocol = Some(protocol.to_owned());
        });
        let builder = builder.state_store("", Faulty::new());
        builder.start().await.unwrap_err().to_string()
    };
    assert!(refused("bcsa").await.contains("did you mean \"bcas\"?"));
    assert!(refused("log").await.contains("give it one that is a journal"));
}

#[tokio::test]
async fn a_bookmark_of_what_is_not_there_yet_is_refused() {
    let node = playing(Arc::new(MemoryStore::new()), "log").await;
    let board = LeaderboardRef::of(&node, "a");
    let (_, seen) = board.score("ada", 1).await.unwrap();
    let carried: Version = serde_json::from_str(&serde_json::to_string(&seen).unwrap()).unwrap();
    assert_eq!(board.points_since("ada", carried).await, Ok(1));
    let ahead = Version { number: seen.number + 1, ..seen };
    let error = board.points_since("ada", ahead).by(Duration::from_secs(2)).await.unwrap_err();
    assert!(matches!(&error, CallError::Actor(StateError::Unconfirmed { .. })), "{error}");
}

/// A protocol of the program's own: it writes each update alone, and reads nothing but at the beginning.
struct Mine {
    place: Place,
    confirmed: (StateValue, Version),
    etag: Option<Etag>,
    waiting: Vec<(u64, Change<greenroom::versioned::protocol::UpdateValue>)>,
    asking: Vec<greenroom::versioned::protocol::Waiter>,
    writes: Option<(StateValue, Version, Applied<greenroom::versioned::protocol::OutputValue, Rejected>)>,
    read: bool,
}

impl Mine {
    fn new(place: Place) -> Self {
        let (confirmed, waiting, asking) = Default::default();
        Self { place, confirmed, etag: None, waiting, asking, writes: None, read: false }
    }

    fn write_next(&mut self, out: &mut Vec<Action>) {
        let Some((_, change)) = self.waiting.first() else {
            out.extend(self.asking.drain(..).map(Action::Done));
            return;
        };
        let mut record = greenroom_protocols::bcas::Record {
            version: self.confirmed.1,
            state: self.confirmed.0.clone(),
            ..Default::default()
        };
        let outcome = record.change(change);
        let bytes = self.place.types.encode_state(&record.state).unwrap();
        out.push(Action::Access(Access::Write { expect: self.etag.clone(), record: bytes, appends: Vec::new() }));
        self.writes = Some((record.state, record.version, outcome));
    }
}

impl ConsistencyProtocol for Mine {
    fn handle(&mut self, _: Now, event: Event, out: &mut Vec<Action>) {
        match event {
            Event::Enqueue(sequence, change) => self.waiting.push((sequence, change)),
            Event::Confirm(waiter) | Event::Refresh(waiter) => self.asking.push(waiter),
            Event::Answered(Answer::Record(None)) => {}
            Event::Answered(Answer::Written(greenroom::versioned::protocol::Written::Applied(etag))) => {
                let (state, version, outcome) = self.writes.take().unwrap();
                self.confirmed = (state, version);
                self.etag = Some(etag);
                out.push(Action::Outcome(self.waiting.remove(0).0, outcome));
            }
            other => panic!("the store of this test does all at once: {other:?}"),
        }
        if !std::mem::replace(&mut self.read, true) {
            out.push(Action::Access(Access::Read));
        } else if self.writes.is_none() {
            self.write_next(out);
        }
    }

    fn confirmed(&self) -> (StateValue, Version) {
        self.confirmed.clone()
    }

    fn tentative(&self) -> StateValue {
        self.confirmed.0.clone()
    }

    fn pending(&self) -> usize {
        self.waiting.len()
    }

    fn deadline(&self) -> Option<Timestamp> {
        None
    }
}

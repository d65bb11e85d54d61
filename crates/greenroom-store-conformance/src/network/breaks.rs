//! Networks that break: connections cut, the engine out of reach, and both under load.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use greenroom_store::{Applied, Commit, Journal, Store, StoreError};

use super::{LATE_MAX, PATIENCE, recover, settle};
use crate::dice::Dice;
use crate::elsewhere::side_by_side;
use crate::journal::texts;
use crate::plain::{create, number, parse, read, scan};
use crate::{BY, Relay};

/// After its connections were broken the provider makes new ones by itself.
pub async fn a_broken_connection_is_replaced(relay: &Relay, through: &dyn Store) {
    let mut version = create(through, "broken/a", "0").await;
    for n in 1..=3 {
        relay.cut();
        recover(relay, through).await;
        version = through.replace("broken/a", n.to_string().into(), &version, BY).await.expect("the network is whole");
    }
    assert_eq!(read(through, "broken/a").await, Some(("3".into(), version)));
}

/// While the engine cannot be reached, calls fail in time, say which store it is, and change nothing; when it is back,
/// the store works without being opened again.
pub async fn an_engine_out_of_reach_is_named_and_used_again_when_it_is_back(relay: &Relay, through: &dyn Store) {
    create(through, "reach/a", "x").await;
    relay.refuse();
    // The first calls may meet the connections that have just broken.
    for _ in 0..3 {
        drop(through.read("reach/a", PATIENCE).await);
    }
    let begun = Instant::now();
    let reading = through.read("reach/a", PATIENCE).await.expect_err("nobody can be reached");
    let writing = through.create("reach/b", "x".into(), PATIENCE).await.expect_err("nobody can be reached");
    assert!(begun.elapsed() < 2 * PATIENCE + LATE_MAX, "{:?}", begun.elapsed());
    for error in [reading, writing] {
        let honest = matches!(error, StoreError::Unavailable { .. } | StoreError::NotApplied { .. });
        assert!(honest || error.applied() == Applied::Maybe, "{error}");
    }
    recover(relay, through).await;
    assert!(read(through, "reach/a").await.is_some());
}

/// Counters go on while connections are cut again and again, each with one writer: what was acknowledged is there, what
/// was said not to be applied is not, and beyond that at most what was said to be unknown.
pub async fn increments_survive_cuts_without_loss_or_repetition(
    relay: &Relay,
    through: Arc<dyn Store>,
    direct: &dyn Store,
) {
    let writers = (0..WRITERS).map(|n| {
        let store = through.clone();
        move || async move {
            let (key, begun, mut told) = (format!("cuts/{n}"), Instant::now(), Told::default());
            // What is there for sure: nothing is unknown since this was acknowledged, as its version would refuse it.
            let mut certain = Some(0);
            while begun.elapsed() < SPAN {
                let Ok(found) = store.read(&key, PATIENCE).await else {
                    tokio::time::sleep(PAUSE).await;
                    continue;
                };
                let value = found.as_ref().map_or(0, |found| parse(&found.value));
                assert!(certain.is_none_or(|certain| certain == value), "{key} is {value}, not {certain:?}; {told:?}");
                let next = value + 1;
                let written = match found {
                    None => store.create(&key, next.to_string().into(), PATIENCE).await,
                    Some(found) => store.replace(&key, next.to_string().into(), &found.version, PATIENCE).await,
                };
                match &written {
                    Ok(_) => certain = Some(next),
                    Err(error) if error.applied() == Applied::Maybe => certain = None,
                    Err(error) => {
                        assert!(certain.is_none() || !error.is_conflict(), "{key}: nobody else writes: {error}")
                    }
                }
                told.hear(next, written.map(drop)).await;
            }
            told
        }
    });
    let (told, ()) = futures_util::future::join(side_by_side(writers), cut_often(relay)).await;
    recover(relay, &*through).await;
    settle(direct).await;
    for (n, told) in told.into_iter().enumerate() {
        let (found, applied) = (number(direct, &format!("cuts/{n}")).await, told.applied.len() as u64);
        let allowed = applied..=applied + told.unknown.len() as u64;
        assert!(
            applied > 0 && allowed.contains(&found),
            "cuts/{n} is {found}, allowed is {allowed:?}; {:?}",
            told.last
        );
    }
}

/// Commits behind a fence go on while connections are cut: each acknowledged one is there once and whole, and of the
/// others only those said to be unknown may be.
pub async fn commits_survive_cuts_without_loss_or_repetition(
    relay: &Relay,
    through: Arc<dyn Journal>,
    direct: &dyn Journal,
) {
    let fence = create(direct, "cut/fence", "owner").await;
    let committers = (0..WRITERS).map(|n| {
        let (journal, fence) = (through.clone(), fence.clone());
        move || async move {
            let (begun, mut told) = (Instant::now(), Told::default());
            for i in 0.. {
                if begun.elapsed() > SPAN {
                    break;
                }
                let commit = Commit::new()
                    .hold("cut/fence", &fence)
                    .create(format!("cut/{n}/{i}"), "x".into())
                    .append(format!("cut/{n}"), i.to_string().into());
                told.hear(i, journal.commit(commit, PATIENCE).await.map(drop)).await;
            }
            told
        }
    });
    let (told, ()) = futures_util::future::join(side_by_side(committers), cut_often(relay)).await;
    recover(relay, &*through).await;
    settle(direct).await;
    for (n, told) in told.into_iter().enumerate() {
        let log = texts(direct, &format!("cut/{n}"), 1).await;
        let found: BTreeSet<u64> = log.iter().map(|i| parse(i.as_bytes())).collect();
        assert_eq!(found.len(), log.len(), "of log cut/{n}: a commit is there twice");
        let lost: Vec<_> = told.applied.difference(&found).collect();
        assert!(!told.applied.is_empty() && lost.is_empty(), "cut/{n}: lost are {lost:?}; {:?}", told.last);
        let denied = found.iter().find(|i| !told.applied.contains(i) && !told.unknown.contains(i));
        assert_eq!(denied, None, "cut/{n}: it was said not to be applied");
        let mut expected: Vec<_> = log.iter().map(|i| format!("cut/{n}/{i}")).collect();
        expected.sort();
        assert_eq!(scan(direct, &format!("cut/{n}/"), 1000).await, expected, "commits are there by half");
    }
}

/// What one writer was told of its writes.
#[derive(Debug, Default)]
struct Told {
    applied: BTreeSet<u64>,
    unknown: BTreeSet<u64>,
    last: Option<StoreError>,
}

impl Told {
    /// Waits a little after an error, as a caller would.
    async fn hear(&mut self, n: u64, written: Result<(), StoreError>) {
        match written {
            Ok(()) => drop(self.applied.insert(n)),
            Err(error) => {
                if error.applied() == Applied::Maybe {
                    self.unknown.insert(n);
                }
                self.last = Some(error);
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Cuts, refuses and holds for a while, with times of health in between.
async fn cut_often(relay: &Relay) {
    let (begun, mut dice) = (Instant::now(), Dice::new(7));
    while begun.elapsed() < SPAN {
        tokio::time::sleep(Duration::from_millis(40 + dice.below(80))).await;
        match dice.below(4) {
            0 => relay.refuse(),
            1 => relay.hold_answers(),
            2 => relay.hold_requests(),
            _ => relay.cut(),
        }
        tokio::time::sleep(Duration::from_millis(dice.below(60))).await;
        if dice.below(2) == 0 {
            relay.cut();
        }
        relay.heal();
    }
}

const WRITERS: usize = 6;

/// After an error.
const PAUSE: Duration = Duration::from_millis(5);

/// How long writers and cuts go on.
const SPAN: Duration = Duration::from_secs(3);

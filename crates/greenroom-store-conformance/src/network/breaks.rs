//! Networks that break: connections cut, the engine out of reach, and both under load.

use std::sync::Arc;
use std::time::{Duration, Instant};

use greenroom_store::{Applied, Commit, Journal, Store, StoreError};

use super::{LATE_MAX, PATIENCE, recover, settle};
use crate::dice::Dice;
use crate::elsewhere::side_by_side;
use crate::journal::texts;
use crate::plain::{create, number, parse, read};
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

/// Counters go on while connections are cut again and again: what was acknowledged is there, and beyond it at most what
/// was said to be unknown.
pub async fn increments_survive_cuts_without_loss_or_repetition(
    relay: &Relay,
    through: Arc<dyn Store>,
    direct: &dyn Store,
) {
    let writers = (0..WRITERS).map(|n| {
        let store = through.clone();
        move || async move {
            let (key, begun, mut told) = (format!("cuts/{n}"), Instant::now(), Told::default());
            while begun.elapsed() < SPAN {
                let Ok(found) = store.read(&key, PATIENCE).await else { continue };
                let written = match found {
                    None => store.create(&key, "1".into(), PATIENCE).await,
                    Some(found) => {
                        let next = (parse(&found.value) + 1).to_string();
                        store.replace(&key, next.into(), &found.version, PATIENCE).await
                    }
                };
                told.hear(written.map(drop));
            }
            told
        }
    });
    let (told, ()) = futures_util::future::join(side_by_side(writers), cut_often(relay)).await;
    recover(relay, &*through).await;
    settle(direct).await;
    for (n, told) in told.into_iter().enumerate() {
        told.check(&format!("cuts/{n}"), number(direct, &format!("cuts/{n}")).await);
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
                told.hear(journal.commit(commit, PATIENCE).await.map(drop));
            }
            told
        }
    });
    let (told, ()) = futures_util::future::join(side_by_side(committers), cut_often(relay)).await;
    recover(relay, &*through).await;
    settle(direct).await;
    for (n, told) in told.into_iter().enumerate() {
        let log = texts(direct, &format!("cut/{n}"), 1).await;
        told.check(&format!("log cut/{n}"), log.len() as u64);
        let mut expected: Vec<_> = log.iter().map(|i| format!("cut/{n}/{i}")).collect();
        expected.sort();
        let keys = crate::plain::scan(direct, &format!("cut/{n}/"), 1000).await;
        assert_eq!(keys, expected, "commits are there by half, or twice");
    }
}

/// What one writer was told.
#[derive(Default)]
struct Told {
    applied: u64,
    unknown: u64,
    last: Option<StoreError>,
}

impl Told {
    fn hear(&mut self, written: Result<(), StoreError>) {
        match written {
            Ok(()) => self.applied += 1,
            Err(error) => {
                self.unknown += u64::from(error.applied() == Applied::Maybe);
                self.last = Some(error);
            }
        }
    }

    fn check(&self, what: &str, found: u64) {
        let Self { applied, unknown, last } = self;
        assert!(*applied > 0, "{what}: nothing was ever applied; {last:?}");
        let allowed = *applied..=applied + unknown;
        assert!(allowed.contains(&found), "{what}: {found} happened, {applied} were told, {unknown} unknown; {last:?}");
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

/// How long writers and cuts go on.
const SPAN: Duration = Duration::from_secs(3);

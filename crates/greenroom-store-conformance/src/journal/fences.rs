//! Fences: what a deposed owner can still do, which is nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;
use greenroom_store::{Commit, Journal};

use super::texts;
use crate::BY;
use crate::elsewhere::side_by_side;
use crate::plain::{create, number};

/// Many commits of one owner may be on their way at once: holding the fence is no write, so all of them are applied.
pub async fn commits_that_hold_one_fence_do_not_refuse_each_other(openings: &[Arc<dyn Journal>]) {
    let fence = create(&*openings[0], "shared/fence", "owner").await;
    let committers = openings.iter().cycle().take(4).cloned().enumerate().map(|(n, journal)| {
        let fence = fence.clone();
        move || async move {
            let commits = (0..16).map(|i| {
                let commit = Commit::new().hold("shared/fence", &fence).put(format!("shared/{n}/{i}"), "x".into());
                journal.commit(commit.append("shared/log", "x".into()), BY)
            });
            for committed in join_all(commits).await {
                committed.expect("the fence holds");
            }
        }
    });
    side_by_side(committers).await;
    assert_eq!(texts(&*openings[0], "shared/log", 1).await.len(), 64);
}

/// Owners follow each other while each has many commits on the way: once a successor has taken the fence, nothing of an
/// earlier one is applied any more, whatever it still tries.
pub async fn a_deposed_owner_commits_nothing_more(openings: &[Arc<dyn Journal>]) {
    let first = &*openings[0];
    let mut fence = create(first, "fence/a", "0").await;
    let mut owners = Vec::new();
    for epoch in 1..=6_usize {
        fence = first.replace("fence/a", epoch.to_string().into(), &fence, BY).await.expect("nobody else takes it");
        let before = first.end("fence/log", BY).await.expect("an end");
        let (journal, held) = (openings[epoch % openings.len()].clone(), fence.clone());
        let deposed = Arc::new(AtomicBool::new(false));
        let told = deposed.clone();
        let owner = move || async move {
            let mut committed = 0_u64;
            loop {
                // Asked before the commits begin: if the fence was taken by then, none of them may be applied.
                let late = told.load(Ordering::SeqCst);
                let commits = (0..4).map(|_| {
                    let commit = Commit::new().hold("fence/a", &held).put("fence/state", epoch.to_string().into());
                    journal.commit(commit.append("fence/log", epoch.to_string().into()), BY)
                });
                let results = join_all(commits).await;
                committed += results.iter().filter(|result| result.is_ok()).count() as u64;
                assert!(!late || results.iter().all(Result::is_err), "a deposed owner has committed");
                if late {
                    return committed;
                }
                for error in results.into_iter().filter_map(Result::err) {
                    assert!(error.is_conflict(), "{error}");
                }
            }
        };
        let running = tokio::spawn(async move { side_by_side([owner]).await[0] });
        // However slow the engine is, it is in the midst of its commits when it is deposed.
        while first.end("fence/log", BY).await.expect("an end") < before + 3 {
            tokio::task::yield_now().await;
        }
        owners.push((running, deposed.clone()));
        if let Some((_, deposed)) = owners.iter().rev().nth(1) {
            deposed.store(true, Ordering::SeqCst);
        }
    }
    first.replace("fence/a", "nobody".into(), &fence, BY).await.expect("nobody else takes it");
    let mut committed = Vec::new();
    for (running, deposed) in owners {
        deposed.store(true, Ordering::SeqCst);
        committed.push(running.await.expect("an owner ends"));
    }
    let log = texts(first, "fence/log", 1).await;
    assert!(log.is_sorted(), "an earlier owner's entry comes after a later one's: {log:?}");
    for (epoch, committed) in (1..).zip(&committed) {
        assert_eq!(log.iter().filter(|of| **of == epoch.to_string()).count() as u64, *committed, "of owner {epoch}");
    }
    assert_eq!(number(first, "fence/state").await, committed.len() as u64);
}

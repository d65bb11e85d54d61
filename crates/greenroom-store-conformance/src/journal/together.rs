//! Many committers at once, on threads and openings of their own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use greenroom_store::{Commit, Journal};

use super::{commit, texts};
use crate::BY;
use crate::dice::Dice;
use crate::elsewhere::side_by_side;
use crate::plain::{number, parse, read};

/// Money moves between accounts by commits conditional on both; whoever reads all accounts, and finds by a commit that
/// holds them all that nothing has changed meanwhile, sees the same sum as at first.
pub async fn transfers_between_keys_conserve_their_sum(openings: &[Arc<dyn Journal>]) {
    let open = (0..ACCOUNTS).fold(Commit::new(), |all, n| all.create(account(n), BALANCE.to_string().into()));
    commit(&*openings[0], open).await;
    let (done, audited) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let movers = openings.iter().cycle().take(MOVERS).cloned().enumerate().map(|(n, journal)| {
        move || async move {
            let mut dice = Dice::new(20 + n as u64);
            let mut moved = 0;
            while moved < TRANSFERS {
                moved += u64::from(transfer(&*journal, &mut dice).await);
            }
        }
    });
    let auditor = {
        let (journal, done, audited) = (openings[openings.len() - 1].clone(), done.clone(), audited.clone());
        move || async move {
            while !done.load(Ordering::Relaxed) {
                audited.fetch_add(u64::from(audit(&*journal).await), Ordering::Relaxed);
            }
        }
    };
    let moving = async {
        side_by_side(movers).await;
        done.store(true, Ordering::Relaxed);
    };
    futures_util::future::join(moving, side_by_side([auditor])).await;
    assert!(audit(&*openings[0]).await, "nothing changes any more");
    for n in 0..ACCOUNTS {
        assert!(number(&*openings[0], &account(n)).await <= ACCOUNTS * BALANCE, "{} is overdrawn", account(n));
    }
}

/// Moves some money; false if somebody else was faster.
async fn transfer(journal: &dyn Journal, dice: &mut Dice) -> bool {
    let from = dice.below(ACCOUNTS);
    let to = (from + 1 + dice.below(ACCOUNTS - 1)) % ACCOUNTS;
    let (Some((taken, from_version)), Some((given, to_version))) =
        (read(journal, &account(from)).await, read(journal, &account(to)).await)
    else {
        panic!("an account is gone")
    };
    dice.dawdle().await;
    let amount = dice.below(10).min(parse(&taken));
    let (less, more) = (parse(&taken) - amount, parse(&given) + amount);
    let commit = Commit::new()
        .replace(account(from), less.to_string().into(), &from_version)
        .replace(account(to), more.to_string().into(), &to_version)
        .append("bank/log", format!("{from} {to} {amount}").into());
    match journal.commit(commit, BY).await {
        Ok(_) => true,
        Err(error) if error.is_conflict() => false,
        Err(error) => panic!("{error}"),
    }
}

/// Sums up; false if the accounts have changed meanwhile, so that what was read is no snapshot.
async fn audit(journal: &dyn Journal) -> bool {
    let (mut sum, mut all) = (0, Commit::new());
    for n in 0..ACCOUNTS {
        let (value, version) = read(journal, &account(n)).await.expect("the account is there");
        sum += parse(&value);
        all = all.hold(account(n), &version);
    }
    match journal.commit(all, BY).await {
        Ok(_) => assert_eq!(sum, ACCOUNTS * BALANCE, "money was made or lost"),
        Err(error) => assert!(error.is_conflict(), "{error}"),
    }
    sum == ACCOUNTS * BALANCE
}

/// Two keys that are always written together are never read with the second older than the first.
pub async fn readers_see_all_of_a_commit_or_nothing(openings: &[Arc<dyn Journal>]) {
    let (done, rounds) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    commit(&*openings[0], Commit::new().put("pair/a", "0".into()).put("pair/b", "0".into())).await;
    let readers = openings.iter().cycle().take(4).cloned().enumerate().map(|(n, journal)| {
        let (done, rounds) = (done.clone(), rounds.clone());
        let [first, second] = if n % 2 == 0 { ["pair/a", "pair/b"] } else { ["pair/b", "pair/a"] };
        move || async move {
            while !done.load(Ordering::Relaxed) {
                let (earlier, later) = (number(&*journal, first).await, number(&*journal, second).await);
                assert!(earlier <= later, "{first} was at {earlier}, and then {second} still at {later}");
                let end = journal.end("pair/log", BY).await.expect("an end");
                assert!(end > later, "pair is at {later}, its log ends at {end}");
                rounds.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    let writing = async {
        let mut n = 0;
        while n < 50 || rounds.load(Ordering::Relaxed) < ROUNDS {
            n += 1;
            let both = Commit::new().put("pair/a", n.to_string().into()).put("pair/b", n.to_string().into());
            commit(&*openings[n % openings.len()], both.append("pair/log", n.to_string().into())).await;
            // Lets the provider's tasks and the readers' answers have this thread.
            tokio::task::yield_now().await;
        }
        done.store(true, Ordering::Relaxed);
    };
    futures_util::future::join(side_by_side(readers), writing).await;
}

/// Committers on one log: each entry is there once, at the position that its commit was told, in the committer's order,
/// and there is no gap, also not from commits that were refused.
pub async fn concurrent_appends_are_gapless_and_each_is_there_once(openings: &[Arc<dyn Journal>]) {
    let committers = openings.iter().cycle().take(8).cloned().enumerate().map(|(n, journal)| {
        move || async move {
            let mut told = Vec::new();
            for i in 0..25 {
                let entries: Vec<_> = (0..=i % 3).map(|part| format!("{n} {i} {part}")).collect();
                let all = entries.iter().fold(Commit::new(), |all, entry| all.append("many/log", entry.clone().into()));
                let all = if i % 5 == 4 { all.create("many/refused", "x".into()) } else { all };
                match journal.commit(all, BY).await {
                    Ok(committed) => told.extend(committed.positions.into_iter().zip(entries)),
                    Err(error) => assert!(error.is_conflict(), "{error}"),
                }
            }
            assert!(told.is_sorted(), "one committer's entries are out of order");
            told
        }
    });
    let told: BTreeMap<u64, String> = side_by_side(committers).await.into_iter().flatten().collect();
    let found = texts(&*openings[0], "many/log", 1).await;
    assert_eq!(found, told.into_values().collect::<Vec<_>>());
}

/// A counter that some increment by commits and some by single conditional writes loses nothing.
pub async fn commits_and_single_writes_of_one_key_exclude_each_other(openings: &[Arc<dyn Journal>]) {
    let adders = openings.iter().cycle().take(8).cloned().enumerate().map(|(n, journal)| {
        move || async move {
            for _ in 0..15 {
                if n % 2 == 0 {
                    crate::plain::increment(&*journal, "mixed/a").await;
                } else {
                    while !increment_by_commit(&*journal).await {}
                }
            }
        }
    });
    side_by_side(adders).await;
    assert_eq!(number(&*openings[0], "mixed/a").await, 8 * 15);
    assert_eq!(texts(&*openings[0], "mixed/log", 1).await.len(), 4 * 15);
}

async fn increment_by_commit(journal: &dyn Journal) -> bool {
    let commit = match read(journal, "mixed/a").await {
        None => Commit::new().create("mixed/a", "1".into()),
        Some((value, version)) => {
            let next = (parse(&value) + 1).to_string();
            Commit::new().replace("mixed/a", next.into(), &version)
        }
    };
    match journal.commit(commit.append("mixed/log", "x".into()), BY).await {
        Ok(_) => true,
        Err(error) if error.is_conflict() => false,
        Err(error) => panic!("{error}"),
    }
}

fn account(n: u64) -> String {
    format!("bank/account/{n}")
}

const ACCOUNTS: u64 = 5;
const BALANCE: u64 = 100;
const MOVERS: usize = 6;
const TRANSFERS: u64 = 25;

/// How often readers look at the pair.
const ROUNDS: u64 = 1000;

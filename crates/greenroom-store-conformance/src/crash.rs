//! Processes and servers that die in the middle of their commits.
//!
//! For an embedded journal, a test starts itself as a child that calls [`work`] and prints what it acknowledges, kills
//! the child (`kill -9`), opens the journal and calls [`examine`] with what was printed; in a loop. For an engine with
//! servers, the test kills and restarts the server while [`work`] goes on in its own process.

use std::sync::Arc;

use futures_util::future::join_all;
use greenroom_store::{Commit, Journal, StoreError};

use crate::BY;
use crate::journal::texts;
use crate::plain::{create, number};

/// What a committer was told last: its `committer`'s commit number `n` is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// One of [`COMMITTERS`].
    pub committer: usize,
    /// Counted from 1.
    pub n: u64,
}

impl std::fmt::Display for Acknowledged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "acknowledged {} {}", self.committer, self.n)
    }
}

impl std::str::FromStr for Acknowledged {
    type Err = String;

    /// Reads a line as [`Display`](std::fmt::Display) writes it.
    fn from_str(line: &str) -> Result<Self, String> {
        let numbers = line.strip_prefix("acknowledged ").and_then(|rest| rest.split_once(' '));
        let parsed = numbers.and_then(|(committer, n)| Some((committer.parse().ok()?, n.parse().ok()?)));
        let (committer, n) = parsed.ok_or_else(|| format!("{line:?} is no acknowledgement"))?;
        Ok(Self { committer, n })
    }
}

/// Commits under `name` (new for each run) with [`COMMITTERS`] side by side, telling `tell` of each commit that is
/// acknowledged, until a commit fails; answers the errors that ended it.
///
/// Each commit writes two keys and appends one entry, behind a fence.
pub async fn work(journal: Arc<dyn Journal>, name: &str, tell: impl Fn(Acknowledged)) -> Vec<StoreError> {
    let fence = create(&*journal, &format!("{name}/fence"), "owner").await;
    let (journal, fence, tell) = (&journal, &fence, &tell);
    join_all((0..COMMITTERS).map(|committer| async move {
        let mine = format!("{name}/{committer}");
        for n in 1.. {
            let text = n.to_string();
            let commit = Commit::new()
                .hold(format!("{name}/fence"), fence)
                .put(format!("{mine}/a"), text.clone().into())
                .put(format!("{mine}/b"), text.clone().into())
                .append(mine.clone(), text.into());
            match journal.commit(commit, BY).await {
                Ok(committed) if committed.positions == [n] => tell(Acknowledged { committer, n }),
                Ok(committed) => panic!("commit {n} of log {mine} was told {committed:?}"),
                Err(error) => return error,
            }
        }
        unreachable!("numbers do not end")
    }))
    .await
}

/// Examines what [`work`] has left under `name`: nothing acknowledged is lost, no commit is there by half, none twice,
/// and beyond what was acknowledged at most the one commit of each committer whose answer was on its way.
pub async fn examine(journal: &dyn Journal, name: &str, acknowledged: &[Acknowledged]) {
    for committer in 0..COMMITTERS {
        let mine = format!("{name}/{committer}");
        let told = acknowledged.iter().filter(|told| told.committer == committer).map(|told| told.n).max().unwrap_or(0);
        let (a, b) = (number(journal, &format!("{mine}/a")).await, number(journal, &format!("{mine}/b")).await);
        let log = texts(journal, &mine, 1).await;
        let expected: Vec<_> = (1..=a).map(|n| n.to_string()).collect();
        assert!(a == b && log == expected, "half a commit: {mine}/a is {a}, {mine}/b is {b}, the log {log:?}");
        assert!(a == told || a == told + 1, "{mine}: {told} were acknowledged, {a} are there");
    }
}

/// How many commits [`work`] has in flight.
pub const COMMITTERS: usize = 16;

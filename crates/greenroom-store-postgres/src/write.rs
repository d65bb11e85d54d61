//! The task that writes: whatever waits is committed by one statement, with one device sync.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use greenroom_store::network::{Link, Request};
use greenroom_store::{Commit, Result, StoreError};
use tokio::sync::mpsc::Receiver;
use tokio_postgres::types::ToSql;

use crate::batch::{Arguments, Taken};
use crate::fault;
use crate::session::Session;
use crate::target::Target;

/// Serves commits until nobody can ask any more.
pub(crate) async fn run(target: Arc<Target>, link: Arc<Link<Target>>, mut queue: Receiver<Request>) {
    let writer = Writer { target, link };
    let mut waiting = VecDeque::new();
    loop {
        if waiting.is_empty() {
            match queue.recv().await {
                Some(request) => waiting.push_back(request),
                None => return,
            }
        }
        let session = writer.session(&mut waiting).await;
        while waiting.len() < WAITING_LEN_MAX
            && let Ok(request) = queue.try_recv()
        {
            waiting.push_back(request);
        }
        match session {
            Ok(session) => {
                let batch = pick(&mut waiting);
                writer.carry_out(session, batch).await;
            }
            Err(error) => {
                let all = waiting.drain(..).filter_map(Request::begin);
                all.for_each(|request| request.answer(Err(error.clone())));
            }
        }
    }
}

struct Writer {
    target: Arc<Target>,
    link: Arc<Link<Target>>,
}

impl Writer {
    /// A session, if one can be had while somebody waits for it.
    async fn session(&self, waiting: &mut VecDeque<Request>) -> Result<Arc<Session>> {
        let longest = waiting.iter().map(Request::remaining).max().unwrap_or_default();
        match tokio::time::timeout(longest, self.link.session()).await {
            Ok(session) => session,
            Err(_) => {
                let reason = "the server does not answer; is it running, and are host, port and firewall right?";
                Err(StoreError::Unavailable { store: self.target.name.clone(), reason: reason.to_owned() })
            }
        }
    }

    /// Commits the batch by one statement and answers. What was aborted because of one of several is done one by one.
    async fn carry_out(&self, session: Arc<Session>, batch: Vec<Request>) {
        if batch.is_empty() {
            return;
        }
        let Err(failure) = self.commit(&session, batch).await else { return };
        let (error, mut batch) = *failure;
        if batch.len() > 1 && fault::is_of_one(&error) {
            for request in batch {
                self.alone(&session, request).await;
            }
        } else if batch.len() == 1 && fault::is_passing(&error) {
            let request = batch.pop().expect("there is one");
            self.alone(&session, request).await;
        } else {
            self.refuse(batch, &error);
        }
    }

    /// Commits one, again while only others stand in its way.
    async fn alone(&self, session: &Arc<Session>, mut request: Request) {
        loop {
            let Err(failure) = self.commit(session, vec![request]).await else { return };
            let (error, batch) = *failure;
            let again = fault::is_passing(&error) && batch.iter().all(|request| request.remaining() > Duration::ZERO);
            if !again {
                return self.refuse(batch, &error);
            }
            let Some(same) = batch.into_iter().next() else { return };
            request = same;
        }
    }

    /// Sends the statement and answers all commits, or gives them back with the error that they share.
    async fn commit(&self, session: &Arc<Session>, batch: Vec<Request>) -> Result<(), Box<Failure>> {
        let patience = batch.iter().map(Request::remaining).min().unwrap_or_default().min(LOCK_PATIENCE_MAX);
        let longest = batch.iter().map(Request::remaining).max().unwrap_or_default();
        let commits: Vec<&Commit> = batch.iter().map(|request| &request.commit).collect();
        let arguments = Arguments::of(&commits);
        let patience_ms = i32::try_from(patience.as_millis()).unwrap_or(i32::MAX).max(1);
        let parameters: [&(dyn ToSql + Sync); 11] = [
            &patience_ms,
            &arguments.commits,
            &arguments.keys,
            &arguments.owners,
            &arguments.alones,
            &arguments.expecteds,
            &arguments.effects,
            &arguments.values,
            &arguments.logs,
            &arguments.log_owners,
            &arguments.entries,
        ];
        let sent = session.client.query_one(&session.commit, &parameters);
        let Ok(answered) = tokio::time::timeout(longest + GRACE, sent).await else {
            // Everybody has been told that the outcome is unknown. A connection that hangs is of no use to others.
            self.link.retire(session);
            return Ok(());
        };
        match answered.and_then(|row| arguments.answers(&commits, &row)) {
            Ok(answers) => {
                batch.into_iter().zip(answers).for_each(|(request, answer)| request.answer(answer));
                Ok(())
            }
            Err(error) => Err(Box::new((error, batch))),
        }
    }

    fn refuse(&self, batch: Vec<Request>, error: &tokio_postgres::Error) {
        for request in batch {
            let fault = fault::of_write(&self.target, request.commit.name(), error);
            request.answer(Err(fault));
        }
    }
}

/// An error and the commits that it concerns.
type Failure = (tokio_postgres::Error, Vec<Request>);

/// Takes as many of the `waiting` as go into one statement, and begins them. What collides with a commit before it
/// waits for the next, and so does everything behind it that touches the same keys.
fn pick(waiting: &mut VecDeque<Request>) -> Vec<Request> {
    let mut taken = Taken::default();
    let mut later = VecDeque::new();
    let mut batch = Vec::new();
    for request in waiting.drain(..) {
        if taken.take(&request.commit) {
            batch.extend(request.begin());
        } else {
            later.push_back(request);
        }
    }
    *waiting = later;
    batch
}

/// Most commits that a task looks at for its next statement.
const WAITING_LEN_MAX: usize = 1024;

/// Longest wait for a row that another transaction holds, as all commits of the statement wait with it. Those of this
/// program hold a row for one device sync.
const LOCK_PATIENCE_MAX: Duration = Duration::from_secs(5);

/// How long an answer may be late before its connection is given up.
const GRACE: Duration = Duration::from_secs(1);

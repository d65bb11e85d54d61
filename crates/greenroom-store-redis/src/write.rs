//! The task that writes: whatever waits is sent together, so that the server syncs once for all of it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use greenroom_store::network::{Link, Request};
use greenroom_store::{Commit, Committed, Result, StoreError};
use redis::aio::ConnectionLike;
use redis::{Pipeline, Value};
use tokio::sync::mpsc::Receiver;

use crate::fault;
use crate::script::{self, Call};
use crate::session::Session;
use crate::target::Target;

/// Serves commits until nobody can ask any more. What waits is sent at once, behind what is on its way.
pub(crate) async fn run(target: Arc<Target>, link: Arc<Link<Target>>, mut queue: Receiver<Request>) {
    let writer = Writer { target, link };
    let mut on_their_way = FuturesUnordered::new();
    let mut ended = false;
    while !ended || !on_their_way.is_empty() {
        let first = tokio::select! {
            biased;
            Some(()) = on_their_way.next() => continue,
            request = queue.recv(), if !ended && on_their_way.len() < BATCHES_MAX => request,
        };
        let Some(first) = first else {
            ended = true;
            continue;
        };
        let session = writer.session(first.remaining()).await;
        let mut batch: Vec<_> = first.begin().into_iter().collect();
        let mut bytes: usize = batch.iter().map(|request| request.commit.bytes()).sum();
        while batch.len() < BATCH_LEN_MAX
            && bytes < BATCH_BYTES_MAX
            && let Ok(request) = queue.try_recv()
        {
            bytes += request.commit.bytes();
            batch.extend(request.begin());
        }
        match session {
            Ok(session) => on_their_way.push(writer.carry_out(session, batch)),
            Err(error) => refuse_each(batch, |_| error.clone()),
        }
    }
}

struct Writer {
    target: Arc<Target>,
    link: Arc<Link<Target>>,
}

impl Writer {
    /// A session, if one can be had within `patience`.
    async fn session(&self, patience: Duration) -> Result<Arc<Session>> {
        match tokio::time::timeout(patience, self.link.session()).await {
            Ok(session) => session,
            Err(_) => {
                let reason = format!("the server does not answer; {}", fault::LOOK);
                Err(StoreError::Unavailable { store: self.target.name.clone(), reason })
            }
        }
    }

    /// Sends the batch as one call and answers.
    async fn carry_out(&self, session: Arc<Session>, batch: Vec<Request>) {
        let Some(longest) = batch.iter().map(Request::remaining).max() else { return };
        let commits: Vec<&Commit> = batch.iter().map(|request| &request.commit).collect();
        let calls: Vec<Call> = commits.iter().map(|commit| Call::new(&session.versions, commit)).collect();
        let mut pipeline = Pipeline::with_capacity(2);
        pipeline.add_command(script::commits(&session.commit, &self.target.prefix, &calls, &commits));
        let replicas = self.target.options.replicas;
        if replicas > 0 {
            // A wait without end (0) is not meant.
            pipeline.cmd("WAIT").arg(replicas).arg(longest.as_millis().max(1) as u64);
        }
        let mut connection = session.connection.clone();
        let sent = connection.req_packed_commands(&pipeline, 0, pipeline.len());
        let Ok(answered) = tokio::time::timeout(longest + GRACE, sent).await else {
            // Everybody has been told that the outcome is unknown. A connection that hangs is of no use to others.
            return self.link.retire(&session);
        };
        let mut answers = match answered {
            Ok(answers) => answers.into_iter(),
            Err(error) => {
                self.link.retire(&session);
                return refuse_each(batch, |key| unknown(key, format!("the connection has failed ({error})")));
            }
        };
        let (answer, confirmed) = (answers.next().unwrap_or_default(), answers.next());
        match answer {
            Value::Array(answers) if answers.len() == batch.len() => {
                let confirmed = confirmed.as_ref().and_then(script::number).unwrap_or_default();
                for ((request, call), answer) in batch.into_iter().zip(calls).zip(answers) {
                    let committed = self.committed(&request.commit, call, &answer, confirmed);
                    request.answer(committed);
                }
            }
            Value::ServerError(error) if error.code() == "NOSCRIPT" => self.carry_out_again(&session, batch).await,
            Value::ServerError(error) if fault::is_without_effect(&error) => {
                refuse_each(batch, |key| fault::of_answer(&self.target, key, &error));
            }
            Value::ServerError(error) => {
                refuse_each(batch, |key| unknown(key, format!("the script has failed in its middle ({error})")));
            }
            other => {
                let error = match script::text(&other) {
                    Some(format) => fault::format(&self.target, &format),
                    None => fault::strange(&self.target, &other),
                };
                refuse_each(batch, |_| error.clone());
            }
        }
    }

    /// For scripts that the server had forgotten, so that nothing was done: a new session loads them.
    async fn carry_out_again(&self, session: &Arc<Session>, batch: Vec<Request>) {
        self.link.retire(session);
        let longest = batch.iter().map(Request::remaining).max().unwrap_or_default();
        match self.session(longest).await {
            Ok(session) if longest > Duration::ZERO => Box::pin(self.carry_out(session, batch)).await,
            Ok(_) => {}
            Err(error) => refuse_each(batch, |_| error.clone()),
        }
    }

    fn committed(&self, commit: &Commit, call: Call, answer: &Value, confirmed: u64) -> Result<Committed> {
        let committed = call.committed(commit, answer).unwrap_or_else(|| Err(fault::strange(&self.target, answer)))?;
        let replicas = self.target.options.replicas;
        if confirmed >= u64::from(replicas) {
            return Ok(committed);
        }
        let reason = format!(
            "the primary has applied it, but only {confirmed} of the {replicas} replicas asked for have said so"
        );
        Err(unknown(commit.name(), reason))
    }
}

fn refuse_each(batch: Vec<Request>, error: impl Fn(&str) -> StoreError) {
    for request in batch {
        let error = error(request.commit.name());
        request.answer(Err(error));
    }
}

fn unknown(key: &str, reason: String) -> StoreError {
    StoreError::Unknown { key: key.to_owned(), reason }
}

/// Most batches on their way.
const BATCHES_MAX: usize = 16;

/// Most commits that are sent together.
const BATCH_LEN_MAX: usize = 512;

/// What has reached this size is sent: 16 MiB.
const BATCH_BYTES_MAX: usize = 16 << 20;

/// How long an answer may be late before its connection is given up.
const GRACE: Duration = Duration::from_secs(1);

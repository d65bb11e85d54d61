//! The task that writes: whatever waits is sent together, so that the server syncs once for all of it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use greenroom_store::{Committed, Result, StoreError};
use redis::aio::ConnectionLike;
use redis::{Pipeline, ServerError, Value};
use tokio::sync::mpsc::Receiver;

use crate::fault;
use crate::lane::Request;
use crate::link::Link;
use crate::script::{self, Refusal};
use crate::session::Session;
use crate::target::Target;

/// Serves commits until nobody can ask any more.
pub(crate) async fn run(target: Arc<Target>, link: Arc<Link>, mut queue: Receiver<Request>) {
    let writer = Writer { target, link };
    let mut waiting = VecDeque::new();
    loop {
        if waiting.is_empty() {
            match queue.recv().await {
                Some(request) => waiting.push_back(request),
                None => return,
            }
        }
        let session = writer.session(&waiting).await;
        while waiting.len() < BATCH_LEN_MAX
            && let Ok(request) = queue.try_recv()
        {
            waiting.push_back(request);
        }
        match session {
            Ok(session) => {
                let batch = pick(&mut waiting);
                writer.carry_out(&session, batch).await;
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
    link: Arc<Link>,
}

impl Writer {
    /// A session, if one can be had while somebody waits for it.
    async fn session(&self, waiting: &VecDeque<Request>) -> Result<Arc<Session>> {
        let longest = waiting.iter().map(Request::remaining).max().unwrap_or_default();
        match tokio::time::timeout(longest, self.link.session()).await {
            Ok(session) => session,
            Err(_) => {
                let reason = format!("the server does not answer; {}", fault::LOOK);
                Err(StoreError::Unavailable { store: self.target.name.clone(), reason })
            }
        }
    }

    /// Sends the batch as one pipeline and answers.
    async fn carry_out(&self, session: &Arc<Session>, batch: Vec<Request>) {
        let Some(longest) = batch.iter().map(Request::remaining).max() else { return };
        let mut pipeline = Pipeline::with_capacity(batch.len() + 1);
        for request in &batch {
            let (prefix, ending) = (&self.target.prefix, &session.ending);
            pipeline.add_command(script::commit(&session.commit, prefix, ending, &request.commit));
        }
        let replicas = self.target.options.replicas;
        if replicas > 0 {
            // A wait without end (0) is not meant.
            pipeline.cmd("WAIT").arg(replicas).arg(longest.as_millis().max(1) as u64);
        }
        let mut connection = session.connection.clone();
        let sent = connection.req_packed_commands(&pipeline, 0, pipeline.len());
        let answered = match tokio::time::timeout(longest + GRACE, sent).await {
            Ok(answered) => answered,
            Err(_) => {
                // Everybody has been told that the outcome is unknown. A connection that hangs is of no use to others.
                return self.link.retire(session);
            }
        };
        match answered {
            Ok(answers) => self.answer(session, batch, answers),
            Err(error) => {
                self.link.retire(session);
                for request in batch {
                    let key = request.commit.name().to_owned();
                    let reason = format!("the connection has failed ({error})");
                    request.answer(Err(StoreError::Unknown { key, reason }));
                }
            }
        }
    }

    fn answer(&self, session: &Arc<Session>, batch: Vec<Request>, mut answers: Vec<Value>) {
        let replicas = self.target.options.replicas;
        let confirmed = match replicas {
            0 => 0,
            _ => answers.pop().as_ref().and_then(script::number).unwrap_or_default(),
        };
        for (request, answer) in batch.into_iter().zip(answers) {
            if matches!(&answer, Value::ServerError(error) if error.code() == "NOSCRIPT") {
                // The scripts were thrown away: the next session loads them.
                self.link.retire(session);
            }
            let mut committed = self.committed(&request, answer);
            if confirmed < u64::from(replicas) && committed.is_ok() {
                let reason = format!(
                    "the primary has applied it, but only {confirmed} of the {replicas} replicas asked for have said so"
                );
                committed = Err(StoreError::Unknown { key: request.commit.name().to_owned(), reason });
            }
            request.answer(committed);
        }
    }

    fn committed(&self, request: &Request, answer: Value) -> Result<Committed> {
        let key = request.commit.name();
        let unknown = |error: &ServerError| StoreError::Unknown {
            key: key.to_owned(),
            reason: format!("the script has failed in its middle ({error})"),
        };
        match answer {
            Value::ServerError(error) if fault::is_without_effect(&error) => {
                Err(fault::of_answer(&self.target, key, &error))
            }
            Value::ServerError(error) => Err(unknown(&error)),
            Value::Array(parts) => match script::committed(&request.commit, &parts) {
                Some(Ok(committed)) => Ok(committed),
                Some(Err(Refusal::Conflict(conflict))) => Err(conflict),
                Some(Err(Refusal::Format(found))) => Err(fault::format(&self.target, &found)),
                None => Err(fault::strange(&self.target, &Value::Array(parts))),
            },
            other => Err(fault::strange(&self.target, &other)),
        }
    }
}

/// Takes as many of the `waiting` as go together, in their order, and begins them.
fn pick(waiting: &mut VecDeque<Request>) -> Vec<Request> {
    let (mut batch, mut bytes) = (Vec::new(), 0);
    while let Some(request) = waiting.pop_front_if(|_| batch.len() < BATCH_LEN_MAX && bytes < BATCH_BYTES_MAX) {
        bytes += request.commit.bytes();
        batch.extend(request.begin());
    }
    batch
}

/// Most commits that are sent together.
const BATCH_LEN_MAX: usize = 512;

/// What has reached this size is sent: 16 MiB.
const BATCH_BYTES_MAX: usize = 16 << 20;

/// How long an answer may be late before its connection is given up.
const GRACE: Duration = Duration::from_secs(1);

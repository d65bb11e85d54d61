//! The way to an etcd cluster: one connection to each endpoint, of which one is used until it fails.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use greenroom_store::StoreError;
use greenroom_store::url::Remote;
use http::uri::PathAndQuery;
use prost::Message;
use tonic::Request;
use tonic::client::Grpc;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, Endpoint};
use tonic_prost::ProstCodec;

use crate::fault::Failure;
use crate::proto::{AUTHENTICATE, AuthenticateRequest, AuthenticateResponse};

/// Connections to the members of a cluster. They live on the runtime in which this was made; calls may come from any.
pub(crate) struct Connection {
    remote: Remote,
    channels: Vec<Channel>,
    current: AtomicUsize,
    /// What etcd has given for the user's password.
    token: Mutex<Option<Token>>,
}

/// Proof of who asks.
pub(crate) type Token = MetadataValue<Ascii>;

/// Whether a call may be made again after its answer was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It changes nothing.
    Reads,
    /// It must not be made twice.
    Writes,
}

impl Connection {
    /// Connects when first asked to. Must be called in a tokio runtime.
    pub(crate) fn new(remote: &Remote, endpoints: &[Endpoint]) -> Self {
        let channels = endpoints.iter().map(Endpoint::connect_lazy).collect();
        Self { remote: remote.clone(), channels, current: AtomicUsize::new(0), token: Mutex::new(None) }
    }

    /// The store, as its URL names it.
    pub(crate) fn name(&self) -> String {
        self.remote.to_string()
    }

    /// Calls `path` until there is an answer, at most until `deadline`: at every endpoint if they cannot be reached, and
    /// once more with a new token if the old one is refused. What may have had an effect is not repeated.
    pub(crate) async fn ask<M, A>(
        &self,
        path: &'static str,
        message: M,
        effect: Effect,
        answer_bytes_max: usize,
        deadline: Instant,
    ) -> Result<A, Failure>
    where
        M: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let (mut failed, mut renewed) = (0, false);
        loop {
            let token = self.token(deadline).await?;
            let at = self.current.load(Ordering::Relaxed);
            let mut request = Request::new(message.clone());
            if let Some(token) = &token {
                request.metadata_mut().insert("token", token.clone());
            }
            let failure = match self.call(at, path, request, answer_bytes_max, deadline).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            match failure {
                Failure::NotSent(_) => self.leave(at),
                Failure::Lost(_) | Failure::Late { sent: true } => {
                    self.leave(at);
                    if effect == Effect::Writes {
                        return Err(failure);
                    }
                }
                _ if token.is_some() && failure.is_about_token() && !renewed => {
                    renewed = true;
                    self.forget(token);
                    continue;
                }
                _ => return Err(failure),
            }
            failed += 1;
            if failed > self.channels.len() || matches!(failure, Failure::Late { .. }) {
                return Err(failure);
            }
        }
    }

    async fn call<M, A>(
        &self,
        at: usize,
        path: &'static str,
        request: Request<M>,
        answer_bytes_max: usize,
        deadline: Instant,
    ) -> Result<A, Failure>
    where
        M: Message + 'static,
        A: Message + Default + 'static,
    {
        let mut grpc = Grpc::new(self.channels[at].clone()).max_decoding_message_size(answer_bytes_max);
        let ready = grpc.ready();
        within(deadline, false, async { ready.await.map_err(|error| Failure::NotSent(error.to_string())) }).await?;
        let path = PathAndQuery::from_static(path);
        let answer = grpc.unary(request, path, ProstCodec::<M, A>::default());
        within(deadline, true, async { answer.await.map_err(|status| Failure::of(&status)) })
            .await
            .map(|answer| answer.into_inner())
    }

    /// The next calls go to the endpoint after `at`, unless another call has seen to that.
    fn leave(&self, at: usize) {
        let next = (at + 1) % self.channels.len();
        // If it fails, another call has left the endpoint already.
        let _ = self.current.compare_exchange(at, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// The user's token, if the URL names a user. Several calls at once may each get one: etcd keeps them all.
    pub(crate) async fn token(&self, deadline: Instant) -> Result<Option<Token>, Failure> {
        let Some(user) = &self.remote.user else { return Ok(None) };
        let known = self.token.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if known.is_some() {
            return Ok(known);
        }
        let password = self.remote.password().map_err(Failure::NoPassword)?;
        let password = password.map(|secret| secret.expose().to_owned()).unwrap_or_default();
        let message = AuthenticateRequest { name: user.clone(), password };
        let mut failed = 0;
        let answer: AuthenticateResponse = loop {
            let at = self.current.load(Ordering::Relaxed);
            match self.call(at, AUTHENTICATE, Request::new(message.clone()), TOKEN_BYTES_MAX, deadline).await {
                Ok(answer) => break answer,
                Err(failure @ (Failure::NotSent(_) | Failure::Lost(_))) => {
                    self.leave(at);
                    failed += 1;
                    if failed > self.channels.len() {
                        return Err(not_sent(failure));
                    }
                }
                Err(failure) => return Err(not_sent(failure)),
            }
        };
        let token =
            Token::try_from(answer.token).map_err(|_| Failure::NotSent("etcd's token is no text".to_owned()))?;
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = Some(token.clone());
        Ok(Some(token))
    }

    fn forget(&self, old: Option<Token>) {
        let mut token = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        if *token == old {
            *token = None;
        }
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("remote", &self.remote).finish_non_exhaustive()
    }
}

/// When a call that may take `timeout` must have ended.
///
/// # Errors
///
/// If that is now: the call is not to begin.
pub(crate) fn deadline(key: &str, timeout: Duration) -> Result<Instant, StoreError> {
    if timeout.is_zero() {
        let reason = "its timeout is zero; allow some time".to_owned();
        return Err(StoreError::NotApplied { key: key.to_owned(), reason });
    }
    let now = Instant::now();
    Ok(now.checked_add(timeout).unwrap_or(now + FAR))
}

/// What failed before the call itself was made.
fn not_sent(failure: Failure) -> Failure {
    match failure {
        Failure::Lost(reason) => Failure::NotSent(reason),
        Failure::Late { .. } => Failure::Late { sent: false },
        other => other,
    }
}

async fn within<T>(
    deadline: Instant,
    sent: bool,
    call: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::time::timeout_at(deadline.into(), call).await.unwrap_or(Err(Failure::Late { sent }))
}

const TOKEN_BYTES_MAX: usize = 1 << 16;

/// For timeouts that no clock can hold.
const FAR: Duration = Duration::from_secs(365 * 24 * 3600);

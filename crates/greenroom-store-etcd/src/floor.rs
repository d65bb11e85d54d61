//! What the raw client reaches: the engine's own floor, beside which the store's rate is measured.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::try_join_all;
use greenroom_store::Result;
use greenroom_store::url::Remote;
use http::uri::PathAndQuery;
use tonic::client::Grpc;
use tonic::transport::Channel;
use tonic_prost::ProstCodec;

use crate::connection::{Connection, Token, deadline};
use crate::fault::Failure;
use crate::proto::{Compare, DeleteRangeRequest, PutRequest, Request, TXN, TxnRequest, TxnResponse};
use crate::settings::Settings;

/// Conditional writes a second: `writers` share one connection (HTTP/2 carries them side by side) and each replaces a key
/// of its own, again and again for `span`, by ready-made transactions with nothing around them. The keys go when it is
/// done.
///
/// # Errors
///
/// As [`EtcdStore::open_remote`](crate::EtcdStore::open_remote).
pub async fn conditional_writes(remote: &Remote, writers: usize, span: Duration, value: &[u8]) -> Result<f64> {
    let settings = Settings::of(remote)?;
    let connection = Connection::new(remote, &settings.endpoints);
    let failed = |failure: Failure| failure.of_read(&connection.name(), &settings.root, "floor");
    let token = connection.token(deadline("floor", CONNECT_TIMEOUT)?).await.map_err(failed)?;
    let channel = settings.endpoints[0].connect().await;
    let channel = channel.map_err(|error| failed(Failure::NotSent(error.to_string())))?;
    let begun = Instant::now();
    let each = (0..writers.max(1)).map(|n| {
        let key = Bytes::from(format!("{}floor/{n}", settings.root));
        let writer = Writer { channel: &channel, token: token.as_ref(), key };
        async move { writer.run(begun, span, value).await }
    });
    let written: u64 = try_join_all(each).await.map_err(failed)?.into_iter().sum();
    Ok(written as f64 / begun.elapsed().as_secs_f64())
}

struct Writer<'a> {
    channel: &'a Channel,
    token: Option<&'a Token>,
    key: Bytes,
}

impl Writer<'_> {
    async fn run(self, begun: Instant, span: Duration, value: &[u8]) -> Result<u64, Failure> {
        self.ask(Request::DeleteRange(self.removal()), None).await?;
        let (value, mut revision, mut written) = (Bytes::copy_from_slice(value), 0, 0);
        while begun.elapsed() < span {
            let put = PutRequest { key: self.key.clone(), value: value.clone() };
            let answer = self.ask(Request::Put(put), Some(revision)).await?;
            written += u64::from(answer.succeeded);
            revision = answer.header.unwrap_or_default().revision;
        }
        self.ask(Request::DeleteRange(self.removal()), None).await?;
        Ok(written)
    }

    fn removal(&self) -> DeleteRangeRequest {
        DeleteRangeRequest { key: self.key.clone(), ..DeleteRangeRequest::default() }
    }

    /// One transaction, if the key is at `revision`.
    async fn ask(&self, change: Request, revision: Option<i64>) -> Result<TxnResponse, Failure> {
        let compare = revision.map(|revision| Compare::is_at(self.key.clone(), revision));
        let compare = compare.into_iter().collect();
        let mut request =
            tonic::Request::new(TxnRequest { compare, success: vec![change.into()], ..TxnRequest::default() });
        if let Some(token) = self.token {
            request.metadata_mut().insert("token", token.clone());
        }
        let mut grpc = Grpc::new(self.channel.clone());
        grpc.ready().await.map_err(|error| Failure::NotSent(error.to_string()))?;
        let codec = ProstCodec::<TxnRequest, TxnResponse>::default();
        let answer = grpc.unary(request, PathAndQuery::from_static(TXN), codec).await;
        Ok(answer.map_err(|status| Failure::of(&status))?.into_inner())
    }
}

/// To get a token.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

//! What the raw client reaches: the engine's own floor, beside which the store's rate is measured.

use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use greenroom_store::Result;
use greenroom_store::url::Remote;
use tokio_postgres::{Client, Error};

use crate::target::Target;
use crate::{Options, fault};

/// Conditional writes a second: each of `writers` has a connection of its own and replaces a row of its own, again and
/// again for `span`, as one prepared statement each, at the server's durability. The table goes when it is done.
///
/// # Errors
///
/// As [`PostgresStore::open`](crate::PostgresStore::open).
pub async fn conditional_writes(remote: &Remote, writers: usize, span: Duration, value: &[u8]) -> Result<f64> {
    let target = Target::new(remote, &Options::default())?;
    let fault = |error: Error| fault::of_opening(&target, &error);
    let mut clients = Vec::new();
    for _ in 0..writers.max(1) {
        let (client, connection) = target.config()?.connect(target.tls.clone()).await.map_err(fault)?;
        tokio::spawn(connection);
        clients.push(client);
    }
    clients[0].batch_execute(CREATE).await.map_err(fault)?;
    let begun = Instant::now();
    let each = clients.iter().enumerate().map(|(n, client)| writer(client, n, begun, span, value));
    let written: u64 = try_join_all(each).await.map_err(fault)?.into_iter().sum();
    let seconds = begun.elapsed().as_secs_f64();
    clients[0].batch_execute("DROP TABLE greenroom_floor").await.map_err(fault)?;
    Ok(written as f64 / seconds)
}

async fn writer(client: &Client, n: usize, begun: Instant, span: Duration, value: &[u8]) -> Result<u64, Error> {
    let key = format!("floor/{n}");
    client.execute("INSERT INTO greenroom_floor VALUES ($1, 0, $2)", &[&key, &value]).await?;
    let replace = client.prepare("UPDATE greenroom_floor SET version = $3, value = $4 WHERE key = $1 AND version = $2");
    let (replace, mut version) = (replace.await?, 0_i64);
    while begun.elapsed() < span {
        let replaced = client.execute(&replace, &[&key, &version, &(version + 1), &value]).await?;
        version += i64::try_from(replaced).unwrap_or_default();
    }
    Ok(version.cast_unsigned())
}

const CREATE: &str = "
    DROP TABLE IF EXISTS greenroom_floor;
    CREATE TABLE greenroom_floor (key text COLLATE \"C\" PRIMARY KEY, version bigint NOT NULL, value bytea NOT NULL)
        WITH (fillfactor = 70)";

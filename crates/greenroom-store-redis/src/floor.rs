//! What the raw client reaches: the engine's own floor, beside which the store's rate is measured.

use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use greenroom_store::Result;
use greenroom_store::url::Remote;
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{RedisError, Value};

use crate::session::Session;
use crate::target::Target;
use crate::{Options, fault, script};

/// Conditional writes a second: `writers` share one multiplexed connection (the client's own way to be fast) and each
/// replaces a key of its own, again and again for `span`, by the shortest script that checks a version and writes, at
/// the server's durability. The keys go when it is done.
///
/// # Errors
///
/// As [`RedisStore::open`](crate::RedisStore::open).
pub async fn conditional_writes(remote: &Remote, writers: usize, span: Duration, value: &[u8]) -> Result<f64> {
    let target = Target::new(remote, &Options::default())?;
    let fault = |error: RedisError| fault::of_opening(&target, &error);
    let mut connection = Session::open(&target, true).await?.connection;
    let mut load = redis::cmd("SCRIPT");
    let loaded = connection.req_packed_command(load.arg("LOAD").arg(SCRIPT)).await.map_err(fault)?;
    let hash = script::text(&loaded).ok_or_else(|| fault::strange(&target, &loaded))?;
    let begun = Instant::now();
    let each = (0..writers.max(1)).map(|n| {
        let key = format!("{}floor:{n}", target.prefix);
        writer(connection.clone(), key, &hash, begun, span, value)
    });
    let written: u64 = try_join_all(each).await.map_err(fault)?.into_iter().sum();
    Ok(written as f64 / begun.elapsed().as_secs_f64())
}

async fn writer(
    mut connection: MultiplexedConnection,
    key: String,
    hash: &str,
    begun: Instant,
    span: Duration,
    value: &[u8],
) -> Result<u64, RedisError> {
    let mut version = 0_u64;
    while begun.elapsed() < span {
        let mut replace = redis::cmd("EVALSHA");
        replace.arg(hash).arg(1).arg(&key).arg(version).arg(version + 1).arg(value);
        let replaced = connection.req_packed_command(&replace).await.and_then(Value::extract_error)?;
        version += script::number(&replaced).unwrap_or_default();
    }
    connection.req_packed_command(redis::cmd("DEL").arg(&key)).await?;
    Ok(version)
}

const SCRIPT: &str = "
    if (redis.call('HGET', KEYS[1], 'v') or '0') ~= ARGV[1] then return 0 end
    redis.call('HSET', KEYS[1], 'v', ARGV[2], 'd', ARGV[3])
    return 1";

//! The store against real servers, each started by its test.

mod conformance;
mod encryption;
mod refusals;
mod replicas;
mod restarts;

use greenroom_engines::{Redis, RedisOptions, unless_missing};
use greenroom_store::url::{Remote, StoreUrl};
use greenroom_store::{Result, StoreError};
use greenroom_store_redis::{Options, RedisStore};

const PASSWORD: &str = "super-secret-word";

/// A server of one's own that keeps nothing.
fn start() -> Option<Redis> {
    start_with(&[])
}

/// One with a password and further settings.
fn start_with(settings: &[(&str, &str)]) -> Option<Redis> {
    let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let password = Some(PASSWORD.to_owned());
    unless_missing(Redis::start_with(RedisOptions { password, settings, ..RedisOptions::default() }))
}

/// What `url` names.
fn remote(url: &str) -> Remote {
    match url.parse() {
        Ok(StoreUrl::Redis(remote)) => remote,
        other => panic!("{url} is not understood: {other:?}"),
    }
}

/// A store with a prefix of its own.
async fn open(redis: &Redis, prefix: &str) -> RedisStore {
    try_open(&format!("{}?prefix={prefix}:", redis.url())).await.expect("the server is ready")
}

async fn try_open(url: &str) -> Result<RedisStore> {
    RedisStore::open(&remote(url), &Options::default()).await
}

/// Why `url` cannot be opened, in words that give no password away.
async fn refusal(url: &str) -> StoreError {
    let error = try_open(url).await.expect_err("it cannot be opened");
    assert!(!format!("{error} {error:?}").contains(PASSWORD), "{error}");
    error
}

/// Lets the administrator give commands, each in words divided by spaces.
async fn administer(redis: &Redis, commands: &[&str]) {
    let client = redis::Client::open(redis.url()).expect("a good URL");
    let mut connection = client.get_multiplexed_async_connection().await.expect("the server is ready");
    for command in commands {
        let mut words = command.split(' ');
        let mut call = redis::cmd(words.next().expect("a command"));
        call.arg(words.collect::<Vec<_>>());
        let answer: redis::RedisResult<redis::Value> = call.query_async(&mut connection).await;
        answer.unwrap_or_else(|error| panic!("{command}: {error}"));
    }
}

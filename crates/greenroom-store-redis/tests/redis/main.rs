//! The store against real servers, each started by its test.

mod conformance;

use greenroom_engines::{Redis, unless_missing};
use greenroom_store::url::{Remote, StoreUrl};
use greenroom_store_redis::{Options, RedisStore};

/// A server of one's own that does not sync.
fn start() -> Option<Redis> {
    unless_missing(Redis::start())
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
    let url = format!("{}?prefix={prefix}:", redis.url());
    RedisStore::open(&remote(&url), &Options::default()).await.expect("the server is ready")
}

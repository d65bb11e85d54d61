//! Connections over TLS.

use greenroom_engines::{Certificate, Redis, RedisOptions, unless_missing};
use greenroom_store::{Store, StoreError};

use crate::{refusal, start, try_open};

#[tokio::test]
async fn tls_checks_the_servers_certificate_and_name() {
    let Some(certificate) = unless_missing(Certificate::make()) else { return };
    let options = RedisOptions { tls: Some(certificate.clone()), ..RedisOptions::default() };
    let Some(redis) = unless_missing(Redis::start_with(options)) else { return };
    let stranger = Certificate::make().expect("it was made before");
    let port = redis.tls_port().expect("it serves TLS");
    let url = |host: &str, by: &Certificate| format!("rediss://{host}:{port}/0?ca={}", by.authority_file().display());
    for host in ["127.0.0.1", "localhost"] {
        let store = try_open(&url(host, &certificate)).await.unwrap_or_else(|error| panic!("{error}"));
        store.read("a", std::time::Duration::from_secs(20)).await.expect("a read");
    }
    let strange = refusal(&url("127.0.0.1", &stranger)).await;
    assert!(matches!(&strange, StoreError::Unavailable { reason, .. } if reason.contains("certificate")), "{strange}");
    let plain = refusal(&format!("redis://127.0.0.1:{port}/0")).await;
    assert!(matches!(plain, StoreError::Unavailable { .. }), "{plain}");
}

#[tokio::test]
async fn a_server_without_tls_is_refused_where_tls_is_asked() {
    let Some(certificate) = unless_missing(Certificate::make()) else { return };
    let Some(redis) = start() else { return };
    let url = format!("rediss://127.0.0.1:{}/0?ca={}", redis.port(), certificate.authority_file().display());
    let error = refusal(&url).await;
    assert!(matches!(&error, StoreError::Unavailable { reason, .. } if reason.contains("TLS")), "{error}");
}

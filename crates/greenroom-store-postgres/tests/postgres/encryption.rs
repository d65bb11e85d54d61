//! Connections over TLS.

use greenroom_engines::{Certificate, Postgres, PostgresOptions, unless_missing};
use greenroom_store::{Store, StoreError};

use crate::{refusal, start, try_open};

#[tokio::test]
async fn each_sslmode_checks_what_it_says() {
    let Some(certificate) = unless_missing(Certificate::make()) else { return };
    let options = PostgresOptions { tls: Some(certificate.clone()), ..PostgresOptions::default() };
    let Some(postgres) = unless_missing(Postgres::start_with(options)) else { return };
    let stranger = Certificate::make().expect("it was made before");
    let url = |host: &str, rest: &str| format!("{}?{rest}", postgres.url().replace("127.0.0.1", host));
    let own = format!("sslrootcert={}", certificate.authority_file().display());
    let strange = format!("sslrootcert={}", stranger.authority_file().display());

    let mut good = vec![url("127.0.0.1", "sslmode=require"), url("127.0.0.1", "sslmode=disable")];
    for mode in ["sslmode=verify-ca", "sslmode=verify-full", "tls=on"] {
        good.push(url("127.0.0.1", &format!("{mode}&{own}")));
        good.push(url("localhost", &format!("{mode}&{own}")));
    }
    for url in good {
        let store = try_open(&url).await.unwrap_or_else(|error| panic!("{error}"));
        store.read("a", std::time::Duration::from_secs(20)).await.expect("a read");
    }
    for mode in ["sslmode=require", "sslmode=verify-ca", "sslmode=verify-full"] {
        let error = refusal(&url("127.0.0.1", &format!("{mode}&{strange}"))).await;
        assert!(matches!(&error, StoreError::Unavailable { reason, .. } if reason.contains("sslrootcert")), "{error}");
    }
    // An address for which the certificate was not made.
    let error = refusal(&url("127.0.0.2", &format!("sslmode=verify-full&{own}"))).await;
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
    let error = refusal(&url("127.0.0.1", "sslmode=verify-full&sslrootcert=/no/such/file")).await.to_string();
    assert!(error.contains("/no/such/file") && error.contains("PEM"), "{error}");
}

#[tokio::test]
async fn a_server_without_tls_is_refused_where_tls_is_required() {
    let Some(postgres) = start() else { return };
    let error = refusal(&format!("{}?sslmode=require", postgres.url())).await.to_string();
    assert!(error.contains("ssl = on") && error.contains("sslmode=disable"), "{error}");
}

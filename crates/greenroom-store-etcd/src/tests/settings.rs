//! What a URL may say, and what is answered when it is wrong.

use greenroom_engines::{Certificate, free_port};

use super::*;

async fn refused(url: &str) -> StoreError {
    EtcdStore::open(url).await.expect_err(url)
}

#[tokio::test]
async fn a_wrong_password_is_denied_and_not_shown() {
    let Some(etcd) = fast() else { return };
    etcd.enable_auth("right").unwrap();
    let at = format!("127.0.0.1:{}", etcd.port());
    for url in [format!("etcd://root:wrong@{at}"), format!("etcd://{at}"), format!("etcd://nobody:right@{at}")] {
        let error = refused(&url).await;
        assert!(matches!(error, StoreError::Denied { .. }), "{error}");
        assert!(error.to_string().contains("password") && !error.to_string().contains("wrong"), "{error}");
    }
    let store = EtcdStore::open(&format!("etcd://root:right@{at}")).await.unwrap();
    assert!(!format!("{store:?}").contains("right"));
    store.create("key", "one".into(), BY).await.unwrap();
}

#[tokio::test]
async fn a_token_that_a_restart_has_made_void_is_renewed() {
    let Some(mut etcd) = fast() else { return };
    etcd.enable_auth("right").unwrap();
    let store = EtcdStore::open(&format!("etcd://root:right@127.0.0.1:{}", etcd.port())).await.unwrap();
    let version = store.create("key", "one".into(), BY).await.unwrap();
    let etcd = tokio::task::spawn_blocking(move || etcd.restart().map(|()| etcd)).await.unwrap().unwrap();
    // The first read meets the broken connection, and is made again.
    store.read("key", BY).await.unwrap();
    store.replace("key", "two".into(), &version, BY).await.unwrap();
    drop(etcd);
}

#[tokio::test]
async fn a_missing_right_is_denied_with_the_command_that_gives_it() {
    let Some(etcd) = fast() else { return };
    etcd.administer("/v3/auth/user/add", r#"{"name":"reader","password":"reads"}"#).unwrap();
    etcd.administer("/v3/auth/role/add", r#"{"name":"reads"}"#).unwrap();
    etcd.administer("/v3/auth/user/grant", r#"{"user":"reader","role":"reads"}"#).unwrap();
    etcd.enable_auth("right").unwrap();
    let error = refused(&format!("etcd://reader:reads@127.0.0.1:{}/prod", etcd.port())).await;
    let expected = "etcdctl role grant-permission ROLE readwrite --prefix=true prod/";
    assert!(matches!(error, StoreError::Denied { .. }) && error.to_string().contains(expected), "{error}");
}

#[tokio::test]
async fn tls_needs_the_authority_and_the_certificate_that_the_server_wants() {
    let Some(tls) = unless_missing(Certificate::make()) else { return };
    let options =
        EtcdOptions { tls: Some(tls.clone()), client_certificates: true, unsafe_no_fsync: true, ..Default::default() };
    let Some(etcd) = unless_missing(Etcd::start_with(options)) else { return };
    let [ca, cert, key] =
        [tls.authority_file(), tls.certificate_file(), tls.key_file()].map(|f| f.display().to_string());
    let good = EtcdStore::open(&format!("{}?ca={ca}&cert={cert}&key={key}", etcd.url())).await.unwrap();
    good.create("key", "one".into(), BY).await.unwrap();
    let error = refused(&format!("{}?tls=on", etcd.url())).await;
    assert!(matches!(error, StoreError::Denied { .. }) && error.to_string().contains("ca=FILE"), "{error}");
    let error = refused(&format!("{}?ca={ca}", etcd.url())).await;
    // The server may close the connection before its reason is read.
    let closed = matches!(&error, StoreError::Unavailable { reason, .. } if reason.contains("closed"));
    let denied = matches!(error, StoreError::Denied { .. }) && error.to_string().contains("cert=FILE");
    assert!(closed || denied, "{error}");
}

#[tokio::test]
async fn a_url_that_is_wrong_is_answered_with_the_remedy() {
    let at = "etcd://127.0.0.1:1";
    for (url, part) in [
        (format!("{at}?cart=/x"), "there are: ca, cert, key"),
        (format!("{at}?ca=/none/such"), "cannot be read"),
        (format!("{at}?tls=off&ca=/x"), "leave one out"),
        (format!("{at}?operations_max=many"), "is not a number"),
        ("redis://127.0.0.1".to_owned(), "it is no etcd"),
        ("etcd:".to_owned(), "incomplete"),
    ] {
        let error = refused(&url).await;
        assert!(
            matches!(error, StoreError::Configuration { .. }) && error.to_string().contains(part),
            "{url}: {error}"
        );
    }
    let error = refused(&format!("etcd://127.0.0.1:{}", free_port())).await;
    assert!(matches!(error, StoreError::Unavailable { .. }) && error.to_string().contains("etcd runs"), "{error}");
}

#[tokio::test]
async fn of_several_endpoints_those_that_are_down_are_passed_over() {
    let Some(etcd) = fast() else { return };
    let url = format!("etcd://127.0.0.1:{},127.0.0.1:{},127.0.0.1:{}", free_port(), free_port(), etcd.port());
    let store = EtcdStore::open(&url).await.unwrap();
    store.create("key", "one".into(), BY).await.unwrap();
}

#[tokio::test]
async fn a_store_of_a_newer_format_is_refused() {
    let Some(etcd) = fast() else { return };
    // "greenroom/format" holds "2".
    etcd.administer("/v3/kv/put", r#"{"key":"Z3JlZW5yb29tL2Zvcm1hdA==","value":"Mg=="}"#).unwrap();
    let error = refused(&etcd.url()).await;
    assert!(matches!(error, StoreError::Format { .. }) && error.to_string().contains("newer Greenroom"), "{error}");
}

#[tokio::test]
async fn a_full_etcd_is_said_to_be_full() {
    let settings = vec![("quota-backend-bytes".to_owned(), "2097152".to_owned())];
    let options = EtcdOptions { unsafe_no_fsync: true, settings, ..Default::default() };
    let Some(etcd) = unless_missing(Etcd::start_with(options)) else { return };
    let store = EtcdStore::open(&etcd.url()).await.unwrap();
    let mut error = None;
    for n in 0..200 {
        if let Err(failed) = store.create(&format!("fill/{n}"), vec![7; 500_000].into(), BY).await {
            error = Some(failed);
            break;
        }
    }
    let error = error.expect("2 MiB are not 100 MB");
    assert!(matches!(error, StoreError::Full { .. }) && error.to_string().contains("alarm disarm"), "{error}");
    assert!(store.read("fill/0", BY).await.unwrap().is_some());
}

#[tokio::test]
async fn a_server_with_a_lower_limit_than_the_url_says_refuses_by_its_own() {
    let settings = vec![("max-request-bytes".to_owned(), "100000".to_owned())];
    let options = EtcdOptions { unsafe_no_fsync: true, settings, ..Default::default() };
    let Some(etcd) = unless_missing(Etcd::start_with(options)) else { return };
    let store = EtcdStore::open(&etcd.url()).await.unwrap();
    for bytes in [100_001, 1_000_000] {
        let error = store.create("large", vec![7; bytes].into(), BY).await.unwrap_err();
        assert!(matches!(error, StoreError::TooLarge { .. }), "{error}");
    }
}

use std::time::Duration;

use super::*;

const TIMEOUT: Duration = Duration::from_secs(5);

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}

fn refused(url: &str) -> String {
    let error = block_on(open(url)).expect_err("it cannot be opened");
    assert!(matches!(error, StoreError::Configuration { .. }), "{error:?}");
    error.to_string()
}

#[test]
fn memory_is_a_journal_that_no_other_process_sees() {
    let opened = block_on(open("memory:")).expect("it needs nothing");
    assert!(!opened.shared && opened.journal.is_some() && opened.device_syncs().is_none(), "{opened:?}");
}

#[cfg(feature = "sqlite")]
#[test]
fn a_file_is_shared_and_counts_its_syncs() {
    let directory = tempfile::tempdir().expect("a directory");
    let opened = block_on(async {
        let opened = open(&format!("sqlite:{}", directory.path().join("a.db").display())).await.expect("it is made");
        opened.store.create("key", "value".into(), TIMEOUT).await.expect("nothing is there");
        opened
    });
    let counted = opened.device_syncs().expect("it syncs in this process");
    assert!(opened.shared && counted.commits == 1 && counted.syncs >= 1, "{opened:?}, {counted:?}");
}

#[test]
fn a_provider_that_is_not_built_in_is_refused_with_its_feature() {
    let url = "postgres://ada:lace@db/x".parse().expect("it is one");
    let message = not_built_in(&url).to_string();
    assert!(message.contains("was built without PostgreSQL: build it with --features postgres"), "{message}");
    assert!(message.contains("@db:5432/x") && !message.contains("lace"), "{message}");
    let remotes = [
        ("sqlite", "sqlite:a.db"),
        ("postgres", "postgres://host/a"),
        ("redis", "redis://host"),
        ("etcd", "etcd://host"),
        ("kafka", "kafka://host"),
        ("s3", "s3://bucket"),
        ("kube", "kube:default"),
    ];
    for (feature, url) in remotes.into_iter().filter(|(feature, _)| built_in().all(|built_in| built_in != *feature)) {
        let message = refused(url);
        assert!(message.contains(&format!("--features {feature}")), "{message}");
    }
}

#[test]
fn a_text_that_is_no_url_is_refused_without_its_password() {
    let message = refused("postgers://ada:lace@db/x");
    assert!(message.contains("did you mean \"postgres\"") && !message.contains("lace"), "{message}");
}

#[test]
fn a_network_outside_a_runtime_is_refused_and_not_a_panic() {
    let mut opening = std::pin::pin!(open("etcd://127.0.0.1:1"));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let std::task::Poll::Ready(Err(error)) = opening.as_mut().poll(&mut context) else { panic!("it must be refused") };
    assert!(error.to_string().contains("runtime") || !built_in().any(|feature| feature == "etcd"), "{error}");
}

//! New certificates without a restart.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn new_certificates_are_taken_up_under_load_and_no_call_fails() {
    let site = Site::new("music");
    let (a, b) = (site.node("a").await, site.node("b").await);
    both_answer(&a, ["a", "b"]).await;
    let (stop, calls) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let load = {
        let (a, stop, calls) = (a.clone(), stop.clone(), calls.clone());
        tokio::spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                for key in 0..16 {
                    let count = CounterRef::of(&a, format!("{key}")).add(1).await;
                    count.unwrap_or_else(|error| panic!("a call failed: {error}"));
                    calls.fetch_add(1, Ordering::Relaxed);
                }
            }
        })
    };
    // First both trust both authorities, then both get certificates of the new one, then the old one goes.
    let new = Authority::new("music").unwrap();
    let both = format!("{}{}", site.authority.pem().cert, new.pem().cert);
    let folder = |name: &str| site.folder.path().join(name);
    for name in ["a", "b"] {
        write(&folder(name).join("ca.pem"), &both);
    }
    settle(&calls).await;
    for name in ["a", "b"] {
        let issued = new.issue(Who::Node(name.into()), &[], (-1, 1)).unwrap();
        // Between these two, certificate and key do not fit: the old ones stay in force.
        write(&folder(name).join("node.pem"), &issued.cert);
        settle(&calls).await;
        write(&folder(name).join("node.key"), &issued.key);
    }
    settle(&calls).await;
    for name in ["a", "b"] {
        write(&folder(name).join("ca.pem"), &new.pem().cert);
    }
    settle(&calls).await;

    // Who has a certificate of the new authority gets in; that of the old one is worth nothing any more.
    let late = site.files("c", &new, Who::AnyNode);
    let c = site.builder("c", Some(late)).start().await.unwrap();
    c.stop().await;
    let refused = a.refused_connections() + b.refused_connections();
    let early = site.files("d", &site.authority, Who::AnyNode);
    let start = tokio::time::timeout(Duration::from_secs(5), site.builder("d", Some(early)).start()).await;
    assert!(start.is_err(), "a node of the old authority is let in");
    assert!(a.refused_connections() + b.refused_connections() > refused);

    stop.store(true, Ordering::Relaxed);
    load.await.unwrap();
    a.stop().await;
    b.stop().await;
}

/// Waits until the files have been looked at several times, and calls have gone on.
async fn settle(calls: &AtomicU64) {
    let before = calls.load(Ordering::Relaxed);
    tokio::time::sleep(Duration::from_millis(200)).await;
    while calls.load(Ordering::Relaxed) < before + 100 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

//! What principals may use of a node: one that looks at everything all the time keeps nobody else from anything.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::client::{get, post};
use super::door::{ADA, OPERATOR, VIEWER};
use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_principal_that_looks_without_end_is_refused_and_others_look_and_call() {
    let site = Site::new("music");
    let (node, door) = site.guarded("a").await;
    let (stop, refused) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let mut looking = Vec::new();
    for _ in 0..200 {
        let (door, stop, refused) = (door.clone(), stop.clone(), refused.clone());
        looking.push(tokio::spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                let answer = get(&door, "/-/support", &[VIEWER]).await;
                assert!(answer.status == 200 || answer.status == 503, "{answer:?}");
                if answer.status == 503 {
                    assert!(
                        answer.head.contains("retry-after") && answer.body.contains("of this principal wait"),
                        "{answer:?}"
                    );
                    refused.fetch_add(1, Ordering::Relaxed);
                }
            }
        }));
    }
    let others = async {
        while refused.load(Ordering::Relaxed) < 100 {
            for (path, header) in
                [("/-/actors", OPERATOR), ("/openapi.json", ADA), ("/healthz", "x: y"), ("/readyz", "x: y")]
            {
                assert_eq!(get(&door, path, &[header]).await.status, 200, "{path}");
            }
            assert_eq!(post(&door, "/mirror/x/who", &[ADA], "{}").await.status, 200);
        }
    };
    tokio::time::timeout(Duration::from_secs(120), others).await.expect("some are refused");
    stop.store(true, Ordering::Relaxed);
    for looking in looking {
        looking.await.unwrap();
    }
    node.stop().await;
}

//! The runtime's internal actors at the HTTP endpoint: nobody reaches them, whatever the rules say.

use serde_json::json;

use super::client::{get, post};
use super::door::{ADA, OPS, rule};
use super::*;

/// Money that only its owner's turns change.
#[derive(Default, Actor)]
struct Wallet {
    paid: u64,
}

#[actor(reliable)]
impl Wallet {
    pub async fn pay(&mut self, amount: u64) -> u64 {
        self.paid += amount;
        self.paid
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn internal_kinds_are_unknown_to_users_who_may_call_every_kind() {
    let site = Site::new("music");
    let everything = vec![rule(&["user"], "*", &["*"], "*")];
    let with_wallets = |builder: Builder| builder.journal("memory:").register::<Wallet>();
    let (node, door) = site.guarded_by("a", everything, with_wallets).await;
    assert_eq!(post(&door, "/wallet/victim/pay", &[ADA], r#"{"amount": 1}"#).await.status, 200);

    let payload = [&[2, 1][..], br#"{"amount":100}"#].concat();
    let body = json!({ "Call": { "method": "pay", "arguments": payload } });
    let to = json!({ "kind": "wallet", "key": "victim" });
    let letter = json!({ "from": null, "to": to, "birth": null, "creates": false, "call": null, "body": body });
    let stealing = json!({ "letter": letter }).to_string();
    for kind in ["greenroom.partition", "greenroom%2Epartition", "greenroom.keeper", "greenroom.of_a_later_build"] {
        for method in ["look", "wish", "told", "called", "arrived", "spawn"] {
            for who in [ADA, OPS] {
                let answer = post(&door, &format!("/{kind}/0/{method}"), &[who], &stealing).await;
                assert_eq!(answer.status, 404, "{kind} {method}: {answer:?}");
                assert!(answer.body.contains("/-/problems/unknown-kind"), "{answer:?}");
            }
        }
        for path in ["deactivate", "a"] {
            let path = match path {
                "deactivate" => format!("/-/actors/{kind}/0/deactivate"),
                node => format!("/-/migrate/{kind}/0/{node}"),
            };
            assert_eq!(post(&door, &path, &[OPS], "").await.status, 404, "{path}");
        }
        assert_eq!(get(&door, &format!("/-/inspect/{kind}/0"), &[OPS]).await.status, 404, "{kind}");
    }
    let answer = post(&door, "/wallet/victim/pay", &[ADA], r#"{"amount": 1}"#).await;
    assert_eq!((answer.status, &*answer.body), (200, "2"), "nothing was paid from outside");
    node.stop().await;
}

//! L13: which kinds hosts may offer, and how many.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use greenroom::{Auth, GeoCluster, GeoConfig, GeoInstances, GeoKind};
use greenroom_describe::Description;
use greenroom_wire::host::{Closing, FromHost, FromNode, Hello, HelloMap, OfferMap, OfferStatus};
use serde_json::json;

use super::host::Line;
use super::with_socket;
use crate::client::get;
use crate::kinds::{node, open};

/// What became of the offers of a host, by kind.
type Judged = BTreeMap<String, (OfferStatus, String)>;

/// Offers `kinds` in one session, which lasts as long as its line and its lease. How many of them it had to describe, too.
async fn offers(line: Line, kinds: Vec<String>) -> (Line, Judged, usize) {
    offers_all(line, kinds.iter().map(|kind| described(kind, "total")).collect()).await
}

async fn offers_all(mut line: Line, described: Vec<Description>) -> (Line, Judged, usize) {
    let mut map = HelloMap::new("offering");
    let offer = |known: &Description| OfferMap {
        kind: known.kind.clone(),
        version: 1,
        compatible: 1,
        digest: known.digest().to_string(),
    };
    map.offers = described.iter().map(offer).collect();
    line.say(&FromHost::Hello(Hello::new(map))).await;
    let welcome = line.hear(|frame| match frame {
        FromNode::Welcome(welcome) => welcome,
        other => panic!("no Welcome but {other:?}"),
    });
    let unknown = welcome.await.expect("the node answers").map.unknown;
    for known in described.iter().filter(|known| unknown.iter().any(|digest| *digest == known.digest().to_string())) {
        let json = match known.kind.as_str() {
            "garbled" => b"{\"greenroom\": 1}".to_vec(),
            _ => serde_json::to_vec(known.document()).expect("it is JSON"),
        };
        line.say(&FromHost::Describe { kind: &known.kind, version: 1, json: &json }).await;
    }
    let mut judged = Judged::new();
    while judged.len() < described.len() {
        let heard = line.hear(|frame| match frame {
            FromNode::Offered { kind, status, reason, .. } => (kind.to_owned(), (status, reason.to_owned())),
            other => panic!("no Offered but {other:?}"),
        });
        let heard = tokio::time::timeout(PATIENCE, heard).await.expect("the node says something");
        judged.extend([heard.expect("the lane lasts")]);
    }
    (line, judged, unknown.len())
}

#[tokio::test]
async fn l13_hosts_offer_a_cluster_1024_kinds_and_no_more() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = format!("sqlite:{}", folder.path().join("table").display());
    let cluster = |name: &'static str| {
        let builder = node().configure(|config| config.name = name.into()).table(&table);
        let (builder, path) = with_socket(builder, &folder, name);
        (builder.configure(|config| config.hosts.lease = Duration::from_secs(60)), path)
    };
    let ((one, first), (other, second)) = (cluster("a"), cluster("b"));
    let (one, _) = open(one).await;
    let (other, door) = open(other).await;
    let names = |from: usize| (from..from + 256).map(|number| format!("many_{number}")).collect();
    let offering = [0, 256, 512, 768].map(|from| {
        let (path, names) = (first.clone(), names(from));
        tokio::spawn(async move { offers(Line::dial(&path, false).await, names).await })
    });
    let mut hosts = Vec::new();
    for host in offering {
        let (host, judged, _) = host.await.expect("it is judged");
        assert!(judged.values().all(|(status, _)| *status == OfferStatus::Taken), "{judged:?}");
        hosts.push(host);
    }
    // The other node has none of them, and counts those that it sees.
    while seen(&door).await < 1024 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let more = ["one_too_many", "many_7"].map(str::to_owned).to_vec();
    let (_host, judged, _) = offers(Line::dial(&second, false).await, more).await;
    let (status, reason) = &judged["one_too_many"];
    assert_eq!(*status, OfferStatus::Refused);
    assert!(reason.contains("1024 kinds in this cluster"), "{reason}");
    assert_eq!(judged["many_7"].0, OfferStatus::Taken, "it is one of those");
    one.stop().await;
    other.stop().await;
}

#[tokio::test]
async fn l13_a_host_at_the_door_offers_what_its_roles_may_and_is_refused_the_rest_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let tokens = folder.path().join("tokens.toml");
    let allowed = json!([{ "roles": ["chat"], "kinds": ["chat_*"] }]);
    write(&tokens);
    let builder = node().configure(|config| {
        config.auth = Auth { tokens: Some(tokens), ..Auth::default() };
        config.hosts.allow = serde_json::from_value(allowed).expect("they are rules");
    });
    let (builder, path) = with_socket(builder, &folder, "a");
    let (node, door) = open(builder.configure(|config| config.hosts.lease = Duration::from_secs(60))).await;
    let kinds = || ["chat_room", "wallet"].map(str::to_owned).to_vec();

    let (_chat, judged, _) = offers(Line::upgraded(&door, "chat-0123456789abcdef").await, kinds()).await;
    assert_eq!(judged["chat_room"].0, OfferStatus::Taken);
    refused(&judged, "wallet");
    let (_pay, judged, described) = offers(Line::upgraded(&door, "pay-0123456789abcdef").await, kinds()).await;
    refused(&judged, "chat_room");
    refused(&judged, "wallet");
    assert_eq!(described, 0, "what is refused in any case is not asked for, and takes no room here");
    // Who may open the socket is trusted.
    let (_local, judged, _) = offers(Line::dial(&path, false).await, kinds()).await;
    assert!(judged.values().all(|(status, _)| *status == OfferStatus::Taken), "{judged:?}");
    node.stop().await;
}

#[tokio::test]
async fn what_is_no_description_is_refused_by_name_and_other_offers_stand() {
    let folder = tempfile::tempdir().expect("a folder");
    let (builder, path) = with_socket(node(), &folder, "a");
    let (node, _) = open(builder.configure(|config| config.hosts.lease = Duration::from_secs(60))).await;
    let kinds = ["garbled", "whole"].map(str::to_owned).to_vec();
    let (_host, judged, _) = offers(Line::dial(&path, false).await, kinds).await;
    let (status, reason) = &judged["garbled"];
    assert_eq!(*status, OfferStatus::Refused);
    assert!(reason.contains("garbled"), "{reason}");
    assert_eq!(judged["whole"].0, OfferStatus::Taken);
    node.stop().await;
}

#[tokio::test]
async fn an_offer_that_was_refused_is_taken_once_what_stood_in_its_way_has_left() {
    let folder = tempfile::tempdir().expect("a folder");
    let (builder, path) = with_socket(node(), &folder, "a");
    let (node, _) = open(builder.configure(|config| config.hosts.lease = Duration::from_secs(60))).await;
    let (mut first, ..) = offers_all(Line::dial(&path, false).await, vec![described("thing", "total")]).await;
    let both = vec![described("thing", "sum"), described("other", "total")];
    let (mut second, judged, _) = offers_all(Line::dial(&path, false).await, both).await;
    assert_eq!(judged["other"].0, OfferStatus::Taken);
    let (status, reason) = &judged["thing"];
    assert_eq!(*status, OfferStatus::Refused);
    assert!(reason.contains("offered here already"), "{reason}");

    first.say(&FromHost::Goodbye { code: Closing::Done, reason: "" }).await;
    let taken = second.hear(|frame| match frame {
        FromNode::Offered { offer, kind, status, .. } => (offer, kind.to_owned(), status),
        other => panic!("no Offered but {other:?}"),
    });
    let taken =
        tokio::time::timeout(PATIENCE, taken).await.expect("the kind leaves the cluster").expect("the lane lasts");
    assert_eq!(taken, (0, "thing".to_owned(), OfferStatus::Taken));
    node.stop().await;
}

#[tokio::test]
async fn in_a_multi_cluster_a_reliable_kind_that_does_not_declare_one_actor_per_cluster_is_refused_and_others_stay() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut geo = GeoConfig::default();
    geo.clusters.insert("greenroom".to_owned(), GeoCluster::at(["127.0.0.1:1"]));
    let declared = |instances| {
        let mut kind = GeoKind::default();
        kind.instances = Some(instances);
        kind
    };
    geo.kinds.insert("pouch".to_owned(), declared(GeoInstances::PerCluster));
    geo.kinds.insert("till".to_owned(), declared(GeoInstances::Single));
    let builder = node().journal("memory:").configure(|config| (config.geo, config.shards) = (Some(geo), 1));
    let (builder, path) = with_socket(builder, &folder, "a");
    let (node, _) = open(builder.configure(|config| config.hosts.lease = Duration::from_secs(60))).await;
    let kinds = ["purse", "till", "pouch"].map(|kind| reliable(kind, None)).into_iter();
    let kinds = kinds.chain([reliable("vault", Some("per_cluster")), described("plain", "total")]).collect();
    let (_host, judged, _) = offers_all(Line::dial(&path, false).await, kinds).await;
    for (kind, setting) in [("purse", "does not declare"), ("till", "instances = \"single\"")] {
        let (status, reason) = &judged[kind];
        assert_eq!(*status, OfferStatus::Refused, "{judged:?}");
        for part in [setting, &format!("`[geo.kinds.{kind}]`"), "`instances = \"per_cluster\"`"] {
            assert!(reason.contains(part), "{part} is not in: {reason}");
        }
    }
    for kind in ["pouch", "vault", "plain"] {
        assert_eq!(judged[kind].0, OfferStatus::Taken, "{judged:?}");
    }
    node.stop().await;
}

fn reliable(kind: &str, instances: Option<&str>) -> Description {
    Description::of_document(json!({
        "greenroom": 1,
        "kind": kind,
        "version": 1,
        "compatible": 1,
        "options": { "reliable": true, "instances": instances },
        "methods": [{ "name": "total", "read": true, "arguments": true }],
        "states": [],
    }))
    .expect("it is a description")
}

/// How many of the many kinds the node behind `door` sees.
async fn seen(door: &str) -> usize {
    let status = get(door, "/-/status").await.json();
    let members = status["cluster"]["members"].as_array().expect("it is a list").iter();
    let kinds = members.flat_map(|member| member["kinds"].as_array().expect("it is a list"));
    kinds.filter(|kind| kind.as_str().is_some_and(|kind| kind.starts_with("many_"))).count()
}

fn refused(judged: &Judged, kind: &str) {
    let (status, reason) = &judged[kind];
    assert_eq!(*status, OfferStatus::Refused, "{kind}");
    assert!(reason.contains(kind) && reason.contains("hosts.allow"), "{reason}");
}

/// Tokens of two teams.
fn write(path: &Path) {
    let token = |name: &str| {
        format!("[[token]]\nname = \"{name}\"\nroles = [\"{name}\"]\ntoken = \"{name}-0123456789abcdef\"\n")
    };
    std::fs::write(path, token("chat") + &token("pay")).expect("the folder is there");
}

fn described(kind: &str, method: &str) -> Description {
    Description::of_document(json!({
        "greenroom": 1,
        "kind": kind,
        "version": 1,
        "compatible": 1,
        "options": { "persistent": false },
        "methods": [{ "name": method, "read": true, "arguments": true }],
        "states": [],
    }))
    .expect("it is a description")
}

/// How long a frame that must come is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

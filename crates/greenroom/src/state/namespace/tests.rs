use greenroom_store::memory::MemoryStore;

use super::*;
use crate::geo::config::{GeoCluster, GeoConfig};

const BY: Duration = Duration::from_secs(1);

fn alone(cluster: &str) -> Config {
    Config { cluster: cluster.to_owned(), ..Config::default() }
}

fn named(cluster: &str, namespace: &str) -> Config {
    Config { namespace: namespace.to_owned(), ..alone(cluster) }
}

fn together(cluster: &str, clusters: &[&str]) -> Config {
    let clusters = clusters.iter().map(|name| ((*name).to_owned(), GeoCluster::at(["a:1"]))).collect();
    Config { geo: Some(GeoConfig { clusters, ..GeoConfig::default() }), ..alone(cluster) }
}

/// The root that a new cluster's node has in the store.
async fn entered(store: &MemoryStore, config: &Config) -> Result<String, String> {
    Namespace::of(config, false).enter(store, BY).await.map_err(|why| why.to_string())
}

async fn with_plain_names() -> MemoryStore {
    let store = MemoryStore::new();
    store.create("state/account/self/ada", "1".into(), BY).await.unwrap();
    store
}

#[tokio::test]
async fn the_states_of_a_new_store_carry_the_clusters_name() {
    let store = MemoryStore::new();
    assert_eq!(entered(&store, &alone("alpha")).await.unwrap(), "state/@alpha/");
    assert_eq!(entered(&store, &alone("alpha")).await.unwrap(), "state/@alpha/", "its next node finds the same");
    let odd = MemoryStore::new();
    assert_eq!(entered(&odd, &alone("a/b%")).await.unwrap(), "state/@a%2Fb%25/");
}

#[tokio::test]
async fn states_that_an_earlier_build_wrote_keep_their_names() {
    let store = with_plain_names().await;
    assert_eq!(entered(&store, &alone("alpha")).await.unwrap(), "state/");
    // Nothing is stored yet, but a node of an earlier build may be about to.
    let empty = MemoryStore::new();
    assert_eq!(Namespace::of(&alone("alpha"), true).enter(&empty, BY).await.unwrap(), "state/");
    let shared = MemoryStore::new();
    assert_eq!(entered(&shared, &together("eu", &["eu", "us"])).await.unwrap(), "state/");
}

#[tokio::test]
async fn a_store_with_states_of_another_namespace_is_refused_by_name_with_both_remedies() {
    for store in [MemoryStore::new(), with_plain_names().await] {
        entered(&store, &alone("alpha")).await.unwrap();
        let refused = entered(&store, &alone("beta")).await.unwrap_err();
        for part in ["namespace \"alpha\" (cluster \"alpha\")", "`namespace = \"alpha\"`", "`namespace = \"beta\"`"] {
            assert!(refused.contains(part), "{part} is not in: {refused}");
        }
        assert_eq!(entered(&store, &named("beta", "beta")).await.unwrap(), "state/@beta/");
        assert_eq!(entered(&store, &alone("beta")).await.unwrap(), "state/@beta/", "its name is known from now on");
    }
}

#[tokio::test]
async fn a_cluster_that_says_so_shares_the_states_of_another() {
    let store = with_plain_names().await;
    entered(&store, &alone("alpha")).await.unwrap();
    assert_eq!(entered(&store, &named("beta", "alpha")).await.unwrap(), "state/");
    let list = read_namespaces(&store, BY).await.unwrap();
    assert_eq!(list.namespaces["alpha"].clusters, BTreeSet::from(["alpha".to_owned(), "beta".to_owned()]));
    // A cluster that is called as a namespace of others does not fall into it.
    entered(&store, &named("gamma", "delta")).await.unwrap();
    let refused = entered(&store, &alone("delta")).await.unwrap_err();
    assert!(refused.contains("that of cluster \"gamma\""), "{refused}");
}

#[tokio::test]
async fn a_clusters_nodes_have_one_namespace_and_so_have_the_clusters_of_a_system() {
    let store = MemoryStore::new();
    entered(&store, &alone("eu")).await.unwrap();
    for other in [named("eu", "sales"), together("eu", &["eu", "us"]), together("us", &["eu", "us"])] {
        let refused = entered(&store, &other).await.unwrap_err();
        assert!(refused.contains("`namespace = \"eu\"`") && refused.contains("namespaces rename eu "), "{refused}");
    }
    let us = Config { namespace: "eu".to_owned(), ..together("us", &["eu", "us"]) };
    assert_eq!(entered(&store, &us).await.unwrap(), "state/@eu/", "what one cluster had is the system's");

    let shared = MemoryStore::new();
    for cluster in ["eu", "us"] {
        assert_eq!(entered(&shared, &together(cluster, &["eu", "us"])).await.unwrap(), "state/");
    }
}

#[tokio::test]
async fn a_namespace_that_is_renamed_keeps_the_names_of_its_states() {
    let store = MemoryStore::new();
    entered(&store, &alone("us")).await.unwrap();
    assert!(rename_namespace(&store, "asia", "eu", BY).await.unwrap_err().contains("there are: \"us\""));
    rename_namespace(&store, "us", "eu", BY).await.unwrap();
    assert_eq!(entered(&store, &named("us", "eu")).await.unwrap(), "state/@us/");
    let refused = entered(&store, &named("other", "us")).await.unwrap_err();
    assert!(refused.contains("namespace \"eu\" has the names state/@us/"), "{refused}");
}

#[tokio::test]
async fn two_nodes_that_enter_at_the_same_time_agree() {
    let store = MemoryStore::new();
    let (one, other) = (alone("alpha"), Namespace::of(&alone("alpha"), true));
    let (one, other) = tokio::join!(entered(&store, &one), other.enter(&store, BY));
    assert_eq!(one.unwrap(), other.unwrap());
}

#[tokio::test]
async fn a_look_writes_nothing() {
    let store = MemoryStore::new();
    assert_eq!(Namespace::of(&alone("alpha"), false).look_up(&store, BY).await.unwrap(), "state/@alpha/");
    assert_eq!(read_namespaces(&store, BY).await.unwrap(), NamespaceList::default());
}

#[test]
fn the_list_has_these_bytes_and_is_read_from_them() {
    let entry = |root: &str, cluster: &str| NamespaceEntry {
        root: root.to_owned(),
        clusters: BTreeSet::from([cluster.to_owned()]),
    };
    let namespaces = [("alpha", entry("state/", "alpha")), ("beta", entry("state/@beta/", "beta"))];
    let list = NamespaceList { namespaces: namespaces.map(|(name, entry)| (name.to_owned(), entry)).into() };
    let golden = b"\x02\x01{\"namespaces\":{\"alpha\":{\"root\":\"state/\",\"clusters\":[\"alpha\"]},\"beta\":{\"root\":\"state/@beta/\",\"clusters\":[\"beta\"]}}}";
    assert_eq!(encode(&list), &golden[..]);
    assert_eq!(decode(golden).unwrap(), list);
    let newer = b"\x02\x02{\"namespaces\":{\"alpha\":{\"root\":\"state/\",\"since\":1}},\"by\":\"ada\"}";
    assert_eq!(decode(newer).unwrap().namespaces["alpha"].root, "state/", "what is new is skipped");
    for hostile in [&b"\x02\x01{\"namespaces\":{\"a\":{\"root\":\"cluster/\"}}}"[..], b"", b"\x02\x01{}", b"\xff"] {
        assert!(decode(hostile).is_err(), "{}", hostile.escape_ascii());
    }
}

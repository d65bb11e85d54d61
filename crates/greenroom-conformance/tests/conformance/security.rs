//! TLS between the nodes of a simulated cluster: the same code as on sockets, with real certificates. Few seeds, as
//! cryptography is slow and knows nothing of the seed.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use greenroom::prelude::*;
use greenroom::{Builder, Config, NodeTls};
use greenroom_security::identity::{Identity, Who};
use greenroom_security::issue::{Authority, Issued};

use crate::cluster::Cluster;
use crate::scenario::{NODES, calm, rough};

/// Says where it is.
#[derive(Default, Actor)]
struct Post;

#[actor(placement = "random")]
impl Post {
    pub async fn place(&self, cx: &Cx) -> String {
        cx.node_name().to_owned()
    }
}

/// Folders of certificates, made once.
struct Files {
    member: NodeTls,
    other_cluster: NodeTls,
    other_authority: NodeTls,
}

fn files() -> &'static Files {
    static FILES: OnceLock<Files> = OnceLock::new();
    FILES.get_or_init(|| {
        let ours = Authority::new("greenroom").expect("a name");
        let theirs = Authority::new("greenroom").expect("a name");
        let any = |authority: &Authority| authority.issue(Who::AnyNode, &[], (-1, 30)).expect("no hosts");
        let film = ours.issue_for(&Identity::new("film", Who::AnyNode), &[], (-1, 30)).expect("no hosts");
        Files {
            member: write("member", &ours, &any(&ours)),
            other_cluster: write("other-cluster", &ours, &film),
            other_authority: write("other-authority", &theirs, &any(&theirs)),
        }
    })
}

fn write(name: &str, authority: &Authority, issued: &Issued) -> NodeTls {
    let folder: PathBuf =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("conformance-{}", std::process::id())).join(name);
    let write = |file: &str, text: &str| std::fs::write(folder.join(file), text).expect("the folder can be written to");
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    write("ca.pem", &authority.pem().cert);
    write("node.pem", &issued.cert);
    write("node.key", &issued.key);
    NodeTls::in_folder(&folder)
}

fn secure(builder: Builder, _: &str) -> Builder {
    builder.configure(|config| config.tls = Some(files().member.clone())).register::<Post>()
}

/// Calls posts from every node until all nodes have answered each; one that stops is started again.
async fn all_answer(cluster: &Cluster) {
    for name in NODES {
        let mut answered = std::collections::BTreeSet::new();
        let mut key = 0;
        while answered.len() < NODES.len() {
            key += 1;
            let place = match cluster.node(name) {
                Some(node) => PostRef::of(&node, format!("{name} {key}")).place().await.ok(),
                None => None,
            };
            match place {
                Some(place) => _ = answered.insert(place),
                // What is refused at once takes no time, and nothing would become better.
                None => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    }
}

#[test]
fn nodes_speak_tls_over_a_bad_network() {
    rough(4, secure, |cluster| async move {
        // A node that nobody could reach for long enough stops, as it must.
        cluster.supervise();
        all_answer(&cluster).await;
    });
}

/// Tries to join the cluster as `d`; what comes of it.
async fn intrude(cluster: &Cluster, change: impl FnOnce(&mut Config)) -> String {
    let mut config = Config::default();
    (config.name, config.listen) = ("d".to_owned(), "d:0".to_owned());
    (config.insecure_listen, config.shards) = (true, 1);
    change(&mut config);
    let world = cluster.sim.node("d");
    let builder = Node::builder().config(config).world(world).store(cluster.store.seen_by("d"));
    let error = builder.register::<Post>().start().await.expect_err("d has joined").to_string();
    cluster.sim.crash("d");
    error
}

#[test]
fn who_has_no_certificate_of_the_cluster_does_not_join_it() {
    calm(2, secure, |cluster| async move {
        let plain = intrude(&cluster, |_| {}).await;
        assert!(plain.contains("takes only TLS"), "{plain}");
        let stranger = intrude(&cluster, |config| config.tls = Some(files().other_authority.clone())).await;
        assert!(stranger.contains("certificates of one authority"), "{stranger}");
        let film = intrude(&cluster, |config| config.tls = Some(files().other_cluster.clone())).await;
        assert!(film.contains("of cluster \"film\""), "{film}");
        tokio::time::sleep(Duration::from_secs(1)).await;
        all_answer(&cluster).await;
        for node in cluster.three() {
            assert!(!node.members().iter().any(|name| name == "d"));
        }
        assert!(cluster.three().iter().any(|node| node.refused_connections() > 0));
    });
}

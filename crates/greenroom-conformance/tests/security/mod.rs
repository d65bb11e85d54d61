//! Who gets in and who does not: certificates between nodes, over real sockets.

mod budgets;
mod client;
mod clusters;
mod config;
mod door;
mod hosts;
mod internal;
mod jwt;
mod nodes;
mod reload;
mod streams;

use std::path::Path;
use std::time::Duration;

use greenroom::prelude::*;
use greenroom::{Builder, Config};
use greenroom_security::files::NodeTls;
use greenroom_security::identity::Who;
use greenroom_security::issue::{Authority, Issued};
use tempfile::TempDir;

#[derive(Default, Actor)]
struct Counter {
    count: u64,
}

#[actor]
impl Counter {
    pub async fn add(&mut self, n: u64) -> u64 {
        self.count += n;
        self.count
    }

    pub async fn place(&self, cx: &Cx) -> String {
        cx.node_name().to_owned()
    }
}

/// A cluster's authority, table and files.
struct Site {
    folder: TempDir,
    authority: Authority,
}

impl Site {
    fn new(cluster: &str) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), authority: Authority::new(cluster).unwrap() }
    }

    /// The files of the node called `name`, issued by `authority` for `who`.
    fn files(&self, name: &str, authority: &Authority, who: Who) -> NodeTls {
        let issued = authority.issue(who, &["localhost".into(), "127.0.0.1".into()], (-1, 1)).unwrap();
        self.write(name, authority, &issued)
    }

    fn write(&self, name: &str, authority: &Authority, issued: &Issued) -> NodeTls {
        let folder = self.folder.path().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        write(&folder.join("ca.pem"), &authority.pem().cert);
        write(&folder.join("node.pem"), &issued.cert);
        write(&folder.join("node.key"), &issued.key);
        NodeTls::in_folder(&folder)
    }

    /// A node with a certificate of its own.
    async fn node(&self, name: &str) -> Node {
        let files = self.files(name, &self.authority, Who::Node(name.into()));
        // No node takes it for dead while a busy disk holds its renewals up.
        let steady = self.builder(name, Some(files)).configure(|config| config.lease = Duration::from_secs(60));
        steady.start().await.unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn builder(&self, name: &str, files: Option<NodeTls>) -> Builder {
        let table = format!("sqlite:{}", self.folder.path().join("table.db").display());
        let cluster = self.authority.cluster().to_owned();
        let configure = move |config: &mut Config| {
            config.cluster = cluster;
            config.shards = 1;
            config.tls = files;
            config.reload_every = Duration::from_millis(20);
        };
        Node::builder().name(name).table(table).configure(configure).register::<Counter>()
    }
}

/// Replaces a file as a careful program does.
fn write(path: &Path, text: &str) {
    let new = path.with_extension("new");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(&new, path).unwrap();
}

/// Calls counters until both nodes have answered some.
async fn both_answer(from: &Node, names: [&str; 2]) {
    while from.members().len() < names.len() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let mut answered = std::collections::BTreeSet::new();
    for key in 0..256 {
        let place = CounterRef::of(from, format!("at {key}")).place().await;
        answered.insert(place.unwrap_or_else(|error| panic!("{error}")));
    }
    assert_eq!(answered, names.map(String::from).into());
}

//! One chat room over two clusters, which cannot hear each other for a while: `cargo run --example geo`.
//!
//! Both clusters run in this process, each with a table of its own, and reach each other by their gateways.

use std::net::TcpListener;
use std::time::Duration;

use greenroom::prelude::*;
use greenroom::{GeoCluster, GeoConfig};

/// A room and what was said in it.
#[derive(Default, Actor)]
pub struct Room {
    said: Vec<String>,
}

#[actor]
impl Room {
    /// Says something; how much has been said.
    pub async fn post(&mut self, text: String) -> usize {
        self.said.push(text);
        self.said.len()
    }

    /// What has been said.
    pub async fn read(&self) -> Vec<String> {
        self.said.clone()
    }

    /// Whether there may be another instance of the room.
    pub async fn is_doubtful(&self, cx: &Cx) -> bool {
        cx.is_doubtful()
    }

    async fn deactivating(&mut self, cx: &Cx, why: Why) {
        if why == Why::Duplicate {
            println!("{} was open twice; what was said here was: {:?}", cx.key(), self.said);
        }
    }
}

/// A node of the cluster `name`, where `clusters` are the clusters and their gateways.
pub async fn node(name: &str, clusters: &[(&str, String)]) -> greenroom::Result<Node> {
    let mut geo = GeoConfig::default();
    for (cluster, gateway) in clusters {
        geo.clusters.insert((*cluster).to_owned(), GeoCluster::at([gateway]));
        if *cluster == name {
            geo.gateway = Some(gateway.clone());
        }
    }
    geo.look_again_every = Duration::from_secs(2);
    let configured = Node::builder().configure(|config| {
        config.cluster = name.to_owned();
        config.geo = Some(geo);
    });
    configured.register::<Room>().start().await
}

/// An address for a gateway.
pub fn free_address() -> std::io::Result<String> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let clusters = [("eu", free_address()?), ("us", free_address()?)];
    let eu = node("eu", &clusters).await?;
    // Nobody has heard of the other cluster yet: the room opens, though it might be open there.
    RoomRef::of(&eu, "lobby").post("eu: hello?").await?;
    println!("doubtful: {}", RoomRef::of(&eu, "lobby").is_doubtful().await?);

    let us = node("us", &clusters).await?;
    while RoomRef::of(&eu, "lobby").is_doubtful().await? {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    RoomRef::of(&us, "lobby").post("us: hello").await?;
    println!("in eu: {:?}", RoomRef::of(&eu, "lobby").read().await?);
    println!("in us: {:?}", RoomRef::of(&us, "lobby").read().await?);
    us.stop().await;
    eu.stop().await;
    Ok(())
}

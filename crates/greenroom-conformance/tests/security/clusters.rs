//! Which clusters form one actor system, over real sockets.

use greenroom::{GeoCluster, GeoConfig};
use greenroom_engines::free_address;
use greenroom_security::identity::Identity;
use greenroom_security::link::TLS_WANTED;

use super::*;

/// Two clusters' gateways.
fn gateways() -> [(&'static str, String); 2] {
    ["eu", "us"].map(|cluster| (cluster, free_address()))
}

/// A node of the site's cluster, in a multi-cluster with these gateways, that trusts the authorities in `trusted`.
async fn node(site: &Site, gateways: &[(&str, String)], files: NodeTls, trusted: &[&Authority]) -> Node {
    let cluster = site.authority.cluster().to_owned();
    let bundle = site.folder.path().join(format!("{cluster}-clusters.pem"));
    write(&bundle, &trusted.iter().map(|authority| authority.pem().cert.clone()).collect::<String>());
    let mut geo = GeoConfig::default();
    geo.ca = Some(bundle);
    for (name, gateway) in gateways {
        geo.clusters.insert((*name).to_owned(), GeoCluster::at([gateway]));
        if *name == cluster {
            geo.gateway = Some(gateway.clone());
        }
    }
    let configured = site.builder(&cluster, Some(files)).configure(|config| config.geo = Some(geo));
    configured.start().await.unwrap_or_else(|error| panic!("{cluster}: {error}"))
}

/// What keeps the node from the cluster called `other`; `None` as soon as that answers.
async fn trouble(node: &Node, other: &str, wanted: impl Fn(&str) -> bool) -> Option<String> {
    for _ in 0..600 {
        let status = node.multi_cluster().expect("it is in one");
        let cluster = status.clusters.into_iter().find(|cluster| cluster.name == other).expect("it is listed");
        match cluster.trouble {
            _ if cluster.answers => return None,
            Some(trouble) if wanted(&trouble) => return Some(trouble),
            _ => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
    panic!("{other} neither answers nor is refused as expected: {:?}", node.multi_cluster());
}

#[tokio::test(flavor = "multi_thread")]
async fn clusters_with_authorities_of_their_own_are_one_system_and_each_keeps_its_nodes() {
    let (eu, us) = (Site::new("eu"), Site::new("us"));
    let gateways = gateways();
    let both = [&eu.authority, &us.authority];
    let start = |site| {
        let files = Site::files(site, "n", &site.authority, Who::AnyNode);
        node(site, &gateways, files, &both)
    };
    let (a, b) = (start(&eu).await, start(&us).await);
    assert_eq!((trouble(&a, "us", |_| false).await, trouble(&b, "eu", |_| false).await), (None, None));
    assert_eq!(CounterRef::of(&a, "shared").add(1).await.unwrap(), 1);
    assert_eq!(CounterRef::of(&b, "shared").add(1).await.unwrap(), 2, "it is one actor");

    // What another cluster's authority issues in this one's name is worth nothing at this one's nodes.
    let forged = us.authority.issue_for(&Identity::new("eu", Who::AnyNode), &[], (-1, 1)).unwrap();
    let forged = eu.write("forged", &us.authority, &forged);
    let joined = eu.builder("forged", Some(forged)).start();
    let joined = tokio::time::timeout(Duration::from_secs(60), joined).await.expect("it is told");
    assert!(joined.is_err(), "only tls.ca says who is a node of the cluster");
    a.stop().await;
    b.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_with_the_certificate_of_another_one_is_refused() {
    let (eu, us) = (Site::new("eu"), Site::new("us"));
    let gateways = gateways();
    let both = [&eu.authority, &us.authority];
    let a = node(&eu, &gateways, eu.files("a", &eu.authority, Who::AnyNode), &both).await;
    // Its certificate is good, and names a third cluster.
    let asia = us.authority.issue_for(&Identity::new("asia", Who::AnyNode), &[], (-1, 1)).unwrap();
    let asia = us.write("asia", &us.authority, &asia);
    let begun = us.builder("us", Some(asia.clone())).start().await;
    let refused = begun.expect_err("a node must have a certificate of its own cluster").to_string();
    assert!(refused.contains("asia"), "{refused}");
    // A cluster that calls itself us and trusts whom it likes, with an authority that nobody knows.
    let stranger = Site::new("us");
    let files = stranger.files("b", &stranger.authority, Who::AnyNode);
    let b = node(&stranger, &gateways, files, &[&stranger.authority, &eu.authority]).await;
    let told = trouble(&a, "us", |trouble| trouble.contains("authorit")).await.expect("it is refused");
    assert!(told.contains("authorit"), "{told}");
    assert!(trouble(&b, "eu", |trouble| trouble.contains("authorit")).await.is_some());
    assert_eq!(CounterRef::of(&a, "mine").add(1).await.unwrap(), 1);
    a.stop().await;
    b.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_without_certificates_hears_from_the_gateway_what_is_missing() {
    let (eu, us) = (Site::new("eu"), Site::new("us"));
    let gateways = gateways();
    let a = node(&eu, &gateways, eu.files("a", &eu.authority, Who::AnyNode), &[&eu.authority]).await;
    let mut geo = GeoConfig::default();
    geo.gateway = Some(gateways[1].1.clone());
    geo.clusters = gateways.iter().map(|(name, at)| ((*name).to_owned(), GeoCluster::at([at]))).collect();
    let b = us.builder("b", None).configure(|config| config.geo = Some(geo)).start().await.unwrap();
    let told = trouble(&b, "eu", |trouble| trouble.contains(TLS_WANTED)).await;
    assert!(told.is_some());
    a.stop().await;
    b.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_beyond_loopback_wants_certificates() {
    let site = Site::new("eu");
    let mut geo = GeoConfig::default();
    geo.gateway = Some("0.0.0.0:0".into());
    geo.clusters.insert("eu".into(), GeoCluster::at(["eu.example:7300"]));
    let plain = site.builder("plain", None).configure(|config| config.geo = Some(geo)).start().await;
    let refused = plain.expect_err("it is refused").to_string();
    assert!(refused.contains("the gateway for other clusters") && refused.contains("greenroom certs"), "{refused}");
}

//! Who is not let in, and what both sides are told.

use std::sync::Arc;

use greenroom_security::identity::Identity;
use greenroom_security::link::{TLS_WANTED, is_tls};
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, SanType};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

#[tokio::test]
async fn nodes_of_one_authority_and_cluster_know_each_other_by_name() {
    let authority = Authority::new("music").unwrap();
    let (a, b) = (node(&authority, "a"), node(&authority, "b"));
    let (dialled, accepted) = connect(&a, &b).await;
    let ((_, b_seen), (_, a_seen)) = (dialled.unwrap(), accepted.unwrap());
    assert_eq!((b_seen.not_node("b"), a_seen.not_node("a")), (None, None));
    let said = a_seen.not_node("c").expect("it is not c");
    assert!(said.contains("\"a\"") && said.contains("\"c\"") && said.contains("--name a"), "{said}");
}

#[tokio::test]
async fn a_node_of_another_authority_is_refused_on_both_sides() {
    let (ours, theirs) = (Authority::new("music").unwrap(), Authority::new("music").unwrap());
    let (dialled, accepted) = connect(&node(&ours, "a"), &node(&theirs, "b")).await;
    let (dialled, accepted) = (dialled.err().unwrap().to_string(), accepted.err().unwrap().to_string());
    assert!(dialled.contains("certificates of one authority"), "{dialled}");
    assert!(accepted.contains("authority") && accepted.contains("log says why"), "{accepted}");
}

#[tokio::test]
async fn a_node_of_another_cluster_of_the_same_authority_is_refused() {
    let authority = Authority::new("music").unwrap();
    let film = authority.issue_for(&Identity::new("film", Who::AnyNode), &[], (-1, 1)).unwrap();
    let files = folder(&authority, &film);
    let error = Links::secure(&NodeTls::in_folder(files.path()), "music").err().unwrap();
    assert!(error.to_string().contains("of cluster \"film\""), "{error}");
    let (dialled, accepted) = connect(&links(&files, "film"), &node(&authority, "b")).await;
    for (peer, name) in [(dialled.unwrap().1, "b"), (accepted.unwrap().1, "a")] {
        let said = peer.not_node(name).expect("it is of another cluster");
        assert!(said.contains("\"film\"") && said.contains("\"music\""), "{said}");
    }
}

/// Links of `cluster` with a certificate of `issuer`, that trust both authorities.
fn between(issuer: &Authority, cluster: &str, trusted: [&Authority; 2]) -> Links {
    let issued = issuer.issue_for(&Identity::new(cluster, Who::AnyNode), &[], (-1, 1)).unwrap();
    let files = folder(issuer, &issued);
    let bundle: String = trusted.iter().map(|authority| authority.pem().cert.clone()).collect();
    std::fs::write(files.path().join("ca.pem"), bundle).unwrap();
    links(&files, cluster)
}

#[tokio::test]
async fn an_authority_is_trusted_for_certificates_of_its_own_cluster_alone() {
    let (eu, us) = (Authority::new("eu").unwrap(), Authority::new("us").unwrap());
    let both = [&eu, &us];
    let (ours, theirs) = (between(&eu, "eu", both), between(&us, "us", both));
    let (dialled, accepted) = connect(&ours, &theirs).await;
    assert_eq!(dialled.unwrap().1.not_node_of("us", "b"), None);
    assert_eq!(accepted.unwrap().1.not_node_of("eu", "a"), None);

    // Whoever has the key of one cluster's authority cannot speak for another one, or for one that nobody knows.
    for cluster in ["eu", "asia"] {
        let forged = between(&us, cluster, both);
        let (dialled, accepted) = connect(&forged, &ours).await;
        assert_eq!(dialled.unwrap().1.not_node_of("eu", "b"), None);
        let said = accepted.unwrap().1.not_node_of(cluster, "a").expect("it is refused");
        assert!(said.contains(&format!("{cluster:?}")) && said.contains("certs trust"), "{said}");
        let (dialled, _) = connect(&ours, &forged).await;
        assert!(dialled.unwrap().1.not_node_of(cluster, "a").is_some());
    }
}

#[tokio::test]
async fn an_authority_that_names_no_cluster_is_trusted_for_all() {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let site = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let us = Authority::new("us").unwrap();
    for cluster in ["eu", "us"] {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        let uri = Identity::new(cluster, Who::AnyNode).to_string().try_into().unwrap();
        params.subject_alt_names.push(SanType::URI(uri));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let cert = params.signed_by(&key, &issuer).unwrap().pem();
        let files = folder(&us, &Issued { cert, key: key.serialize_pem() });
        let bundle = us.pem().cert.clone() + &site;
        std::fs::write(files.path().join("ca.pem"), &bundle).unwrap();
        let dialling = links(&files, cluster);
        let both = folder(&us, &issue(&us, Who::AnyNode));
        std::fs::write(both.path().join("ca.pem"), &bundle).unwrap();
        let (dialled, accepted) = connect(&dialling, &links(&both, "us")).await;
        assert_eq!(dialled.unwrap().1.not_node_of("us", "b"), None);
        assert_eq!(accepted.unwrap().1.not_node_of(cluster, "a"), None);
    }
}

#[tokio::test]
async fn an_expired_certificate_is_refused_where_it_is_and_where_it_is_shown() {
    let authority = Authority::new("music").unwrap();
    for (days, said) in [((-9, -1), "expired"), ((1, 9), "not valid yet")] {
        let late = authority.issue(Who::AnyNode, &[], days).unwrap();
        let error = Links::secure(&NodeTls::in_folder(folder(&authority, &late).path()), "music").err().unwrap();
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[tokio::test]
async fn a_clients_certificate_does_not_make_a_node() {
    let authority = Authority::new("music").unwrap();
    let client = issue(&authority, Who::Client("ada".into()));
    let error = Links::secure(&NodeTls::in_folder(folder(&authority, &client).path()), "music").err().unwrap();
    assert!(error.to_string().contains("serverAuth"), "{error}");
}

#[tokio::test]
async fn a_key_of_another_certificate_is_refused_without_a_word_of_it() {
    let authority = Authority::new("music").unwrap();
    let (a, b) = (issue(&authority, Who::AnyNode), issue(&authority, Who::AnyNode));
    let mixed = Issued { cert: a.cert, key: b.key };
    let error = Links::secure(&NodeTls::in_folder(folder(&authority, &mixed).path()), "music").err().unwrap();
    assert!(error.to_string().contains("the key is not that of the certificate"), "{error}");
    let broken = Issued { cert: mixed.cert, key: mixed.key.replace("PRIVATE KEY", "SECRET KEY") };
    let error = Links::secure(&NodeTls::in_folder(folder(&authority, &broken).path()), "music").err().unwrap();
    assert!(error.to_string().contains("holds no private key") && !format!("{error:?}").contains("SECRET"), "{error}");
}

#[tokio::test]
async fn who_has_no_certificate_or_only_tls_1_2_is_refused() {
    let authority = Authority::new("music").unwrap();
    let answering = node(&authority, "b");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = rustls::RootCertStore::empty();
    let ca = rustls::pki_types::pem::PemObject::from_pem_slice(authority.pem().cert.as_bytes()).unwrap();
    roots.add(ca).unwrap();
    for (version, said) in [(&rustls::version::TLS13, "no certificate"), (&rustls::version::TLS12, "TLS 1.3 only")] {
        let config = rustls::ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots.clone())
            .with_no_client_auth();
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        let (ours, theirs) = pipe(1 << 16);
        let dialling = connector.connect(ServerName::try_from("localhost").unwrap(), ours);
        let (_, accepted) = tokio::join!(dialling, answering.accepted(theirs));
        let error = accepted.err().expect("it is refused").why.to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[tokio::test]
async fn plain_to_tls_and_tls_to_plain_say_what_is_missing() {
    let authority = Authority::new("music").unwrap();
    let secure = node(&authority, "a");
    let (mut ours, theirs) = pipe(1 << 16);
    ours.write_all(b"\x40\0\0\0\x01GRRM").await.unwrap();
    let refused = secure.accepted(theirs).await.err().expect("it is refused");
    assert_eq!((refused.plain, refused.why.to_string().as_str()), (true, TLS_WANTED));

    let (ours, mut theirs) = pipe(1 << 16);
    let plain = async {
        let mut first = [0; 3];
        theirs.read_exact(&mut first).await.unwrap();
        theirs.write_all(b"\x40\0\0\0\x08no TLS here").await.unwrap();
        first
    };
    let (dialled, first) = tokio::join!(secure.dialled(ours), plain);
    assert!(is_tls(&first));
    let error = dialled.err().unwrap().to_string();
    assert!(error.contains("does not speak TLS") && error.contains("--tls-dir"), "{error}");
}

#[tokio::test]
async fn new_files_are_for_new_connections_and_broken_ones_for_none() {
    let (old, new) = (Authority::new("music").unwrap(), Authority::new("music").unwrap());
    let files = folder(&old, &issue(&old, Who::AnyNode));
    let links = links(&files, "music");
    let certificates = links.certificates().unwrap();
    assert!(connect(&node(&old, "b"), &links).await.1.is_ok());

    std::fs::write(files.path().join("node.pem"), "half a fi").unwrap();
    assert!(matches!(certificates.look(), greenroom_security::watched::Look::Kept(_)));
    assert!(connect(&node(&old, "b"), &links).await.1.is_ok());

    fill(files.path(), &new, &issue(&new, Who::AnyNode));
    assert!(matches!(certificates.look(), greenroom_security::watched::Look::Renewed));
    assert!(connect(&node(&old, "b"), &links).await.1.is_err());
    assert!(connect(&node(&new, "b"), &links).await.1.is_ok());
    assert!(certificates.current().seconds_left() > 3600);
}

#[tokio::test]
async fn noise_is_no_handshake() {
    let authority = Authority::new("music").unwrap();
    let links = node(&authority, "a");
    for noise in [&b"\x16"[..], b"\x16\x03\x01\xff\xff", b"\x16\x03\x01\x00\x02hi", b"\x16GET / HTTP/1.1\r\n\r\n"] {
        let (mut ours, theirs) = pipe(1 << 16);
        ours.write_all(noise).await.unwrap();
        drop(ours);
        assert!(links.accepted(theirs).await.is_err_and(|refused| !refused.plain), "{noise:?}");
    }
}

//! The guide's configuration is one.

use greenroom::Config;

#[test]
fn the_guides_configuration_is_one() {
    let guide = include_str!("../../../../docs/guide/security.md");
    let (_, all) = guide.split_once("## All of it").expect("the guide has all of it");
    let (_, block) = all.split_once("```toml\n").expect("in a block");
    let (text, _) = block.split_once("```").expect("that ends");
    let config: Config = toml::from_str(text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(config.cluster, "music");
    assert!(config.tls.is_some() && config.http_tls.is_some_and(|tls| tls.clients.is_some()));
    assert_eq!((config.auth.jwt.len(), config.auth.certificates.len(), config.allow.len()), (1, 1, 2));
    assert_eq!(config.auth.jwt[0].leeway_seconds, 30);
    assert_eq!(config.allow[0].keys, "*");
}

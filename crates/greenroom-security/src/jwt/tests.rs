//! Tokens good and bad, signed with ring.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};
use serde_json::json;

use super::*;

struct Signer(EcdsaKeyPair);

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

impl Signer {
    fn new() -> Self {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        Self(EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random).unwrap())
    }

    fn jwk(&self, id: &str) -> Value {
        let point = self.0.public_key().as_ref();
        json!({ "kty": "EC", "crv": "P-256", "kid": id, "x": encode(&point[1..33]), "y": encode(&point[33..]) })
    }

    fn keys(&self) -> Keys {
        keys(&json!({ "keys": [self.jwk("one")] }))
    }

    fn sign(&self, header: &Value, claims: &Value) -> Secret {
        let message = format!("{}.{}", encode(header.to_string()), encode(claims.to_string()));
        let signature = self.0.sign(&SystemRandom::new(), message.as_bytes()).unwrap();
        Secret::new(format!("{message}.{}", encode(signature)))
    }
}

fn keys(set: &Value) -> Keys {
    Keys::read(Path::new("jwks.json"), set.to_string().as_bytes()).unwrap()
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn issuer() -> Issuer {
    serde_json::from_value(json!({ "issuer": "https://id", "audience": "greenroom", "keys": "jwks.json" })).unwrap()
}

fn judge() -> Judge {
    Judge::new(issuer()).unwrap()
}

fn header() -> Value {
    json!({ "alg": "ES256", "kid": "one", "typ": "JWT" })
}

fn claims() -> Value {
    json!({ "iss": "https://id", "aud": "greenroom", "sub": "ada", "exp": now() + 60, "roles": ["user", "team"] })
}

fn with(mut value: Value, name: &str, new: Value) -> Value {
    match new {
        Value::Null => value.as_object_mut().unwrap().remove(name),
        new => value.as_object_mut().unwrap().insert(name.to_owned(), new),
    };
    value
}

#[test]
fn a_good_token_names_its_principal() {
    let signer = Signer::new();
    let token = signer.sign(&header(), &claims());
    assert!(judge().claims_issuer(&token));
    let ada = judge().judge(&token, &signer.keys()).unwrap();
    assert_eq!(ada, Principal::new("ada", ["user", "team"]).issued_by("https://id"));
    let several = with(claims(), "aud", json!(["other", "greenroom"]));
    assert!(judge().judge(&signer.sign(&header(), &several), &signer.keys()).is_ok());
    let nameless = with(header(), "kid", Value::Null);
    assert!(judge().judge(&signer.sign(&nameless, &claims()), &signer.keys()).is_ok());
}

#[test]
fn roles_may_be_words_and_lie_inside_of_objects() {
    let signer = Signer::new();
    for (path, claim) in [("scope", json!("user team")), ("realm.roles", json!("user team"))] {
        let judge = Judge::new(Issuer { roles_claim: path.into(), ..issuer() }).unwrap();
        let claims = match path.split_once('.') {
            Some((object, inside)) => with(claims(), object, json!({ inside: claim })),
            None => with(claims(), path, claim),
        };
        let ada = judge.judge(&signer.sign(&header(), &claims), &signer.keys()).unwrap();
        assert_eq!(ada, Principal::new("ada", ["user", "team"]).issued_by("https://id"), "{path}");
    }
}

#[test]
fn each_thing_that_is_wrong_is_refused_for_what_it_is() {
    let signer = Signer::new();
    let table = [
        (header(), with(claims(), "exp", json!(now() - 31)), Refused::Expired),
        (header(), with(claims(), "exp", Value::Null), Refused::Claims),
        (header(), with(claims(), "exp", json!("never")), Refused::Claims),
        (header(), with(claims(), "nbf", json!(now() + 40)), Refused::NotYet),
        (header(), with(claims(), "nbf", json!("soon")), Refused::Claims),
        (header(), with(claims(), "aud", json!("elsewhere")), Refused::Audience),
        (header(), with(claims(), "aud", Value::Null), Refused::Claims),
        (header(), with(claims(), "iss", json!("https://other")), Refused::Issuer),
        (header(), with(claims(), "iss", Value::Null), Refused::Claims),
        (header(), with(claims(), "sub", Value::Null), Refused::Claims),
        (header(), with(claims(), "sub", json!("")), Refused::Claims),
        (with(header(), "alg", json!("none")), claims(), Refused::Algorithm),
        (with(header(), "alg", json!("None")), claims(), Refused::Algorithm),
        (with(header(), "alg", json!("HS256")), claims(), Refused::Algorithm),
        (with(header(), "alg", json!("RS256")), claims(), Refused::UnknownKey),
        (with(header(), "alg", json!("ES384")), claims(), Refused::Algorithm),
        (with(header(), "kid", json!("two")), claims(), Refused::UnknownKey),
        (with(header(), "crit", json!(["x"])), claims(), Refused::Claims),
    ];
    for (header, claims, why) in table {
        let refused = judge().judge(&signer.sign(&header, &claims), &signer.keys()).unwrap_err();
        assert_eq!(refused, why, "{header} {claims}");
    }
}

#[test]
fn the_clock_may_be_a_little_wrong() {
    let signer = Signer::new();
    for (name, time) in [("exp", now() - 10), ("nbf", now() + 10)] {
        assert!(judge().judge(&signer.sign(&header(), &with(claims(), name, json!(time))), &signer.keys()).is_ok());
    }
}

#[test]
fn only_the_issuers_own_signature_of_these_very_claims_counts() {
    let (signer, other) = (Signer::new(), Signer::new());
    let token = other.sign(&header(), &claims());
    assert_eq!(judge().judge(&token, &signer.keys()).unwrap_err(), Refused::Signature);
    let token = signer.sign(&header(), &claims());
    let parts: Vec<&str> = token.expose().split('.').collect();
    let forged = encode(with(claims(), "sub", json!("root")).to_string());
    for (token, why) in [
        (format!("{}.{forged}.{}", parts[0], parts[2]), Refused::Signature),
        (format!("{}.{}.", parts[0], parts[1]), Refused::Signature),
        (format!("{}.{}", parts[0], parts[1]), Refused::Malformed),
        (format!("{}.{}.!", parts[0], parts[1]), Refused::Malformed),
        (String::new(), Refused::Malformed),
        ("..".into(), Refused::Algorithm),
        ("a.b.c.d".into(), Refused::Malformed),
    ] {
        assert_eq!(judge().judge(&Secret::new(&*token), &signer.keys()).unwrap_err(), why, "{token}");
    }
}

#[test]
fn a_public_key_is_never_taken_for_a_shared_secret() {
    let signer = Signer::new();
    // The classic: HS256, with the bytes of the public key as the secret.
    let message =
        format!("{}.{}", encode(with(header(), "alg", json!("HS256")).to_string()), encode(claims().to_string()));
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, signer.0.public_key().as_ref());
    let token = Secret::new(format!("{message}.{}", encode(ring::hmac::sign(&key, message.as_bytes()))));
    assert_eq!(judge().judge(&token, &signer.keys()).unwrap_err(), Refused::Algorithm);
    let error = Judge::new(Issuer { algorithms: vec!["HS256".into()], ..issuer() }).err().unwrap();
    assert!(error.to_string().contains("HS256"), "{error}");
    let open = Issuer { keys: "https://u:p@id/keys".into(), ..issuer() };
    for wrong in [open, Issuer { audience: String::new(), ..issuer() }, Issuer { algorithms: vec![], ..issuer() }] {
        assert!(Judge::new(wrong).is_err());
    }
    for (keys, is_taken) in [
        ("http://id.example/keys", false),
        ("http://127.0.0.1.example:80/keys", false),
        ("http://[::2]:80/keys", false),
        ("http://127.0.0.1:80/keys", true),
        ("http://[::1]/keys", true),
        ("http://localhost:80", true),
    ] {
        let judge = Judge::new(Issuer { keys: keys.into(), ..issuer() });
        assert_eq!(judge.is_ok(), is_taken, "{keys}");
        assert!(judge.err().is_none_or(|error| error.to_string().contains("in the clear")), "{keys}");
    }
    // Nor is a secret among the keys.
    assert!(keys(&json!({ "keys": [{ "kty": "oct", "k": "c2VjcmV0", "kid": "one" }] })).is_empty());
}

#[test]
fn a_key_is_used_for_nothing_that_it_is_not_for() {
    let signer = Signer::new();
    let token = signer.sign(&header(), &claims());
    for (name, value) in [("use", "enc"), ("alg", "ES384"), ("alg", "RSA-OAEP"), ("crv", "P-384"), ("kty", "what")] {
        let set = keys(&json!({ "keys": [with(signer.jwk("one"), name, json!(value))] }));
        assert_eq!(judge().judge(&token, &set).unwrap_err(), Refused::UnknownKey, "{name} {value}");
    }
    let twice = keys(&json!({ "keys": [signer.jwk("one"), Signer::new().jwk("one")] }));
    assert_eq!(judge().judge(&token, &twice).unwrap_err(), Refused::UnknownKey);
}

#[test]
fn ed25519_keys_sign_as_well() {
    let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    let pair = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap();
    let set = json!({ "keys": [
        { "kty": "OKP", "crv": "Ed25519", "kid": "one", "x": encode(pair.public_key().as_ref()) },
    ] });
    let message =
        format!("{}.{}", encode(with(header(), "alg", json!("EdDSA")).to_string()), encode(claims().to_string()));
    let token = Secret::new(format!("{message}.{}", encode(pair.sign(message.as_bytes()))));
    assert!(judge().judge(&token, &keys(&set)).is_ok());
}

#[test]
fn what_is_no_key_set_is_an_error() {
    for noise in ["", "{}", "[]", "{\"keys\": 3}", "\u{0}"] {
        assert!(Keys::read(Path::new("x"), noise.as_bytes()).is_err(), "{noise}");
    }
    let many = json!({ "keys": vec![json!({}); 65] }).to_string();
    assert!(Keys::read(Path::new("x"), many.as_bytes()).is_err());
    assert_eq!(keys(&json!({ "keys": [{}, 3, { "kty": "RSA" }, Signer::new().jwk("a")] })).len(), 1);
}

#[test]
fn roles_count_only_from_an_issuer_that_may_give_them() {
    let signer = Signer::new();
    let token = signer.sign(&header(), &with(claims(), "roles", json!(["admin", "metrics", "user", "team-a"])));
    let roles = |may_give: Option<&[&str]>| {
        let may_give = may_give.map(|roles| roles.iter().map(|role| (*role).to_owned()).collect());
        let judge = Judge::new(Issuer { may_give, ..issuer() }).unwrap();
        judge.judge(&token, &signer.keys()).unwrap().roles().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(roles(None), "team-a user", "what opens a node is for its own configuration to give");
    assert_eq!(roles(Some(&["admin", "team-*"])), "admin team-a");
    assert_eq!(roles(Some(&["*"])), "admin metrics team-a user");
    assert_eq!(roles(Some(&[])), "");
}

#[test]
fn a_name_that_would_be_cut_is_refused() {
    let signer = Signer::new();
    let judged = |len: usize| {
        let token = signer.sign(&header(), &with(claims(), "sub", json!("a".repeat(len))));
        judge().judge(&token, &signer.keys()).map(|ada| ada.name().len())
    };
    assert_eq!((judged(256), judged(257)), (Ok(256), Err(Refused::Claims)));
}

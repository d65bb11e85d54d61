//! Payloads, and the codecs that read them.

use greenroom_wire::codec::{self, DecodeError};
use serde::{Deserialize, Serialize};

fn json(value: &str) -> Vec<u8> {
    [&[2, 1], value.as_bytes()].concat()
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Post {
    user: String,
    #[serde(default)]
    tags: Vec<u8>,
}

#[derive(Deserialize, Debug)]
struct Nested(#[expect(dead_code, reason = "only its depth matters")] Vec<Nested>);

#[test]
fn a_payload_without_codec_or_with_an_unknown_one_is_refused() {
    assert_eq!(codec::decode::<()>(&[]), Err(DecodeError::Empty));
    assert_eq!(codec::decode::<()>(&[1]), Err(DecodeError::Empty));
    assert_eq!(codec::decode::<()>(&[9, 0, 0xc0]), Err(DecodeError::UnknownCodec { tag: 9 }));
}

#[test]
fn a_wrong_field_is_named_by_its_path() {
    let Err(DecodeError::WrongType { path, .. }) =
        codec::decode::<Post>(b"\x01\x01\x82\xa4user\xa1a\xa4tags\x92\x01\xa1x")
    else {
        panic!()
    };
    assert_eq!(&*path, "tags[1]");
    let Err(DecodeError::WrongType { path, .. }) = codec::decode::<Post>(&json(r#"{"user":"a","tags":[1,"x"]}"#))
    else {
        panic!()
    };
    assert_eq!(&*path, "tags[1]");
    let Err(DecodeError::WrongType { what, .. }) = codec::decode::<Post>(b"\x01\x01\x80") else { panic!() };
    assert!(what.contains("`user`"), "{what}");
}

#[test]
fn broken_bytes_are_malformed() {
    for payload in [
        &b"\x01\x01"[..],
        b"\x01\x01\x81\xa4us",
        b"\x01\x01\x81\xa4user\xc1",
        b"\x01\x01\x81\xa4user\xdb\xff\xff\xff\xff",
    ] {
        assert!(matches!(codec::decode::<Post>(payload), Err(DecodeError::Malformed { .. })), "{payload:?}");
    }
    for payload in ["", "{\"user\":", "{user}"] {
        assert!(matches!(codec::decode::<Post>(&json(payload)), Err(DecodeError::Malformed { .. })), "{payload:?}");
    }
}

#[test]
fn bytes_after_the_value_are_refused() {
    assert_eq!(codec::decode::<Post>(b"\x01\x01\x81\xa4user\xa1a\xc0"), Err(DecodeError::Trailing));
    assert_eq!(codec::decode::<Post>(b"\x01\x01\x81\xa4user\xa1a\xff"), Err(DecodeError::Trailing));
    assert_eq!(codec::decode::<u8>(&json("1 2")), Err(DecodeError::Trailing));
    assert_eq!(codec::decode::<u8>(&json("1 \n")), Ok(1));
}

#[test]
fn a_value_nested_too_deeply_is_refused() {
    let mut payload = vec![1, 1];
    payload.extend([0x91; 100_000]);
    assert!(matches!(codec::decode::<Nested>(&payload), Err(DecodeError::TooDeep { .. })));
    payload[2..].fill(b'[');
    payload[0] = 2;
    assert!(matches!(codec::decode::<Nested>(&payload), Err(DecodeError::TooDeep { .. })));
}

#[test]
fn an_unknown_field_nested_too_deeply_is_refused() {
    let mut payload = b"\x01\x01\x82\xa1x".to_vec();
    payload.extend([0x91; 100_000]);
    assert!(codec::decode::<Post>(&payload).is_err());
}

#[test]
fn an_unknown_field_is_skipped_and_a_missing_one_defaulted() {
    let post = Post { user: "a".into(), tags: vec![] };
    assert_eq!(codec::decode::<Post>(b"\x01\x01\x82\xa4user\xa1a\xa4mood\x92\x01\xc0").as_ref(), Ok(&post));
    assert_eq!(codec::decode::<Post>(&json(r#"{"mood":[1,null],"user":"a"}"#)), Ok(post));
}

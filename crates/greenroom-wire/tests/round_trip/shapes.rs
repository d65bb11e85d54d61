//! Types of all shapes that serde has are read as the libraries of their formats read them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use bytes::BytesMut;
use greenroom_wire::codec::{self, Codec, DecodeError};
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, PartialEq, Clone, Debug)]
struct Shapes {
    small: (i8, u8, i16, u16),
    #[serde(rename = "wide numbers")]
    wide: [i64; 2],
    floats: (f32, f64),
    mark: char,
    nested: Option<Vec<Option<bool>>>,
    by_number: BTreeMap<i32, Unit>,
    by_truth: BTreeMap<bool, u64>,
    by_variant: BTreeMap<Plain, Newtype>,
    address: IpAddr,
    forms: Vec<Form>,
    tagged: Vec<Tagged>,
    untagged: Vec<Untagged>,
    #[serde(flatten)]
    rest: Flat,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    late: String,
}

#[derive(Serialize, Deserialize, PartialEq, Clone, Debug)]
struct Unit;

#[derive(Serialize, Deserialize, PartialEq, Clone, Debug)]
struct Newtype(Box<(u32, Unit)>);

#[derive(Serialize, Deserialize, PartialEq, Eq, PartialOrd, Ord, Clone, Debug)]
enum Plain {
    One,
    #[serde(rename = "2")]
    Two,
}

#[derive(Serialize, Deserialize, PartialEq, Clone, Debug)]
enum Form {
    Bare,
    New(i64),
    Pair(u8, Option<String>),
    Named { at: u64, of: Plain },
}

#[derive(Serialize, Deserialize, PartialEq, Clone, Debug)]
#[serde(tag = "is", rename_all = "snake_case")]
enum Tagged {
    Empty,
    Full { by: Vec<u16>, of: Plain },
}

#[derive(Serialize, Deserialize, PartialEq, Clone, Debug)]
#[serde(untagged)]
enum Untagged {
    Number(i64),
    Text(String),
    Two { left: bool, right: Option<f64> },
}

#[derive(Serialize, Deserialize, PartialEq, Clone, Debug)]
struct Flat {
    depth: u64,
    #[serde(flatten)]
    others: BTreeMap<String, String>,
}

fn plain() -> impl Strategy<Value = Plain> {
    prop_oneof![Just(Plain::One), Just(Plain::Two)]
}

fn form() -> impl Strategy<Value = Form> {
    prop_oneof![
        Just(Form::Bare),
        any::<i64>().prop_map(Form::New),
        (any::<u8>(), any::<Option<String>>()).prop_map(|(one, other)| Form::Pair(one, other)),
        (any::<u64>(), plain()).prop_map(|(at, of)| Form::Named { at, of }),
    ]
}

fn tagged() -> impl Strategy<Value = Tagged> {
    let full = (prop::collection::vec(any::<u16>(), 0..4), plain()).prop_map(|(by, of)| Tagged::Full { by, of });
    prop_oneof![Just(Tagged::Empty), full]
}

fn untagged() -> impl Strategy<Value = Untagged> {
    prop_oneof![
        any::<i64>().prop_map(Untagged::Number),
        ".{0,6}".prop_map(Untagged::Text),
        // What is a whole number in JSON would be read as one.
        (any::<bool>(), any::<Option<i16>>())
            .prop_map(|(left, right)| Untagged::Two { left, right: right.map(|half| f64::from(half) + 0.5) }),
    ]
}

fn shapes() -> impl Strategy<Value = Shapes> {
    // Numbers whose decimals JSON's library reads back exactly.
    let quarters = any::<(i16, i32)>().prop_map(|(single, double)| (f32::from(single) / 4.0, f64::from(double) / 4.0));
    let numbers = (any::<(i8, u8, i16, u16)>(), any::<[i64; 2]>(), quarters);
    let by_variant =
        prop::collection::btree_map(plain(), any::<u32>().prop_map(|number| Newtype(Box::new((number, Unit)))), 0..3);
    let maps = (
        prop::collection::btree_map(any::<i32>(), Just(Unit), 0..3),
        any::<BTreeMap<bool, u64>>(),
        by_variant,
        any::<Option<Vec<Option<bool>>>>(),
    );
    let lists = (
        prop::collection::vec(form(), 0..4),
        prop::collection::vec(tagged(), 0..3),
        prop::collection::vec(untagged(), 0..3),
    );
    let rest = (
        any::<char>(),
        any::<IpAddr>(),
        any::<u64>(),
        prop::collection::btree_map("x[a-z]{1,3}", ".{0,4}", 0..3),
        ".{0,3}",
    );
    (numbers, maps, lists, rest).prop_map(
        |((small, wide, floats), (by_number, by_truth, by_variant, nested), (forms, tagged, untagged), rest)| {
            let (mark, address, depth, others, late) = rest;
            Shapes {
                small,
                wide,
                floats,
                mark,
                nested,
                by_number,
                by_truth,
                by_variant,
                address,
                forms,
                tagged,
                untagged,
                rest: Flat { depth, others },
                late,
            }
        },
    )
}

fn payload(tag: u8, value: &[u8]) -> Vec<u8> {
    [&[tag, 1], value].concat()
}

proptest! {
    #[test]
    fn what_the_libraries_write_is_read_as_they_read_it(value in shapes()) {
        let named = rmp_serde::to_vec_named(&value).unwrap();
        prop_assert_eq!(rmp_serde::from_slice::<Shapes>(&named).ok(), Some(value.clone()));
        prop_assert_eq!(codec::decode::<Shapes>(&payload(1, &named)), Ok(value.clone()));
        let json = serde_json::to_vec(&value).unwrap();
        prop_assert_eq!(serde_json::from_slice::<Shapes>(&json).ok(), Some(value.clone()));
        prop_assert_eq!(codec::decode::<Shapes>(&payload(2, &json)), Ok(value));
    }

    #[test]
    fn lists_in_place_of_maps_are_read_in_the_order_of_the_fields(forms in prop::collection::vec(form(), 0..4)) {
        let bare = rmp_serde::to_vec(&forms).unwrap();
        prop_assert_eq!(codec::decode::<Vec<Form>>(&payload(1, &bare)), Ok(forms));
    }

    #[test]
    fn damaged_values_are_read_as_the_library_reads_them_or_refused(
        value in shapes(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..3),
    ) {
        let mut named = rmp_serde::to_vec_named(&value).unwrap();
        for (at, byte) in damage {
            let at = at.index(named.len());
            named[at] = byte;
        }
        if let Ok(read) = codec::decode::<Shapes>(&payload(1, &named)) {
            // Not a number is not itself.
            let library = rmp_serde::from_slice::<Shapes>(&named).unwrap();
            prop_assert_eq!(format!("{read:?}"), format!("{library:?}"));
        }
    }

    #[test]
    fn any_json_is_read_or_refused_as_its_library_does(value in shapes(), cut in any::<prop::sample::Index>(), byte: u8) {
        let mut json = serde_json::to_vec(&value).unwrap();
        let at = cut.index(json.len());
        json[at] = byte;
        let read = codec::decode::<serde_json::Value>(&payload(2, &json));
        let library = serde_json::from_slice::<serde_json::Value>(&json);
        prop_assert_eq!(read.ok(), library.ok());
    }
}

fn round_trip<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: T) {
    let mut batch = BytesMut::new();
    codec::encode(Codec::MessagePack, 1, &value, &mut batch).unwrap();
    assert_eq!(codec::decode::<T>(&batch), Ok(value));
}

#[test]
fn numbers_of_128_bits_are_read_and_in_json_also_as_texts() {
    for value in [0, 1, u128::from(u64::MAX), u128::MAX] {
        round_trip(value);
        assert_eq!(codec::decode::<u128>(&payload(2, format!("\"{value}\"").as_bytes())), Ok(value));
    }
    for value in [i128::MIN, -1, 0, i128::MAX] {
        round_trip(value);
        assert_eq!(codec::decode::<i128>(&payload(2, format!("\"{value}\"").as_bytes())), Ok(value));
    }
    assert_eq!(codec::decode::<u128>(&payload(2, b"7")), Ok(7));
    let Err(DecodeError::WrongType { what, .. }) = codec::decode::<u128>(&payload(2, b"-7")) else { panic!() };
    assert!(what.contains("u128"), "{what}");
}

#[test]
fn a_list_that_was_written_as_bytes_is_read() {
    assert_eq!(codec::decode::<Vec<u16>>(b"\x01\x01\xC4\x03\x01\x02\xFF"), Ok(vec![1, 2, 255]));
    assert_eq!(codec::decode::<(u8, i64)>(b"\x01\x01\xC4\x02\x01\xFF"), Ok((1, 255)));
    assert!(codec::decode::<(u8, i64)>(b"\x01\x01\xC4\x03\x01\xFF\x01").is_err());
    assert!(codec::decode::<Vec<String>>(b"\x01\x01\xC4\x01\x01").is_err());
}

#[test]
fn what_is_wrong_is_named_where_it_is() {
    #[derive(Deserialize, Debug)]
    struct Order {
        #[expect(dead_code, reason = "only read")]
        lines: Vec<BTreeMap<String, Form>>,
        #[expect(dead_code, reason = "only read")]
        by: Option<Flat>,
    }
    let cases = [
        (r#"{"lines": [{"a": {"New": 1}, "b": {"New": "x"}}]}"#, "lines[0].b.New", "invalid type"),
        (r#"{"lines": [{}, {"b": {"Named": {"at": 1}}}]}"#, "lines[1].b.Named.of", "missing field `of`"),
        (r#"{"lines": [{}, {"b": {"Pair": [1]}}]}"#, "lines[1].b.Pair", "invalid length 1"),
        (r#"{"lines": [{"b": "Pair"}]}"#, "lines[0].b", "unit variant"),
        (r#"{"lines": [{"b": "Bear"}]}"#, "lines[0].b", "unknown variant `Bear`"),
        (r#"{"lines": 7}"#, "lines", "invalid type: integer `7`"),
        (r#"{"by": null}"#, "lines", "missing field `lines`"),
        (r#"[1]"#, "[0]", "invalid type"),
        (r#"7"#, ".", "invalid type"),
    ];
    for (json, at, message) in cases {
        let value: serde_json::Value = serde_json::from_str(json).unwrap();
        let named = rmp_serde::to_vec_named(&value).unwrap();
        for payload in [payload(2, json.as_bytes()), payload(1, &named)] {
            let Err(DecodeError::WrongType { path, what }) = codec::decode::<Order>(&payload) else { panic!("{json}") };
            assert_eq!(&*path, at, "{json}: {what}");
            assert!(what.contains(message), "{json}: {what}");
        }
    }
}

//! Documents from outside, and what they are known by.

use greenroom_describe::{Description, Digest, Error, LEN_MAX};
use proptest::prelude::*;
use serde_json::{Value, json};

/// What every SDK's tests read too: documents with their canonical bytes and digests.
const GOLDEN: &str = include_str!("../golden/descriptions.json");

/// Something else in a document.
type Change = fn(&mut Value);

fn room() -> Value {
    json!({
        "greenroom": 1, "kind": "chat_room", "version": 2, "compatible": 1, "doc": "A room.",
        "options": {"idle_ms": 60000},
        "methods": [
            {"name": "post", "doc": "Says it.", "read": false,
             "arguments": {"type": "object", "x-order": ["user", "text"], "required": ["user", "text"],
                           "properties": {"text": {"type": "string"}, "user": {"type": "string", "x-rust": "String"}}},
             "reply": {"type": "boolean"}, "error": {"$ref": "#/$defs/NotMember"}, "stream": null, "states": null},
            {"name": "history", "read": true, "arguments": {"type": "object", "properties": {"from": {"type": "integer"}}},
             "stream": {"$ref": "#/$defs/Entry"}}
        ],
        "states": [{"name": "self", "version": 1}],
        "topics": [{"namespace": "prices", "method": "post"}],
        "$defs": {
            "Entry": {"type": "object", "title": "Entry",
                      "properties": {"doc": {"type": "string"}, "answers": {"type": "array", "items": {"$ref": "#/$defs/Entry"}}}},
            "NotMember": {"type": "object", "properties": {"user": {"type": "string"}}, "required": ["user"]}
        }
    })
}

fn read(document: &Value) -> Result<Description, Error> {
    Description::read(document.to_string().as_bytes())
}

fn good(document: &Value) -> Description {
    read(document).unwrap_or_else(|error| panic!("{error}"))
}

fn why(document: &Value) -> String {
    read(document).expect_err("it is refused").to_string()
}

/// The room after `change`.
fn changed(change: impl FnOnce(&mut Value)) -> Value {
    let mut room = room();
    change(&mut room);
    room
}

#[test]
fn what_is_read_is_what_was_written() {
    let room = good(&room());
    assert_eq!((&*room.kind, room.version, room.options.idle_ms), ("chat_room", 2, Some(60_000)));
    let names: Vec<&str> = room.methods[0].arguments.members().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["user", "text"], "in the order in which they are written");
    assert!(room.methods[1].stream.is_some() && room.methods[1].reply.is_none());
    let again = Description::of(&room).expect("contents make a document");
    assert_eq!(again.differences(&room), []);
}

#[test]
fn golden_documents_have_golden_bytes_and_digests() {
    let golden: Vec<Value> = serde_json::from_str(GOLDEN).expect("the file is JSON");
    assert!(golden.len() >= 3);
    for case in golden {
        let description = good(&case["document"]);
        let canonical = String::from_utf8(description.canonical()).expect("JSON is text");
        assert_eq!(canonical, case["canonical"], "{}", case["name"]);
        assert_eq!(description.digest().to_string(), case["digest"], "{}", case["name"]);
    }
}

#[test]
fn docs_and_annotations_do_not_count_but_members_of_these_names_do() {
    let plain = good(&room()).digest();
    let undocumented = changed(|room| {
        room.as_object_mut().expect("an object").remove("doc");
        room["methods"][0].as_object_mut().expect("an object").remove("stream");
        room["methods"][0]["arguments"]["properties"]["user"] = json!({"type": "string", "description": "who"});
    });
    assert_eq!(good(&undocumented).digest(), plain);
    let without = changed(|room| {
        room["$defs"]["Entry"]["properties"].as_object_mut().expect("an object").remove("doc");
    });
    assert_ne!(good(&without).digest(), plain, "a member called `doc` is no doc");
    let guessed = changed(|room| room["methods"][0]["reply"] = json!({"x-guess": {"type": "boolean"}}));
    let unknown = changed(|room| room["methods"][0]["reply"] = json!(true));
    assert_eq!(good(&guessed).digest(), good(&unknown).digest());
}

#[test]
fn numbers_are_known_by_what_all_languages_make_of_them() {
    let bounded = |bound: &str| {
        let text = room().to_string().replace(r#"{"type":"boolean"}"#, &format!(r#"{{"maximum":{bound}}}"#));
        let canonical = Description::read(text.as_bytes()).expect("it is a description").canonical();
        let canonical = String::from_utf8(canonical).expect("JSON is text");
        canonical.split_once("\"maximum\":").expect("it is there").1.split('}').next().expect("it ends").to_owned()
    };
    assert_eq!((bounded("7.0"), bounded("-0.0"), bounded("7e3")), ("7".to_owned(), "0".to_owned(), "7000".to_owned()));
    assert_eq!(bounded("281474976710656"), "281474976710656");
    assert_eq!(bounded("18446744073709551615"), "\"f32:5f800000\"");
    assert_eq!(bounded("9007199254740993"), bounded("9007199254740993.0"));
    assert_eq!((bounded("0.1"), bounded("-1e300")), ("\"f32:3dcccccd\"".to_owned(), "\"f32:ff800000\"".to_owned()));
}

#[test]
fn what_is_too_much_is_refused_by_name() {
    let long = changed(|room| room["doc"] = "d".repeat(LEN_MAX).into());
    assert!(why(&long).contains("262144 are the most"), "{}", why(&long));
    let deep = changed(|room| {
        room["methods"][0]["reply"] = (0..70).fold(json!(true), |below, _| json!({ "items": below }));
    });
    assert!(why(&deep).contains("nested deeper"), "{}", why(&deep));
    assert!(matches!(Description::read(&b"[".repeat(100_000)), Err(Error::NotJson(_))));
    let methods: Vec<Value> = (0..257).map(|at| json!({ "name": format!("m{at}") })).collect();
    assert!(why(&changed(|room| room["methods"] = methods.into())).contains("`methods`: there are 257; 256"));
    let arguments: serde_json::Map<String, Value> = (0..65).map(|at| (format!("a{at}"), json!(true))).collect();
    let many = changed(|room| room["methods"][1]["arguments"]["properties"] = arguments.into());
    assert!(why(&many).contains("methods[1].arguments"), "{}", why(&many));
}

#[test]
fn what_is_wrong_is_named_with_its_path() {
    let cases: &[(&str, Change)] = &[
        ("format 2", |room| room["greenroom"] = 2.into()),
        ("`greenroom`", |room| room["greenroom"] = "1".into()),
        ("`kind`", |room| room["kind"] = "chat room".into()),
        ("with a letter or digit among them", |room| room["kind"] = "-".into()),
        ("with a letter or digit among them", |room| room["kind"] = "..".into()),
        ("`compatible`", |room| room["compatible"] = 3.into()),
        ("`methods[0].read`", |room| room["methods"][0]["read"] = "no".into()),
        ("`methods[0].name`", |room| room["methods"][0]["name"] = "post/../x".into()),
        ("there is a method `post`", |room| room["methods"][1]["name"] = "post".into()),
        ("`methods[0].arguments`", |room| room["methods"][0]["arguments"] = json!({"type": "array"})),
        ("`methods[0].arguments`", |room| room["methods"][0]["arguments"]["type"] = json!(["object", "null"])),
        ("there is no argument \"when\"", |room| room["methods"][0]["arguments"]["required"] = json!(["when"])),
        ("with a stream", |room| room["methods"][1]["reply"] = json!(true)),
        ("`methods[0].reply.items.$ref`", |room| {
            room["methods"][0]["reply"]["items"] = json!({"$ref": "#/$defs/None"})
        }),
        ("`methods[0].reply.$ref`", |room| room["methods"][0]["reply"] = json!({"$ref": "http://localhost/secret"})),
        ("`$id`", |room| room["$defs"]["Entry"]["$id"] = "http://localhost/".into()),
        ("`$defs.Entry.properties.doc`", |room| room["$defs"]["Entry"]["properties"]["doc"] = 7.into()),
        ("refers to itself", |room| room["$defs"]["Entry"] = json!({"$ref": "#/$defs/Entry"})),
        ("`methods[0].states`", |room| room["methods"][0]["states"] = json!({"Init": "run"})),
        ("`options.start`", |room| room["options"]["start"] = "Init".into()),
        ("`options.instances`", |room| room["options"]["instances"] = "two".into()),
        ("`topics[0]`", |room| room["topics"][0]["method"] = "none".into()),
        ("`states[0]`", |room| room["states"][0]["version"] = 0.into()),
    ];
    for (named, change) in cases {
        let why = why(&changed(*change));
        assert!(why.contains(named), "{why} names no {named}");
    }
}

#[test]
fn differences_are_named_and_what_is_not_known_is_none() {
    let differences = |change: Change| -> Vec<String> {
        let changed = good(&changed(change));
        good(&room()).differences(&changed).iter().map(ToString::to_string).collect()
    };
    assert!(differences(|room| room["methods"][0]["arguments"] = true.into()).is_empty());
    assert!(differences(|room| room["doc"] = "Another room.".into()).is_empty());
    assert!(differences(|room| room["methods"][0]["error"] = room["$defs"]["NotMember"].clone()).is_empty());
    let cases: &[(Change, &str)] = &[
        (|room| room["version"] = 3.into(), "version: 2 compatible with 1, not 3 compatible with 1"),
        (|room| room["options"] = json!({"persistent": true, "idle_ms": 60000}), "option `persistent`: null, not true"),
        (|room| room["methods"][0]["read"] = true.into(), "method `post`: an exclusive turn, not a read"),
        (
            |room| room["methods"][0]["arguments"]["properties"]["user"] = json!({"type": "integer"}),
            "method `post`, argument `user`: string, not integer",
        ),
        (
            |room| room["methods"][0]["arguments"]["required"] = json!(["user"]),
            "method `post`, argument `text`: it must be there, where it may be missing",
        ),
        (
            |room| room["$defs"]["NotMember"]["properties"] = json!({"user": {"type": "string"}, "since": true}),
            "method `post`, error, member `since`: it is missing",
        ),
        (
            |room| room["$defs"]["Entry"]["properties"]["doc"] = json!({"type": ["string", "null"]}),
            "method `history`, item, member `doc`: string, not null or string",
        ),
        (|room| room["states"] = json!([]), "states: not the same ones in the same versions"),
    ];
    for (change, told) in cases {
        assert_eq!(differences(*change), [*told]);
    }
    let renamed = differences(|room| room["methods"][1]["name"] = "tail".into());
    assert_eq!(renamed, ["method `tail`: it is missing", "method `history`: it is new"]);
}

#[test]
fn types_that_name_each_other_in_many_places_are_compared_in_bounded_time() {
    let defs: serde_json::Map<String, Value> = (0..10)
        .map(|at| {
            let below = json!({ "$ref": format!("#/$defs/T{}", (at + 1) % 10) });
            let members: serde_json::Map<String, Value> =
                (0..100).map(|at| (format!("m{at}"), below.clone())).collect();
            (format!("T{at}"), json!({ "type": "object", "properties": members }))
        })
        .collect();
    let wide = good(&changed(|room| {
        room["$defs"] = defs.into();
        room["methods"][0]["error"] = json!({"$ref": "#/$defs/T0"});
        room["methods"][1]["stream"] = json!({"$ref": "#/$defs/T1"});
    }));
    assert_eq!(wide.differences(&wide), []);
}

#[test]
fn a_digest_is_written_and_read() {
    let digest = good(&room()).digest();
    assert_eq!(digest.to_string().parse::<Digest>(), Ok(digest));
    for wrong in ["", "00", &"0".repeat(65), &"G".repeat(64), &"A".repeat(64)] {
        assert!(wrong.parse::<Digest>().is_err(), "{wrong}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_a_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Description::read(&bytes);
    }

    /// Whatever stands in one place of a document, it is read or refused, and what is read keeps its digest.
    #[test]
    fn no_value_in_any_place_makes_a_reader_panic(value in value(), at in 0_usize..64) {
        let mut room = room();
        replace(&mut room, &mut at.clone(), &value);
        if let Ok(description) = read(&room) {
            prop_assert_eq!(good(description.document()).digest(), description.digest());
            prop_assert_eq!(description.differences(&description), []);
        }
    }
}

/// Puts `value` in place number `left` of the document.
fn replace(document: &mut Value, left: &mut usize, value: &Value) {
    if *left == 0 {
        *document = value.clone();
        *left = usize::MAX;
        return;
    }
    *left -= 1;
    match document {
        Value::Array(values) => values.iter_mut().for_each(|below| replace(below, left, value)),
        Value::Object(members) => members.values_mut().for_each(|below| replace(below, left, value)),
        _ => {}
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z$/#]{0,9}".prop_map(Value::from),
        Just(json!({"$ref": "#/$defs/Entry"})),
    ];
    leaf.prop_recursive(3, 16, 4, |below| {
        let name =
            prop_oneof!["[a-z]{1,4}", Just("properties".to_owned()), Just("items".to_owned()), Just("type".to_owned())];
        prop_oneof![
            proptest::collection::vec(below.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(name, below, 0..4).prop_map(|members| members.into_iter().collect()),
        ]
    })
}

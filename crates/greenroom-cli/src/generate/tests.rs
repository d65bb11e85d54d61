//! What is written of a description, byte by byte: `tsc --strict`, `pyright` and `go vet` took the same files.

use greenroom_describe::Description;
use serde_json::json;

use super::{camel, go, identifier, proto, python, typescript};

fn description() -> Description {
    Description::of_document(json!({
        "greenroom": 1, "kind": "chat_room", "version": 2, "doc": "A room with \"quotes\" and */.",
        "methods": [
            {"name": "post", "doc": "Says it to all.", "arguments": {"type": "object", "x-order": ["user", "text", "mood"],
                "required": ["user", "text"], "properties": {"user": {"type": "string"}, "text": {"type": "string"},
                "mood": {"$ref": "#/$defs/Mood"}}},
             "reply": {"type": "integer"}, "error": {"$ref": "#/$defs/NotMember"}},
            {"name": "history", "read": true, "arguments": {"type": "object", "properties": {"start": {"type": ["integer", "null"], "maximum": 9}}},
             "stream": {"$ref": "#/$defs/Entry"}},
            {"name": "names", "read": true, "arguments": {"type": "object", "properties": {}},
             "reply": {"type": "object", "additionalProperties": {"type": "array", "prefixItems": [{"type": "boolean"}, {"type": "number"}]}}},
            {"name": "clear", "arguments": {"type": "object", "properties": {}}, "reply": {"type": "null"}},
            {"name": "plant", "arguments": {"type": "object", "required": ["tree"], "properties": {"tree": {"$ref": "#/$defs/Tree"}}},
             "reply": {"$ref": "#/$defs/Index"}},
            {"name": "other", "reply": {"x-guess": {"type": "string"}}},
        ],
        "$defs": {
            "Entry": {"type": "object", "required": ["user", "class"], "properties": {"user": {"type": "string"}, "class": {"type": "integer"},
                "answers": {"type": "array", "items": {"$ref": "#/$defs/Entry"}}}},
            "Index": {"type": "object", "additionalProperties": {"$ref": "#/$defs/Index"}},
            "Tree": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
            "Mood": {"oneOf": [{"const": "Calm"}, {"type": "string", "enum": ["Glad", "Sad"]}]},
            "NotMember": {"type": "object", "properties": {"user": {"type": "string"}}, "required": ["user"]},
        },
    }))
    .expect("it is a description")
}

fn golden(name: &str) -> String {
    let path = format!("{}/src/generate/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn a_python_module_is_what_it_was() {
    assert_eq!(python::module(&description()), golden("chat_room.py"));
}

#[test]
fn a_typescript_module_is_what_it_was() {
    assert_eq!(typescript::module(&description()), golden("chat_room.ts"));
}

#[test]
fn a_go_file_is_what_it_was() {
    assert_eq!(go::file(&description(), "actors"), golden("chat_room.go"));
    assert!(go::file(&description(), "go").contains("\npackage go_\n"), "a keyword is no package");
}

#[test]
fn a_proto_file_is_what_it_was() {
    assert_eq!(proto::file(&description(), ""), golden("chat_room.proto"));
}

#[test]
fn a_field_keeps_its_number_and_none_is_given_again() {
    let of = |properties: serde_json::Value| {
        let required: Vec<_> = properties.as_object().into_iter().flat_map(|all| all.keys()).collect();
        let arguments = json!({"type": "object", "properties": properties, "required": required});
        let document = json!({"greenroom": 1, "kind": "k", "methods": [{"name": "m", "arguments": arguments}]});
        Description::of_document(document).expect("it is a description")
    };
    let (text, number) = (json!({"type": "string"}), json!({"type": "integer"}));
    let first = proto::file(&of(json!({"b": text, "c": text})), "");
    assert!(first.contains("message MArguments {\n  string b = 1;\n  string c = 2;\n}"), "{first}");
    let second = proto::file(&of(json!({"a": text, "b": number})), &first);
    assert!(second.contains("message MArguments {\n  reserved 1, 2;\n  string a = 3;\n  int64 b = 4;\n}"), "{second}");
    let third = proto::file(&of(json!({"a": text, "b": text})), &second);
    assert!(
        third.contains("message MArguments {\n  reserved 1, 2, 4;\n  string a = 3;\n  string b = 5;\n}"),
        "{third}"
    );
    assert_eq!(proto::file(&of(json!({"a": text, "b": text})), &third), third);
}

#[test]
fn names_become_those_that_languages_take() {
    assert_eq!((identifier("odd.kind-1"), identifier("7up")), ("odd_kind_1".to_owned(), "_7up".to_owned()));
    assert_eq!(
        (camel("odd.kind-1"), camel("NotMember"), camel("größe")),
        ("OddKind1".to_owned(), "NotMember".to_owned(), "GrE".to_owned())
    );
}

//! What kinds say of themselves.

use std::collections::BTreeMap;

use greenroom::prelude::*;
use greenroom_describe::{Description, Handling};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::client::{call, get};
use crate::kinds::open;

/// Where something is.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Place {
    shelf: u8,
    #[serde(default)]
    note: Option<String>,
}

/// Nobody derives anything for it.
#[derive(Serialize, Deserialize)]
pub(crate) struct Plain {
    shelf: u8,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) enum ShelfError {
    Full { free: u32 },
    Locked,
}

/// A shelf in
/// the library.
///
/// This is not said.
#[derive(Default, Serialize, Deserialize, Actor)]
pub(crate) struct Shelf {
    titles: Vec<String>,
}

#[actor(persistent, idle = "5s", mailbox = 7, interface = 3, compatible = 2, save = "turn")]
impl Shelf {
    /// Puts a book there.
    pub async fn put(&mut self, title: String, at: Place, #[serde(default)] copies: u32) -> Result<bool, ShelfError> {
        let _ = (at.shelf, at.note, copies);
        self.titles.push(title);
        Ok(true)
    }

    pub async fn find(
        &self,
        words: Vec<String>,
        limit: Option<u16>,
        #[serde(rename = "in")] place: Plain,
    ) -> Option<Place> {
        let _ = (words, limit, place.shelf);
        None
    }

    pub async fn all(&self) -> impl Stream<Item = BTreeMap<String, (f64, char)>> {
        futures_util::stream::empty()
    }

    pub async fn clear(&mut self) {}
}

#[derive(Default, Actor)]
pub(crate) struct Gate {
    passed: Register<u64>,
}

#[actor(reliable, start = "Shut")]
impl Gate {
    #[on(pass, state = "Open", ignore = "Broken")]
    pub async fn let_pass(&mut self, cx: &Cx) -> Option<u64> {
        cx.jump("Shut");
        Some(*self.passed.get())
    }

    #[on(open, state = ["Shut", "Broken"], defer = "Open")]
    pub async fn unlock(&mut self, cx: &Cx) {
        cx.jump("Open");
    }
}

async fn library() -> (Node, String) {
    open(Node::builder().http("127.0.0.1:0").journal("memory:").register::<Shelf>().register::<Gate>()).await
}

async fn described(door: &str, kind: &str) -> Description {
    let answer = get(door, &format!("/-/kinds/{kind}")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let mut document = answer.json();
    let digest = document.as_object_mut().expect("an object").remove("digest").expect("it is told");
    let description = Description::of_document(document).expect("what a node says is within bounds");
    assert_eq!(digest, description.digest().to_string());
    description
}

#[tokio::test]
async fn a_kind_says_what_it_is_and_what_can_be_asked() {
    let (node, door) = library().await;
    let shelf = described(&door, "shelf").await;
    assert_eq!((shelf.version, shelf.compatible, &*shelf.doc), (3, 2, "A shelf in the library."));
    let options = json!({"persistent": true, "idle_ms": 5000, "mailbox": 7, "save": "turn"});
    assert_eq!(serde_json::to_value(&shelf.options).expect("it is JSON"), options);
    assert_eq!((&*shelf.states[0].name, shelf.states[0].version), ("self", 1));

    let put = &shelf.methods[0];
    assert_eq!((&*put.name, &*put.doc, put.read), ("put", "Puts a book there.", false));
    let arguments = json!({
        "type": "object", "x-order": ["title", "at", "copies"], "required": ["title", "at"],
        "properties": {
            "title": {"type": "string", "x-rust": "String"},
            "at": {"$ref": "#/$defs/Place", "x-rust": "Place"},
            "copies": {"type": "integer", "minimum": 0, "maximum": 4_294_967_295_u32, "x-rust": "u32"},
        },
    });
    assert_eq!(put.arguments.0, arguments);
    assert_eq!(put.reply.as_ref().map(|reply| &reply.0), Some(&json!({"type": "boolean", "x-rust": "bool"})));
    assert_eq!(
        put.error.as_ref().map(|error| &error.0),
        Some(&json!({"$ref": "#/$defs/ShelfError", "x-rust": "ShelfError"}))
    );
    assert_eq!(shelf.definitions["Place"].get("required"), Some(&json!(["shelf"])));

    let find = &shelf.methods[1].arguments;
    assert_eq!(find.members().iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["words", "limit", "in"]);
    assert_eq!((find.requires("words"), find.requires("limit"), find.requires("in")), (true, false, true));
    assert_eq!(find.0["properties"]["limit"]["type"], json!(["integer", "null"]));
    assert_eq!(find.0["properties"]["in"], json!({"x-rust": "Plain"}), "nobody has to derive anything");
    let all = &shelf.methods[2];
    let item = all.stream.as_ref().expect("it answers with a stream");
    assert_eq!(item.0["additionalProperties"]["prefixItems"][0]["type"], "number");
    assert_eq!((all.reply.is_none(), all.error.is_none()), (true, true));
    assert_eq!(shelf.methods[3].reply.as_ref().map(|reply| &reply.0["type"]), Some(&json!("null")));
    node.stop().await;
}

#[tokio::test]
async fn a_state_machine_says_which_messages_it_handles_in_which_states() {
    let (node, door) = library().await;
    let gate = described(&door, "gate").await;
    assert_eq!((gate.options.reliable, gate.options.start.as_deref()), (true, Some("Shut")));
    let states = |at: usize| gate.methods[at].states.clone().expect("it is a state machine");
    let named = |states: &[(&str, Handling)]| states.iter().map(|(name, how)| ((*name).to_owned(), *how)).collect();
    assert_eq!(states(0), named(&[("Broken", Handling::Ignore), ("Open", Handling::Run)]));
    assert_eq!(states(1), named(&[("Broken", Handling::Run), ("Open", Handling::Defer), ("Shut", Handling::Run)]));
    node.stop().await;
}

#[tokio::test]
async fn kinds_that_are_not_there_are_404_with_near_names() {
    let (node, door) = library().await;
    let listed = get(&door, "/-/kinds").await.json();
    let names: Vec<&Value> = listed["kinds"].as_array().expect("a list").iter().map(|kind| &kind["kind"]).collect();
    assert_eq!(names, ["gate", "shelf"], "the built-in kinds are nobody's to call");
    let problem = get(&door, "/-/kinds/shelv").await.problem(404, "unknown-kind");
    assert_eq!(problem["near"], json!(["shelf"]));
    get(&door, "/-/kinds/topics").await.problem(404, "unknown-kind");
    get(&door, &format!("/-/kinds/{}", "k".repeat(3000))).await.problem(404, "unknown-kind");
    call(&door, "/-/kinds", "").await.problem(405, "wrong-method");
    node.stop().await;
}

#[tokio::test]
async fn openapi_says_how_each_method_is_called_and_all_its_references_lead_somewhere() {
    let (node, door) = library().await;
    let document = get(&door, "/openapi.json").await.json();
    assert_eq!(document["openapi"], "3.1.0");
    let mut references = Vec::new();
    references_in(&document, &mut references);
    assert!(references.len() > 30);
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap_or_else(|| panic!("{reference} leads out of the document"));
        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
    let put = &document["paths"]["/shelf/{key}/put"]["post"];
    assert_eq!(put["requestBody"]["content"]["application/json"]["schema"]["required"], json!(["title", "at"]));
    let error =
        &put["responses"]["422"]["content"]["application/problem+json"]["schema"]["allOf"][1]["properties"]["error"];
    assert_eq!(error["$ref"], "#/components/schemas/shelf.ShelfError");
    assert!(
        document["paths"]["/shelf/{key}/all"]["get"]["responses"]["200"]["content"]["text/event-stream"].is_object()
    );
    assert!(document["paths"]["/shelf/{key}/find"]["get"].is_null(), "what is gotten is a stream");
    let keyed = |path: &str| document["paths"][path]["post"]["parameters"].to_string().contains("idempotency_key");
    assert!(keyed("/gate/{key}/pass") && !keyed("/shelf/{key}/put"), "reliable kinds alone keep answers");
    assert!(document.get("security").is_none(), "this door asks nobody for anything");
    assert_eq!(get(&door, "/openapi.json").await.json(), document, "asked twice, it says the same");
    node.stop().await;
}

#[tokio::test]
async fn what_is_missing_or_wrong_is_named_by_its_path() {
    let (node, door) = library().await;
    let put = |body: &'static str| call(&door, "/shelf/a/put", body);
    let field = |problem: Value| problem["field"].as_str().map(str::to_owned);
    let problem = put(r#"{"at": {"shelf": 1}}"#).await.problem(400, "invalid-arguments");
    assert_eq!(field(problem).as_deref(), Some("title"));
    let problem = put(r#"{"title": "t", "at": {"note": "n"}}"#).await.problem(400, "invalid-arguments");
    assert_eq!(field(problem).as_deref(), Some("at.shelf"));
    let problem = put(r#"{"title": "t", "at": {"shelf": 1, "note": 7}}"#).await.problem(400, "invalid-arguments");
    assert_eq!(field(problem).as_deref(), Some("at.note"));
    let find = call(&door, "/shelf/a/find", r#"{"words": ["a", 7], "in": {"shelf": 1}}"#).await;
    assert_eq!(field(find.problem(400, "invalid-arguments")).as_deref(), Some("words[1]"));
    node.stop().await;
}

fn references_in(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            found.extend(members.get("$ref").and_then(Value::as_str).map(str::to_owned));
            members.values().for_each(|below| references_in(below, found));
        }
        Value::Array(values) => values.iter().for_each(|below| references_in(below, found)),
        _ => {}
    }
}

//! Errors, as RFC 9457 problem documents.

mod classes;

use std::time::Duration;

use greenroom_protocols::node::View;
use hyper::StatusCode;
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use serde_json::{Map, Value, json};

use self::classes::{CLASSES, Class, RAN};
use super::answer::Answer;
use super::service;
use crate::actor::error::{Doubt, Failure, Refusal};

pub(super) use self::classes::explain;

/// An error that a client at a door is told.
#[derive(Debug)]
pub struct Problem {
    class: &'static Class,
    detail: String,
    /// Members beyond those that every problem has.
    members: Map<String, Value>,
    retry_after: Option<Duration>,
    allow: Option<&'static str>,
    /// What WWW-Authenticate says.
    challenge: Option<String>,
    /// Whether the rest of the request was not read.
    close: bool,
}

/// What an actor's own error says, as far as its value does: its text, its `message`, or the name of its variant.
fn in_words(error: &Value) -> String {
    let variant = |fields: &Map<String, Value>| match fields.len() {
        1 => fields.keys().next().cloned(),
        _ => None,
    };
    let named = match error {
        Value::String(text) => return text.clone(),
        Value::Object(fields) => match fields.get("message") {
            Some(Value::String(message)) => return message.clone(),
            _ => variant(fields),
        },
        _ => None,
    };
    match named {
        Some(name) => format!("the method returned its own error {name}; `error` has its value"),
        None => "the method returned its own error; `error` has its value".to_owned(),
    }
}

impl Problem {
    fn new(name: &str, detail: impl Into<String>) -> Self {
        let class = CLASSES.iter().find(|class| class.name == name).unwrap_or(&CLASSES[0]);
        Self {
            class,
            detail: detail.into(),
            members: Map::from_iter([("may_have_run".to_owned(), RAN.contains(&class.name).into())]),
            retry_after: None,
            allow: None,
            challenge: None,
            close: false,
        }
    }

    fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.members.insert(name.to_owned(), value.into());
        self
    }

    /// What a call ended with, if not with a reply.
    pub(super) fn of(failure: &Failure) -> Self {
        match failure {
            Failure::Refused(refusal) => Self::of_refusal(refusal),
            Failure::Unknown(doubt) => Self::of_doubt(doubt),
            Failure::Cycle(path) => Self::new("cycle", format!("the call chain would deadlock: {}", path.join(" -> ")))
                .with("path", path.clone()),
        }
    }

    fn of_refusal(refusal: &Refusal) -> Self {
        let name = match refusal {
            Refusal::UnknownKind { .. } => "unknown-kind",
            Refusal::UnknownMethod { .. } => "unknown-method",
            Refusal::Invalid { .. } => "invalid-arguments",
            Refusal::InvalidKey { .. } => "invalid-key",
            Refusal::DeadLetter { .. } => "dead-letter",
            Refusal::Expired(_) => "expired",
            Refusal::Overloaded { .. } | Refusal::Shed { .. } => "overloaded",
            Refusal::Stopping => "stopping",
            Refusal::Unsendable { .. } => "too-large",
            Refusal::Denied { .. } => "denied",
            Refusal::Version(gap) if gap.method.is_some() => "unknown-method",
            Refusal::Version(_) => "incompatible-version",
            Refusal::NotCommitted { .. } => "not-committed",
            Refusal::Unbound => "internal",
            _ => "unavailable",
        };
        let mut problem = Self::new(name, refusal.to_string()).with("may_have_run", false);
        problem.retry_after = refusal.retry_after();
        match refusal {
            Refusal::UnknownKind { kind, near } => problem.with("kind", kind.clone()).with("near", near.clone()),
            Refusal::UnknownMethod { kind, method, near } => {
                problem.with("kind", kind.clone()).with("method", method.clone()).with("near", near.clone())
            }
            Refusal::Version(gap) => problem
                .with("kind", gap.kind.clone())
                .with("wanted_version", gap.wanted)
                .with("hosts", gap.hosts.clone())
                .with("near", gap.near.clone()),
            Refusal::Invalid { field, .. } => problem.with("field", field.clone()),
            _ => problem,
        }
    }

    fn of_doubt(doubt: &Doubt) -> Self {
        let name = match doubt {
            Doubt::TimedOut(_) => "timed-out",
            Doubt::Panicked { .. } => "panicked",
            _ => "unknown-outcome",
        };
        Self::new(name, format!("{doubt}; the call may have run")).with("may_have_run", true)
    }

    /// The method's own error: its value, and what it says if it says anything.
    pub(super) fn actor_error(error: Value, says: Option<String>) -> Self {
        Self::new("actor-error", says.unwrap_or_else(|| in_words(&error))).with("error", error)
    }

    /// A subscription is asked for as a call, by which it could hold publishers back.
    pub(super) fn watch_instead() -> Self {
        let detail = "a topic is watched, and its method `subscribe` is not called: GET /topics/{name}, or a topic in the Stream of gRPC; \
            nothing ran";
        Self::new("denied", detail)
    }

    /// The body is compressed, or otherwise not as it is.
    pub(super) fn encoded_body() -> Self {
        let detail = "the body has a Content-Encoding; send it as it is, without one; nothing ran";
        Self::new("unsupported-encoding", detail).closing()
    }

    /// The message comes in a way that no endpoint takes apart.
    pub(super) fn encoded_transfer() -> Self {
        let detail = "the only Transfer-Encoding that is read here is `chunked`; nothing ran";
        Self::new("unsupported-transfer", detail).closing()
    }

    pub(super) fn long_head(max: usize) -> Self {
        Self::new("head-too-large", format!("the head of the request is over the limit of {max} bytes; nothing ran"))
            .closing()
    }

    pub(super) fn bad_request(why: &str) -> Self {
        Self::new("bad-request", why)
    }

    pub(super) fn bad_baggage(why: &str) -> Self {
        Self::new("bad-request", format!("the header baggage is not a list of key=value: {why}"))
            .with("field", "baggage")
    }

    pub(super) fn bad_timeout() -> Self {
        Self::new("bad-request", "Greenroom-Timeout is a number above zero and a unit, such as 500ms, 2s or 1m")
            .with("field", "Greenroom-Timeout")
    }

    pub(super) fn no_such_path(path: &str) -> Self {
        let shown: String = path.chars().take(200).collect();
        let detail = format!("there is nothing at {shown}; call an actor with POST /{{kind}}/{{key}}/{{method}}");
        Self::new("no-such-path", detail)
    }

    pub(super) fn wrong_method(allow: &'static str) -> Self {
        let mut problem = Self::new("wrong-method", format!("this path takes {allow}"));
        problem.allow = Some(allow);
        problem
    }

    pub(super) fn other_site(remedy: &str) -> Self {
        let detail = format!("a web page of another site must not ask for this from a browser{remedy}");
        let mut problem = Self::new("other-site", detail);
        problem.close = true;
        problem
    }

    /// A browser asks for a change, and its page does not say what for.
    pub(super) fn unnamed_change() -> Self {
        let detail = "a page that changes something says what for in the header Greenroom-Change, as the console does; \
            a program that sends neither Origin nor Sec-Fetch-Site needs none";
        Self::new("unnamed-change", detail)
    }

    /// A page asks for a change at a door whose pages change nothing.
    pub(super) fn only_looks(console: &str) -> Self {
        let detail = format!(
            "the pages of this node change nothing: its `console` is {console:?}; set `console = \"change\"`, or use the program `greenroom`"
        );
        Self::new("only-looks", detail)
    }

    /// The pages are switched off.
    pub(super) fn console_off() -> Self {
        let detail = "this node has no pages: its `console` is \"off\"; set it to \"look\" or \"change\", or ask for the same as JSON: GET / says where";
        Self::new("no-such-path", detail)
    }

    /// Who may not see the keys of `kind` chooses by one.
    pub(super) fn hidden_keys(kind: &str) -> Self {
        let detail = format!(
            "keys of kind {kind:?} are hidden from viewers (`hide_keys`), so nothing is looked up by them; ask for a kind whose keys are not, or as an operator"
        );
        Self::new("hidden-keys", detail).with("kind", kind)
    }

    pub(super) fn no_such_state(name: &str) -> Self {
        Self::new("no-such-state", format!("nothing is stored as {name:?}; GET /-/state says what is"))
    }

    pub(super) fn still_active(actor: &str, node: &str) -> Self {
        let detail = format!("{actor} is active on node {node}; deactivate it first, or say `?deactivate=true`");
        Self::new("still-active", detail)
    }

    pub(super) fn changed_meanwhile(name: &str) -> Self {
        Self::new(
            "changed-meanwhile",
            format!("{name:?} is not as it was seen: somebody else has written, or removed it; look again"),
        )
    }

    /// Nobody knows whether a change has been made.
    pub(super) fn unknown_outcome(why: &str) -> Self {
        Self::new("unknown-outcome", why).with("may_have_run", true)
    }

    #[cfg(not(feature = "console"))]
    pub(super) fn no_console() -> Self {
        let detail = "this program was built without the console; build it with greenroom's feature `console`, or ask \
            for the same as JSON: GET / says where";
        Self::new("no-such-path", detail)
    }

    /// Which door is asked for cannot be told.
    pub(super) fn bad_host(why: &str) -> Self {
        let mut problem = Self::new("bad-request", why).with("field", "Host");
        problem.close = true;
        problem
    }

    /// Another door is asked for than this one, as far as it knows its names.
    pub(super) fn unknown_host(host: &str) -> Self {
        let shown: String = host.chars().take(200).collect();
        let detail = format!(
            "this door is not known as {shown:?}; if it is meant to be, name it in `http_hosts` (--http-host) in the node's \
             configuration; nothing ran"
        );
        let mut problem = Self::new("unknown-host", detail).with("host", shown);
        problem.close = true;
        problem
    }

    pub(super) fn no_such_node(name: &str, view: &View) -> Self {
        let names: Vec<&str> = view.active().map(|(_, member)| member.name.as_str()).collect();
        let short: String = name.chars().take(200).collect();
        Self::new("no-such-node", format!("no active node is called {short:?}; there are {}", names.join(", ")))
    }

    /// Who asks is not known: no credentials came, or, `why` says, those that came are not good.
    pub(super) fn unauthenticated(why: Option<&'static str>) -> Self {
        let detail = match why {
            Some(why) => format!("{why}; nothing ran"),
            None => "this takes credentials: `Authorization: Bearer` and a token, or a client's certificate".to_owned(),
        };
        let error = why.map_or(String::new(), |why| format!(", error=\"invalid_token\", error_description=\"{why}\""));
        let mut problem = Self::new("unauthenticated", detail);
        problem.challenge = Some(format!("Bearer realm=\"greenroom\"{error}"));
        problem.close = true;
        problem
    }

    /// Only nodes that host the kind say what it is.
    pub(super) fn described_elsewhere(kind: &str, node: &str, door: Option<&str>) -> Self {
        let ask = door.map_or_else(|| "which has no HTTP door".to_owned(), |door| format!("whose door is {door}"));
        let detail = format!("this node does not host {kind:?}; ask node {node}, {ask}");
        Self::new("described-elsewhere", detail).with("kind", kind).with("ask", door.map(str::to_owned))
    }

    /// Who asks is known, and may not.
    pub(super) fn forbidden(who: &str, wanted: &str) -> Self {
        let detail = format!("nothing allows {who:?} to do this; {wanted}");
        let mut problem = Self::new("forbidden", detail).with("principal", who);
        problem.close = true;
        problem
    }

    /// Admin pages of a node without credentials, asked for from afar.
    pub(super) fn not_local() -> Self {
        let detail = "without credentials (`auth` in the node's configuration), this is only for who is on its machine and \
                      comes by no proxy";
        let mut problem = Self::new("forbidden", detail);
        problem.close = true;
        problem
    }

    pub(super) fn too_large(max: usize) -> Self {
        let mut problem =
            Self::new("too-large", format!("the body is over the limit of {max} bytes; send less")).with("limit", max);
        problem.close = true;
        problem
    }

    pub(super) fn slow_body(patience: Duration) -> Self {
        let seconds = patience.as_secs_f64();
        let mut problem =
            Self::new("slow-request", format!("the body did not come within {seconds} s; nothing ran, send it again"));
        problem.close = true;
        problem
    }

    pub(super) fn broken_body(error: &hyper::Error) -> Self {
        let mut problem = Self::new("bad-request", format!("the body ended early or is malformed: {error}"));
        problem.close = true;
        problem
    }

    pub(super) fn busy(what: &str) -> Self {
        let mut problem = Self::new("overloaded", format!("{what}; retry after a pause, or ask another node"));
        problem.retry_after = Some(Duration::from_secs(1));
        problem
    }

    /// Ends the connection with it.
    pub(super) fn closing(mut self) -> Self {
        self.close = true;
        self
    }

    pub(super) fn not_ready(why: &str) -> Self {
        let mut problem = Self::new("unavailable", why);
        problem.retry_after = Some(Duration::from_secs(1));
        problem
    }

    /// A method or a topic that answers with events was asked for something else.
    pub(super) fn only_events() -> Self {
        Self::new("only-events", "the answer is a stream of events; ask for it with `Accept: text/event-stream`")
    }

    /// Its type, in a word for programs.
    pub fn name(&self) -> &'static str {
        self.class.name
    }

    /// What is wrong, and what helps, for people.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// After which pause to try again, where that helps.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// The document of RFC 9457 with all that is known: `may_have_run`; of an actor's own error its value, `error`; of wrong
    /// arguments the path of what is wrong, `field`.
    pub fn document(&self) -> Value {
        let Self { class, detail, members, .. } = self;
        let mut document = json!({
            "type": format!("/-/problems/{}", class.name),
            "title": class.title,
            "status": class.status,
            "detail": detail,
        });
        if let Value::Object(document) = &mut document {
            document.extend(members.clone());
        }
        document
    }

    /// The answer with the document.
    pub(super) fn answer(self) -> Answer {
        let document = self.document();
        let Self { class, retry_after, allow, challenge, close, .. } = self;
        let status = StatusCode::from_u16(class.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut answer = service::json(status, &document);
        let headers = answer.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(pause) = retry_after {
            // Whole seconds are all that this header can say.
            let seconds = pause.as_secs_f64().ceil().max(1.0) as u64;
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(challenge) = challenge.and_then(|challenge| HeaderValue::try_from(challenge).ok()) {
            headers.insert(WWW_AUTHENTICATE, challenge);
        }
        if close {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if let Some(methods) = allow {
            service::allow(&mut answer, methods);
        }
        answer
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        Self::of_refusal(&refusal)
    }
}

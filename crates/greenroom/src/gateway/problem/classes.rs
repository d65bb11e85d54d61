//! The types of problems, and what each means.

/// A kind of problem.
#[derive(Debug)]
pub(super) struct Class {
    pub(super) name: &'static str,
    pub(super) status: u16,
    pub(super) title: &'static str,
    explanation: &'static str,
}

/// What a type of problem means, for who follows its `type`.
pub(in crate::gateway) fn explain(name: &str) -> Option<String> {
    let Class { status, title, explanation, .. } = CLASSES.iter().find(|class| class.name == name)?;
    Some(format!("{status} {title}\n\n{explanation}"))
}

const fn class(name: &'static str, status: u16, title: &'static str, explanation: &'static str) -> Class {
    Class { name, status, title, explanation }
}

/// The types of problems behind which a turn has begun, or may have.
pub(super) const RAN: [&str; 5] = ["internal", "actor-error", "panicked", "unknown-outcome", "timed-out"];

/// Every type of problem. The first stands for what has no name of its own.
pub(super) static CLASSES: [Class; 39] = [
    class("internal", 500, "Internal error", "The node is at fault. Please report it."),
    class("bad-request", 400, "Bad request", "The request is malformed; the detail says where."),
    class(
        "described-elsewhere",
        404,
        "Another node knows what the kind is",
        "Nodes describe the kinds that they host: `ask` is the address of the door of one that does.",
    ),
    class(
        "invalid-arguments",
        400,
        "The arguments do not fit the method",
        "`field` names the argument that is wrong. Nothing ran.",
    ),
    class(
        "invalid-key",
        400,
        "The key names no actor",
        "Keys are 1 to 400 bytes of UTF-8 without control characters; each `/` and `%` counts as three. Nothing ran.",
    ),
    class("denied", 403, "The call is denied", "Who may say so has not let it through. Nothing ran."),
    class("unauthenticated", 401, "Who are you?", "Send `Authorization: Bearer TOKEN`, or use a client's certificate."),
    class("forbidden", 403, "Not allowed", "The detail names the rule that would allow it. Nothing ran."),
    class(
        "dead-letter",
        410,
        "The actor has ended",
        "It was spawned, and has been stopped, has failed, or its node has left the cluster. Its key is never another's. \
         Nothing ran.",
    ),
    class(
        "other-site",
        403,
        "Not from another site",
        "Browsers say which site a page is from; it must be this one, or for calls and topics one of `http_origins`.",
    ),
    class(
        "unnamed-change",
        403,
        "A change without a reason",
        "A page that changes something says what for in the header Greenroom-Change. Nothing was changed.",
    ),
    class(
        "only-looks",
        403,
        "Pages of this node change nothing",
        "The node's `console` says so. Programs such as `greenroom` may change what their role allows. Nothing was changed.",
    ),
    class(
        "hidden-keys",
        403,
        "The keys of this kind are hidden",
        "The node's `hide_keys` names the kind: a viewer cannot ask for one of its actors by key. An operator can.",
    ),
    class("no-such-state", 404, "Nothing is stored there", "GET /-/state says what is."),
    class(
        "still-active",
        409,
        "The actor is active",
        "What is stored would be changed behind its back. Deactivate it first, or say `?deactivate=true`. Nothing was changed.",
    ),
    class(
        "changed-meanwhile",
        412,
        "Somebody else has written",
        "What is stored has another version than the one that was seen: look again. Nothing was changed.",
    ),
    class("no-such-node", 404, "No such node", "The detail names the nodes that there are."),
    class(
        "no-such-path",
        404,
        "No such path",
        "Call an actor with POST /{kind}/{key}/{method}; GET / says what there is.",
    ),
    class(
        "unknown-kind",
        404,
        "Unknown kind of actor",
        "No node of the cluster hosts the kind; `near` has names like it.",
    ),
    class("unknown-method", 404, "Unknown method", "The kind has no such method; `near` has names like it."),
    class("wrong-method", 405, "Method not allowed", "The header Allow says what this path takes."),
    class("only-events", 406, "An answer of events", "Ask with the header `Accept: text/event-stream`."),
    class("slow-request", 408, "The request came too slowly", "Its body was not complete in time. Nothing ran."),
    class(
        "cycle",
        409,
        "The calls wait for each other",
        "The call would have waited for itself, along `path`. Nothing ran.",
    ),
    class("too-large", 413, "Too large", "Send less, or raise the limit of the node. Nothing ran."),
    class("unsupported-encoding", 415, "Unsupported Content-Encoding", "Send the body as it is. Nothing ran."),
    class(
        "unsupported-transfer",
        501,
        "Unsupported Transfer-Encoding",
        "Send the body with its length, or chunked. Nothing ran.",
    ),
    class("head-too-large", 431, "The head is too large", "Send fewer or shorter header fields. Nothing ran."),
    class(
        "unknown-host",
        421,
        "Not a name of this door",
        "The door answers to its addresses, to localhost, to its advertised name and to what `http_hosts` names, so that no \
         other site can pass for it in a browser. Nothing ran.",
    ),
    class("actor-error", 422, "The actor refused", "The method ran and returned its own error, in `error`."),
    class("panicked", 500, "The actor panicked", "The turn did not end; the actor starts clean with its next call."),
    class(
        "not-committed",
        500,
        "The turn failed, and nothing has changed",
        "The turn of a reliable actor failed, and nothing of it was committed; the detail says what it failed by.",
    ),
    class("unknown-outcome", 502, "The outcome is not known", "The call may have run. Repeat only what may run twice."),
    class("overloaded", 503, "Overloaded", "A bounded queue is full. Nothing ran; retry after a pause."),
    class("stopping", 503, "The node is stopping", "Nothing ran; retry, another node will answer."),
    class(
        "incompatible-version",
        503,
        "No fitting version of the interface or the state",
        "`hosts` names the versions that there are, the detail what to upgrade. Nothing ran.",
    ),
    class("unavailable", 503, "Not available now", "Nothing ran; retry after a pause."),
    class("expired", 504, "The deadline passed in a queue", "The call's time was over before its turn. Nothing ran."),
    class("timed-out", 504, "No reply before the deadline", "The call may have run. Repeat only what may run twice."),
];

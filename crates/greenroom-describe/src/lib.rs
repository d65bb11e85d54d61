//! What a kind of actors says of itself: one JSON document, known by its digest.
//!
//! ```json
//! {"greenroom": 1, "kind": "chat_room", "version": 1, "compatible": 1, "doc": "A room.", "options": {"idle_ms": 60000},
//!  "methods": [{"name": "post", "read": false, "arguments": {"type": "object", "properties": {"user": {"type": "string"}},
//!               "required": ["user"]}, "reply": {"type": "boolean"}, "error": {"$ref": "#/$defs/NotMember"}}],
//!  "states": [{"name": "self", "version": 1}], "topics": [], "$defs": {"NotMember": {"type": "object"}}}
//! ```
//!
//! Types are JSON Schema 2020-12; what is not known is `true`. Members that this version does not know are kept and count in the
//! digest, so that a later one may add some. A document comes from outside until [`Description::read`] has read it: its length,
//! depth, names and references are bounded there, and nothing that is made of it is looked at again.
//!
//! Keywords of ours in schemas, which say nothing of what is valid: `x-rust`, the type as it is written; `x-order`, the names of
//! the arguments in the order in which they are written; `x-guess`, a schema that was guessed from how a type reads itself.

mod canonical;
mod check;
mod contents;
mod description;
mod difference;
mod error;
pub mod openapi;
pub mod schema;

pub use crate::canonical::Digest;
pub use crate::contents::{Contents, Handling, Method, Options, Save, State, Topic};
pub use crate::description::Description;
pub use crate::difference::Difference;
pub use crate::error::Error;
pub use crate::schema::{Schema, referred};

/// The version of the format that this program writes, and the only one that it reads.
pub const FORMAT: u32 = 1;
/// Longest document, in bytes.
pub const LEN_MAX: usize = 256 << 10;
/// Deepest nesting of a document.
pub const DEPTH_MAX: usize = 64;
/// Most methods of a kind.
pub const METHODS_MAX: usize = 256;
/// Most arguments of a method.
pub const ARGUMENTS_MAX: usize = 64;
/// Most members of an object's type.
pub const MEMBERS_MAX: usize = 512;
/// Most types under `$defs`.
pub const DEFINITIONS_MAX: usize = 1024;
/// Most states in a store, and most states of a state machine.
pub const STATES_MAX: usize = 64;
/// Most namespaces of topics.
pub const TOPICS_MAX: usize = 64;
/// Longest name of a kind, in bytes.
pub const KIND_LEN_MAX: usize = 64;
/// Longest of all other names, in bytes.
pub const NAME_LEN_MAX: usize = 128;

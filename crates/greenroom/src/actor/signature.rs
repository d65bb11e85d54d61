//! What `#[actor]` says of a kind's methods to people and to other languages: static data, which nobody looks at until somebody
//! asks for the kind's description.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

use super::error::Never;
use super::interface::Portable;
use super::key::Key;
use crate::stream::reply_stream::ReplyStream;

/// What a kind that is compiled in says of itself.
pub(crate) struct Declared {
    pub(crate) doc: &'static str,
    pub(crate) signatures: &'static [Signature],
    /// The states of a state machine, the first one first.
    pub(crate) states: &'static [&'static str],
}

/// One method.
pub struct Signature {
    /// The first paragraph of its docs.
    pub doc: &'static str,
    /// Its arguments, in the order in which they are written.
    pub parameters: &'static [Parameter],
    /// Whether these are all that may come, by these names.
    pub named: bool,
    /// What it answers with, as it is written.
    pub written: &'static str,
    /// What callers get: the items of a stream, or one value.
    pub reply: &'static Type,
    /// Its own error.
    pub error: &'static Type,
    /// That error, as it is written; empty if it is not.
    pub error_written: &'static str,
    /// Whether it answers with a stream.
    pub streams: bool,
    /// Of a state machine: states, and what becomes of its messages there.
    pub handled: &'static [(&'static str, &'static str)],
}

/// One argument.
pub struct Parameter {
    /// The name on the wire.
    pub name: &'static str,
    /// Its type as it is written.
    pub written: &'static str,
    /// What is known of its type.
    pub ty: &'static Type,
    /// Whether it must be there.
    pub required: bool,
}

/// What is known of a type where it is compiled.
pub enum Type {
    /// Nothing.
    Any,
    /// It has no values.
    Never,
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// A whole number within bounds.
    Integer {
        /// The least one.
        min: i128,
        /// The greatest one.
        max: i128,
    },
    /// Any number.
    Number,
    /// A text.
    Text,
    /// A text of one character.
    Character,
    /// A list.
    List(&'static Type),
    /// A list in which nothing is twice.
    Set(&'static Type),
    /// A list of so many values.
    Array(&'static Type, usize),
    /// A list of these values.
    Tuple(&'static [&'static Type]),
    /// An object of values by any names.
    Map(&'static Type),
    /// A value or `null`.
    Maybe(&'static Type),
    /// What the type's own `JsonSchema` says.
    #[cfg(feature = "schemars")]
    Schema(fn(&mut schemars::SchemaGenerator) -> schemars::Schema),
}

/// A type of the standard library, or of this one, whose values are known without asking.
pub trait Known {
    /// What they are.
    const TYPE: Type;
}

/// Asks whether a type is `Known`, where it is written: [`TYPE`](Typed::TYPE) is that of a known one, and of others that of
/// [`Untyped`].
pub struct Typed<T>(PhantomData<fn(T)>);

impl<T: Known> Typed<T> {
    /// What is known.
    pub const TYPE: Option<&'static Type> = Some(&T::TYPE);
}

/// Of other types nothing is known.
pub trait Untyped {
    /// Nothing.
    const TYPE: Option<&'static Type> = None;
}

impl<T> Untyped for Typed<T> {}

/// Asks in the same way whether a type has a `JsonSchema`, if the library knows that trait.
pub struct Schemed<T>(PhantomData<fn(T)>);

#[cfg(feature = "schemars")]
impl<T: schemars::JsonSchema> Schemed<T> {
    /// Its schema.
    pub const SCHEMA: Option<&'static Type> = Some(&Type::Schema(subschema::<T>));
}

#[cfg(feature = "schemars")]
fn subschema<T: schemars::JsonSchema>(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    generator.subschema_for::<T>()
}

/// Other types have none.
pub trait Unschemed {
    /// None.
    const SCHEMA: Option<&'static Type> = None;
}

impl<T> Unschemed for Schemed<T> {}

/// The best that is known: what is known without asking needs no code.
pub const fn type_of(known: Option<&'static Type>, schema: Option<&'static Type>) -> &'static Type {
    match (known, schema) {
        (Some(known), _) => known,
        (None, Some(schema)) => schema,
        (None, None) => &Type::Any,
    }
}

macro_rules! known {
    ($($ty:ty => $known:expr),* $(,)?) => {$(
        impl Known for $ty {
            const TYPE: Type = $known;
        }
    )*};
}

macro_rules! integers {
    ($($ty:ty),*) => {known! {
        $($ty => Type::Integer { min: <$ty>::MIN as i128, max: <$ty>::MAX as i128 }),*
    }};
}

integers!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize);

known! {
    () => Type::Null,
    bool => Type::Bool,
    char => Type::Character,
    f32 => Type::Number,
    f64 => Type::Number,
    Key => Type::Text,
    Never => Type::Never,
    String => Type::Text,
    Box<str> => Type::Text,
    Arc<str> => Type::Text,
    uuid::Uuid => Type::Text,
    serde_json::Value => Type::Any,
}

macro_rules! holders {
    ($($holder:ident<$($of:ident),*> => $known:expr),* $(,)?) => {$(
        impl<$($of: Known),*> Known for $holder<$($of),*> {
            const TYPE: Type = $known;
        }
    )*};
}

holders! {
    Option<T> => Type::Maybe(&T::TYPE),
    Vec<T> => Type::List(&T::TYPE),
    VecDeque<T> => Type::List(&T::TYPE),
    BTreeSet<T> => Type::Set(&T::TYPE),
    Box<T> => T::TYPE,
    Arc<T> => T::TYPE,
    Rc<T> => T::TYPE,
}

impl<T: Known + Portable> Known for ReplyStream<T> {
    const TYPE: Type = T::TYPE;
}

impl<T: Known, S> Known for HashSet<T, S> {
    const TYPE: Type = Type::Set(&T::TYPE);
}

impl<T: Known> Known for BTreeMap<String, T> {
    const TYPE: Type = Type::Map(&T::TYPE);
}

impl<T: Known, S> Known for HashMap<String, T, S> {
    const TYPE: Type = Type::Map(&T::TYPE);
}

impl<T: Known, const N: usize> Known for [T; N] {
    const TYPE: Type = Type::Array(&T::TYPE, N);
}

macro_rules! tuples {
    ($(($($of:ident),*)),*) => {$(
        impl<$($of: Known),*> Known for ($($of,)*) {
            const TYPE: Type = Type::Tuple(&[$(&$of::TYPE),*]);
        }
    )*};
}

tuples!((A), (A, B), (A, B, C), (A, B, C, D));

//! What an actor is, as text: known where its type is, if that has a text.

use std::fmt::Debug;
use std::marker::PhantomData;

use serde::Serialize;

/// The type of an actor, asked for its text by `#[actor]`: [`SHOW`](Shown::SHOW) is that of a type with `Debug`, and of others
/// that of [`Unshown`].
pub struct Shown<A>(PhantomData<fn(A)>);

impl<A: Debug> Shown<A> {
    /// Writes it down.
    pub const SHOW: Option<fn(&A) -> String> = Some(|actor| format!("{actor:#?}"));
}

/// What is shown of types without `Debug`: nothing.
pub trait Unshown {
    /// The type.
    type Of;
    /// Nothing.
    const SHOW: Option<fn(&Self::Of) -> String> = None;
}

impl<A> Unshown for Shown<A> {
    type Of = A;
}

/// The same for types that are plain data.
pub struct AsData<A>(PhantomData<fn(A)>);

impl<A: Serialize> AsData<A> {
    /// Writes it down.
    pub const SHOW: Option<fn(&A) -> String> =
        Some(|actor| serde_json::to_string_pretty(actor).unwrap_or_else(|error| error.to_string()));
}

/// What is shown of types that are not: nothing.
pub trait NoData {
    /// The type.
    type Of;
    /// Nothing.
    const SHOW: Option<fn(&Self::Of) -> String> = None;
}

impl<A> NoData for AsData<A> {
    type Of = A;
}

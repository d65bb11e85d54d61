//! What a host's user writes: actors, and the kinds that they are of.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use greenroom_describe::Description;
use greenroom_wire::codec::{self, Codec};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::cx::Cx;

/// An activation's instance. The node sends it one exclusive turn at a time; here its reads come one by one as well.
pub trait Actor: Send + 'static {
    /// Runs a turn: the method's name and its arguments, a payload. The future may be dropped wherever it waits, when the host has lost
    /// its right to run it.
    fn turn<'a>(&'a mut self, cx: &'a Cx, method: &'a str, arguments: &'a [u8]) -> Turning<'a>;

    /// What it holds, as a payload; `None` if that is nothing. Of a persistent kind it is asked after each turn, and what has changed is
    /// written before the reply leaves. Of one that says `migrate` it goes along when the actor gets another seat, here or at another node.
    fn state(&self) -> Option<Vec<u8>> {
        None
    }

    /// What is to be kept in the journal of an actor of a reliable kind, by its fields, each as a payload. It is asked after each
    /// turn, and what has changed is committed with the messages that the turn has sent.
    fn fields(&self) -> Vec<(&'static str, Vec<u8>)> {
        Vec::new()
    }

    /// Becomes what a field was when it was committed last. A field that never was is not loaded.
    ///
    /// # Errors
    /// What is wrong with it; the actor is then not made.
    fn load_field(&mut self, name: &str, value: &[u8]) -> Result<(), String> {
        let _ = (name, value);
        Ok(())
    }

    /// Becomes what was saved or has come along.
    ///
    /// # Errors
    /// What is wrong with it; the actor is then not made.
    fn load(&mut self, state: &[u8]) -> Result<(), String> {
        let _ = state;
        Ok(())
    }
}

/// A turn that runs.
pub type Turning<'a> = Pin<Box<dyn Future<Output = Result<Vec<u8>, Ended>> + Send + 'a>>;

/// Why a turn has no reply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ended {
    /// The method's own error, as a payload.
    Error(Vec<u8>),
    /// The arguments are wrong, or there is no such method: nothing has run.
    Invalid(String),
    /// It has failed in a way that it does not mean; for people.
    Failed(String),
}

/// A kind that a host offers.
#[derive(Clone)]
pub struct Kind {
    pub(crate) description: Description,
    pub(crate) make: Make,
}

/// Makes an actor from its key.
type Make = Arc<dyn Fn(&str) -> Box<dyn Actor> + Send + Sync>;

impl Kind {
    /// The kind of `description`, whose actors `make` makes from their keys.
    pub fn new<A: Actor>(description: Description, make: impl Fn(&str) -> A + Send + Sync + 'static) -> Self {
        Self { description, make: Arc::new(move |key| Box::new(make(key))) }
    }
}

/// Writes a value as a payload, in MessagePack: arguments of calls, and states. Replies are written by [`Cx::reply`].
///
/// # Errors
/// [`Ended::Failed`] if it has no encoding.
pub fn payload<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, Ended> {
    payload_as(Codec::MessagePack, value)
}

pub(crate) fn payload_as<T: Serialize + ?Sized>(codec: Codec, value: &T) -> Result<Vec<u8>, Ended> {
    let mut out = bytes::BytesMut::new();
    codec::encode(codec, 1, value, &mut out).map_err(|error| Ended::Failed(error.to_string()))?;
    Ok(out.to_vec())
}

/// Reads the arguments of a turn.
///
/// # Errors
/// [`Ended::Invalid`] with the path of what is wrong.
pub fn arguments<T: DeserializeOwned>(payload: &[u8]) -> Result<T, Ended> {
    codec::decode(payload).map_err(|error| Ended::Invalid(error.to_string()))
}

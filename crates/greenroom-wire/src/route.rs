//! Routes: numbers that stand for a (kind, method), on one connection, in one direction.

use std::collections::BTreeMap;

use bytes::BytesMut;
use thiserror::Error;

use crate::encoder::Encoder;
use crate::error::EncodeError;
use crate::limit::ROUTES_MAX;
use crate::text::Text;

/// The sender's half: numbers each (kind, method) at its first use, and sends its Define just before that.
#[derive(Clone, Debug, Default)]
pub struct RouteEncoder {
    routes: BTreeMap<Box<str>, BTreeMap<Box<str>, u16>>,
    len: usize,
    /// The last route of each slot, to find it again without a walk.
    recent: Vec<Option<Recent>>,
}

#[derive(Clone, Debug)]
struct Recent {
    kind: Box<str>,
    method: Box<str>,
    route: u16,
}

impl RouteEncoder {
    /// The sender's half of a new connection.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of (`kind`, `method`); its Define is appended to `batch` if this is the first use. The batch must be
    /// sent: when it is thrown away, so must be the connection.
    ///
    /// # Errors
    /// [`RouteError::Full`], or [`RouteError::Encode`] when a name is too long.
    #[inline]
    pub fn route(
        &mut self,
        encoder: &Encoder,
        batch: &mut BytesMut,
        kind: &str,
        method: &str,
    ) -> Result<u16, RouteError> {
        let slot = slot(kind, method);
        match self.recent.get(slot) {
            Some(Some(recent)) if *recent.method == *method && *recent.kind == *kind => Ok(recent.route),
            _ => self.walk(encoder, batch, kind, method, slot),
        }
    }

    fn walk(
        &mut self,
        encoder: &Encoder,
        batch: &mut BytesMut,
        kind: &str,
        method: &str,
        slot: usize,
    ) -> Result<u16, RouteError> {
        let found = self.routes.get(kind).and_then(|methods| methods.get(method)).copied();
        let route = match found {
            Some(route) => route,
            None => self.define(encoder, batch, kind, method)?,
        };
        if self.recent.is_empty() {
            self.recent.resize(RECENT_LEN, None);
        }
        self.recent[slot] = Some(Recent { kind: kind.into(), method: method.into(), route });
        Ok(route)
    }

    fn define(&mut self, encoder: &Encoder, batch: &mut BytesMut, kind: &str, method: &str) -> Result<u16, RouteError> {
        if self.len == ROUTES_MAX {
            return Err(RouteError::Full);
        }
        let route = self.len as u16;
        encoder.define(batch, route, kind, method)?;
        self.routes.entry(kind.into()).or_default().insert(method.into(), route);
        self.len += 1;
        Ok(route)
    }
}

/// The receiver's half: what each route stands for. `T` is whatever the receiver looked up for it when it was defined.
#[derive(Clone, Debug)]
pub struct RouteTable<T = Route> {
    routes: Vec<T>,
}

/// What a route stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Route {
    /// The actor's kind.
    pub kind: Text,
    /// The method of the kind.
    pub method: Text,
}

impl<T> RouteTable<T> {
    /// The receiver's half of a new connection.
    pub const fn new() -> Self {
        Self { routes: Vec::new() }
    }

    /// Records what a Define says. Routes are defined once, in order, from 0.
    ///
    /// # Errors
    /// [`RouteError::OutOfOrder`] or [`RouteError::Full`]; the connection must be closed.
    pub fn define(&mut self, route: u16, target: T) -> Result<(), RouteError> {
        if self.routes.len() == ROUTES_MAX {
            return Err(RouteError::Full);
        }
        if usize::from(route) != self.routes.len() {
            return Err(RouteError::OutOfOrder { route, next: self.routes.len() });
        }
        self.routes.push(target);
        Ok(())
    }

    /// Lets a route stand for something else, as its receiver now knows better. Nothing happens to a route that is not defined.
    pub fn redefine(&mut self, route: u16, target: T) {
        if let Some(known) = self.routes.get_mut(usize::from(route)) {
            *known = target;
        }
    }

    /// What the route of a call stands for.
    ///
    /// # Errors
    /// [`RouteError::Undefined`]; the connection must be closed.
    #[inline]
    pub fn resolve(&self, route: u16) -> Result<&T, RouteError> {
        self.routes.get(usize::from(route)).ok_or(RouteError::Undefined { route })
    }
}

impl<T> Default for RouteTable<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// What can be wrong with a route.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum RouteError {
    /// A call came for a route that was not defined. The peer is at fault; close the connection.
    #[error("call for route {route}, which was not defined; the peer must send its Define first")]
    Undefined {
        /// The route.
        route: u16,
    },
    /// A Define came twice or too early. The peer is at fault; close the connection.
    #[error("route {route} is defined where {next} was due; the peer must define its routes once and in order")]
    OutOfOrder {
        /// The route that came.
        route: u16,
        /// The one that was due.
        next: usize,
    },
    /// The connection has no more numbers. Open a new connection.
    #[error("all {ROUTES_MAX} routes of the connection are taken; open a new connection")]
    Full,
    /// The Define could not be encoded.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

/// Spreads names over the slots of `RouteEncoder::recent`; only speed depends on how well.
#[inline]
fn slot(kind: &str, method: &str) -> usize {
    let end = |text: &str| text.as_bytes().last().map_or(0, |byte| usize::from(*byte)) + text.len() * 3;
    (end(kind) * 5 + end(method)) % RECENT_LEN
}

/// Slots for the routes that were used last.
const RECENT_LEN: usize = 64;

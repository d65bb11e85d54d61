//! What only some messages carry along: one pointer in an envelope, null for all others.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use bytes::{Bytes, BytesMut};
use greenroom_protocols::delivery::Delivery;
use greenroom_protocols::gsi::ClusterId;
use greenroom_protocols::node::NodeId;
use greenroom_protocols::versions::FIRST;
use greenroom_security::principal::Principal;
use greenroom_wire::carried::{self, PrincipalView, TickView, TraceView};
use greenroom_wire::extension::tag;
use greenroom_wire::{Extension, ExtensionError, ExtensionView, ExtensionWriter, FrameError};

use super::holdback::Holdback;
use crate::actor::error::Refusal;
use crate::context::{Context, ContextError, TraceContext};
use crate::time::tick::{Tick, Ticked};

/// What a message carries. Each part is a field here and a tag on the wire; parts that mean nothing to this version
/// pass through.
#[derive(Clone, Default, Debug)]
pub(crate) struct Baggage {
    /// Flows along calls.
    pub(crate) context: Context,
    /// Flows along calls.
    pub(crate) trace: Option<TraceContext>,
    /// On whose behalf the call is. Flows along calls.
    pub(crate) principal: Option<Principal>,
    /// Belongs to the turn that it begins.
    pub(crate) tick: Option<Box<Ticked>>,
    /// The version of its interface that the caller speaks, of a message that came as bytes; `None` for the first.
    pub(crate) version: Option<u16>,
    /// The node that the grant is for which came with the message, if that is not this one.
    pub(crate) host: Option<NodeId>,
    /// Belongs to the turn that it begins, of an actor that may go to other clusters: the one that the call came in at, if that is another.
    pub(crate) caller: Option<ClusterId>,
    /// Belongs to the turn that it begins: what that keeps back until it is committed.
    pub(crate) holdback: Option<Arc<dyn Holdback>>,
    /// The idempotency key of a call of a reliable actor.
    pub(crate) idempotency: Option<Box<str>>,
    /// How a message of one reliable actor to another one travels.
    pub(crate) delivery: Delivery,
    /// Why what the caller wanted to add is not here: the message is refused.
    pub(crate) unfit: Option<ContextError>,
    /// Fields of later versions, by tag: they go on with the message, and not with the calls that its turn makes.
    pub(crate) foreign: Vec<(u64, Box<[u8]>)>,
}

/// A message's baggage; `None` for most.
pub(crate) type Load = Option<Arc<Baggage>>;

impl Baggage {
    /// Reads what came with a call.
    ///
    /// # Errors
    /// [`FrameError`]: a field is not what its tag says. The peer is at fault.
    #[cold]
    pub(crate) fn read(extension: ExtensionView<'_>) -> Result<Arc<Self>, FrameError> {
        let mut baggage = Self::default();
        for (tag, bytes) in extension.fields() {
            match tag {
                tag::CONTEXT => {
                    for (key, value) in carried::pairs(bytes)? {
                        let set = baggage.context.set(key, value);
                        // The bounds of a context are those of its field: only an empty key is new.
                        set.map_err(|_| FrameError::OutOfBounds { field: "context key", value: 0, max: 0 })?;
                    }
                }
                tag::TRACE => {
                    let TraceView { trace, span, flags, state } = TraceView::parse(bytes)?;
                    baggage.trace = TraceContext::new(trace, span, flags & 1 != 0).map(|trace| trace.with_state(state));
                }
                tag::INTERFACE_VERSION => baggage.version = Some(carried::version(bytes)?),
                tag::GRANTED_HOST => baggage.host = Some(NodeId(carried::granted_host(bytes)?)),
                tag::CALLING_CLUSTER => baggage.caller = Some(ClusterId(carried::calling_cluster(bytes)?)),
                tag::PRINCIPAL => {
                    let PrincipalView { name, roles } = PrincipalView::parse(bytes)?;
                    baggage.principal = Some(Principal::new(name, roles));
                }
                // It comes behind the principal, by its tag.
                tag::PRINCIPAL_ISSUER => {
                    let issuer = carried::principal_issuer(bytes)?;
                    baggage.principal = baggage.principal.map(|principal| principal.issued_by(issuer));
                }
                tag::REMINDER_TICK => {
                    let TickView { registration, due_millis, missed, name } = TickView::parse(bytes)?;
                    let (reminder, late_by) = (Some(name.to_owned()), Duration::ZERO);
                    let due = UNIX_EPOCH.checked_add(Duration::from_millis(due_millis)).unwrap_or(UNIX_EPOCH);
                    let tick = Tick { reminder, due, late_by, missed };
                    baggage.tick = Some(Box::new(Ticked { tick, registration }));
                }
                _ => baggage.foreign.push((tag, bytes.into())),
            }
        }
        Ok(Arc::new(baggage))
    }

    /// Writes it down for another node, for a caller that speaks this version of the interface, with a grant for `host`.
    ///
    /// # Errors
    /// [`ExtensionError`]: it is too much for one message.
    #[cold]
    fn write(&self, version: u16, host: Option<NodeId>) -> Result<Extension, ExtensionError> {
        let mut own = Vec::new();
        if let Some(host) = host {
            own.push((tag::GRANTED_HOST, BytesMut::from(&host.0.to_le_bytes()[..])));
        }
        if let Some(caller) = self.caller {
            own.push((tag::CALLING_CLUSTER, BytesMut::from(&caller.0.to_le_bytes()[..])));
        }
        if version != FIRST {
            let mut field = BytesMut::new();
            carried::put_version(version, &mut field);
            own.push((tag::INTERFACE_VERSION, field));
        }
        if !self.context.is_empty() {
            let mut field = BytesMut::new();
            carried::put_pairs(self.context.iter(), &mut field);
            own.push((tag::CONTEXT, field));
        }
        if let Some(trace) = &self.trace {
            let mut field = BytesMut::new();
            let (flags, state) = (trace.flags(), trace.state());
            TraceView { trace: trace.trace_id(), span: trace.span_id(), flags, state }.put(&mut field);
            own.push((tag::TRACE, field));
        }
        if let Some(principal) = &self.principal {
            let mut field = BytesMut::new();
            PrincipalView { name: principal.name(), roles: principal.roles().collect() }.put(&mut field);
            own.push((tag::PRINCIPAL, field));
            if let Some(issuer) = principal.issuer() {
                own.push((tag::PRINCIPAL_ISSUER, BytesMut::from(issuer)));
            }
        }
        if let Some(Ticked { tick, registration }) = self.tick.as_deref()
            && let Some(name) = &tick.reminder
        {
            let due = tick.due.duration_since(UNIX_EPOCH).unwrap_or_default();
            let (registration, due_millis, missed) = (*registration, due.as_millis() as u64, tick.missed);
            let mut field = BytesMut::new();
            TickView { registration, due_millis, missed, name }.put(&mut field);
            own.push((tag::REMINDER_TICK, field));
        }
        let foreign = self.foreign.iter().map(|(tag, bytes)| (*tag, &**bytes));
        let mut fields: Vec<_> = own.iter().map(|(tag, bytes)| (*tag, &**bytes)).chain(foreign).collect();
        fields.sort_unstable_by_key(|(tag, _)| *tag);
        let mut writer = ExtensionWriter::new();
        for (tag, bytes) in fields {
            writer.put(tag, bytes)?;
        }
        Ok(writer.finish())
    }

    /// What flows along calls, to be written into a journal with a message; `None` if there is nothing.
    ///
    /// # Errors
    /// [`Refusal::Invalid`]: it is too much for one message.
    pub(crate) fn carried(&self) -> Result<Option<Bytes>, Refusal> {
        let Self { context, trace, principal, .. } = self;
        if context.is_empty() && trace.is_none() && principal.is_none() {
            return Ok(None);
        }
        let (context, trace, principal) = (context.clone(), trace.clone(), principal.clone());
        let extension = Self { context, trace, principal, ..Self::default() }.write(FIRST, None);
        let extension =
            extension.map_err(|error| Refusal::Invalid { field: "context".to_owned(), message: error.to_string() })?;
        Ok(Some(Bytes::copy_from_slice(extension.view().as_bytes())))
    }

    /// What a call carries that is made by a turn with `inherited`, and was given `own`.
    ///
    /// # Errors
    /// [`Refusal::Invalid`]: it is too much.
    #[cold]
    pub(crate) fn join(inherited: Option<&Arc<Self>>, own: Option<Box<Self>>) -> Result<Load, Refusal> {
        let Some(mut own) = own else { return Ok(inherited.and_then(Self::onward)) };
        if let Some(inherited) = inherited {
            let added = std::mem::replace(&mut own.context, inherited.context.clone());
            let unfit = added.iter().find_map(|(key, value)| own.context.set(key, value).err());
            own.unfit = own.unfit.or(unfit);
            own.trace = own.trace.or_else(|| inherited.trace.clone());
            own.principal = own.principal.or_else(|| inherited.principal.clone());
        }
        match own.unfit.take() {
            Some(error) => Err(Refusal::Invalid { field: "context".to_owned(), message: error.to_string() }),
            None => Ok(Some(Arc::from(own))),
        }
    }

    /// What the calls of a turn carry on that came with this.
    fn onward(self: &Arc<Self>) -> Load {
        let Self { context, trace, principal, tick, version, host, holdback, idempotency, caller, .. } = &**self;
        let ends_here = tick.is_some() || holdback.is_some() || idempotency.is_some() || caller.is_some();
        let Self { foreign, delivery, unfit: _, .. } = &**self;
        let ends_here = ends_here || *delivery != Delivery::default();
        if foreign.is_empty() && !ends_here && version.is_none() && host.is_none() {
            return Some(self.clone());
        }
        let (trace, principal) = (trace.clone(), principal.clone());
        let laden = !context.is_empty() || trace.is_some() || principal.is_some();
        laden.then(|| Arc::new(Self { context: context.clone(), trace, principal, ..Self::default() }))
    }
}

/// What a message carries to another node, of a caller that speaks this version of the interface, and with a grant for `host`
/// if that is not who gets the message.
///
/// # Errors
/// As for [`Baggage::write`].
#[cold]
pub(crate) fn written(
    baggage: Option<&Baggage>,
    version: u16,
    host: Option<NodeId>,
) -> Result<Extension, ExtensionError> {
    match baggage {
        Some(baggage) => baggage.write(version, host),
        None => Baggage::default().write(version, host),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn laden() -> Baggage {
        let mut context = Context::EMPTY;
        context.set("tenant", "a").unwrap();
        let trace = TraceContext::new([1; 16], [2; 8], true).map(|trace| trace.with_state("x=y"));
        let principal = Some(Principal::new("ada", ["user", "team"]).issued_by("https://id"));
        Baggage { context, trace, principal, version: Some(3), foreign: vec![(900, [7].into())], ..Baggage::default() }
    }

    #[test]
    fn baggage_survives_the_wire_with_the_fields_of_later_versions() {
        let laden = || Baggage { caller: Some(ClusterId(5)), ..laden() };
        let extension = laden().write(7, Some(NodeId(9))).unwrap();
        let read = Baggage::read(extension.view()).unwrap();
        assert_eq!((read.version, read.host, read.caller), (Some(7), Some(NodeId(9)), Some(ClusterId(5))));
        assert_eq!((&read.context, &read.trace, &read.foreign), (&laden().context, &laden().trace, &laden().foreign));
        assert_eq!(read.principal, laden().principal);
        assert_eq!(read.write(7, read.host).unwrap(), extension);
    }

    #[test]
    fn a_turns_calls_carry_context_and_trace_on_and_nothing_that_was_for_the_turn() {
        let came = Arc::new(Baggage { caller: Some(ClusterId(5)), ..laden() });
        let onward = Baggage::join(Some(&came), None).unwrap().unwrap();
        assert_eq!((onward.context.get("tenant"), onward.trace.is_some()), (Some("a"), true));
        assert_eq!(onward.principal, laden().principal);
        assert!(onward.foreign.is_empty() && onward.version.is_none() && onward.caller.is_none());
        let again = Baggage::join(Some(&onward), None).unwrap().unwrap();
        assert!(Arc::ptr_eq(&onward, &again), "nothing is copied that need not be");
    }

    #[test]
    fn what_a_call_is_given_covers_what_it_inherits() {
        let mut own = Box::<Baggage>::default();
        own.context.set("tenant", "b").unwrap();
        let joined = Baggage::join(Some(&Arc::new(laden())), Some(own)).unwrap().unwrap();
        assert_eq!((joined.context.get("tenant"), joined.trace.is_some()), (Some("b"), true));
    }

    #[test]
    fn a_field_that_is_not_what_its_tag_says_is_refused() {
        for tag in
            [tag::CONTEXT, tag::TRACE, tag::INTERFACE_VERSION, tag::PRINCIPAL, tag::GRANTED_HOST, tag::CALLING_CLUSTER]
        {
            let mut writer = ExtensionWriter::new();
            writer.put(tag, &[0x89]).unwrap();
            assert!(Baggage::read(writer.view()).is_err());
        }
    }
}

//! Calls of other versions of an interface than this node hosts. Calls within one node are of one version: their types say so.

use std::rc::Rc;

use greenroom_protocols::versions::{self, FIRST, Fit, Offer};

use super::Shard;
use super::activation::AnyActivation;
use super::chain::Chain;
use super::raw::RawCall;
use super::underway::Underway;
use crate::actor::error::Refusal;
use crate::actor::interface::Why;
use crate::actor::key::Kind;
use crate::actor::version_gap::VersionGap;
use crate::pids::key::is_reserved;

impl<L> Chain<L> {
    /// The version of the interface that the caller of a message speaks that came as bytes.
    #[inline]
    pub(crate) fn wanted(&self) -> u16 {
        self.baggage.as_deref().and_then(|baggage| baggage.version).unwrap_or(FIRST)
    }
}

impl Shard {
    /// Takes a call on its way whose caller is not served by the activation that it has come to, nor by any other of this node.
    #[cold]
    pub(super) fn misfit(
        &self,
        activation: &Rc<dyn AnyActivation>,
        call: RawCall<'_>,
        kind: Kind,
        hash: u64,
        here: Offer,
    ) {
        let (node, wanted) = (&self.port.node, call.chain.wanted());
        let id = activation.id().clone();
        let view = node.view();
        let hosts = view.hosts(kind).map_or(&[] as &[Offer], |hosts| hosts.offers());
        // Spawned actors stay where they are.
        let hosts = if is_reserved(call.key) { &[] } else { hosts };
        match versions::fit(here, wanted, hosts.iter().copied()) {
            Fit::Serves | Fit::HandOver => {
                activation.clone().end(self, Why::Upgraded);
                match self.activation(activation.slot()) {
                    Some(_) => self.park(Box::new(call.into_parcel(self, id))),
                    None => self.locate_raw(call, kind, hash),
                }
            }
            Fit::Refuses if view.is_behind(call.journey.origin) => {
                node.hears_of(view.view.version + 1);
                self.park(Box::new(call.into_parcel(self, id)));
            }
            Fit::Refuses => {
                let gap = match wanted > here.version && !is_reserved(call.key) {
                    true => view.gap(kind.name(), wanted),
                    false => VersionGap::taken(&id, wanted, node.name(), here),
                };
                self.turn_down(&id, call, gap.into());
            }
        }
    }

    /// Takes a message for stateless workers on its way whose caller those of this node do not serve.
    #[cold]
    pub(crate) fn send_to_other_workers(&self, message: &mut dyn Underway) -> Result<(), Refusal> {
        let (node, wanted, kind) = (&self.port.node, message.wanted(), message.id().kind);
        let view = node.view();
        let others = view.hosts(kind).map(|hosts| hosts.serving(wanted)).unwrap_or_default();
        if others.is_empty() {
            return Err(view.gap(kind.name(), wanted).into());
        }
        message.send_to(self, others[(node.world().random() % others.len() as u64) as usize], None)
    }

    /// That the kind has no such method: who calls from another node has an interface that has it.
    #[cold]
    pub(super) fn no_such_method(&self, call: &RawCall<'_>, here: Offer) -> Refusal {
        let node = &self.port.node;
        let kinds = node.kinds();
        if call.journey.from == node.me() {
            return kinds.unknown_method(call.route);
        }
        let near = kinds.near_methods(call.route);
        let wanted = call.chain.wanted();
        VersionGap::without(&call.route.kind_name, &call.route.method, near, wanted, node.name(), here).into()
    }
}

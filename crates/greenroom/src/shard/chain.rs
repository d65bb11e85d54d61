//! Call chains: which callers wait for a message, inside of its shard and outside of it.
//!
//! Inside of a shard the number of the waiting turn is enough, and costs nothing to note. On another shard the same number names
//! another turn. So [`Link`] is not `Send`, and a message that leaves its shard has a [`PortableChain`], which names the actors.
//! [`Shard::portable`](super::Shard::portable) is the only way from one to the other.

use std::marker::PhantomData;
use std::sync::Arc;

use greenroom_security::principal::Principal;
use greenroom_wire::ChainView;

use super::baggage::Load;
use super::turns::TurnId;

/// What comes with a message beside its arguments.
#[derive(Clone, Default, Debug)]
pub(crate) struct Chain<L = Link> {
    /// The callers that wait for its turn.
    pub(crate) link: L,
    /// The headers that it carries.
    pub(crate) baggage: Load,
}

/// What comes with a message that may leave its shard: every shard, node and cluster reads the same callers in it.
pub(crate) type PortableChain = Chain<Option<CallPath>>;

/// The callers that wait for a turn, and which a call of it must not call back into.
#[derive(Clone, Default, Debug)]
pub(crate) enum Link {
    /// No actor waits: the message is one-way, or its caller is outside of all actors.
    #[default]
    None,
    /// A turn of this shard waits, and those that wait for that turn.
    Turn(WaitingTurn),
    /// The callers by their names.
    Path(CallPath),
}

/// A turn of this shard that waits for a call. It is not `Send`: on another shard its number names another turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitingTurn {
    pub(super) id: TurnId,
    not_send: PhantomData<*const ()>,
}

/// The names of the actors that wait for a call, outermost first, as they travel. There is at least one.
#[derive(Clone, Debug)]
pub(crate) struct CallPath(Arc<[u8]>);

impl Chain {
    /// What comes with a message for which no actor waits, and that carries nothing.
    pub(crate) const NONE: Self = Self { link: Link::None, baggage: None };

    /// True if no actor waits for the message and it carries nothing.
    pub(super) fn is_none(&self) -> bool {
        matches!(self, Self { link: Link::None, baggage: None })
    }
}

impl<L> Chain<L> {
    /// Returns the principal on whose behalf the message comes.
    pub(crate) fn principal(&self) -> Option<&Principal> {
        self.baggage.as_ref()?.principal.as_ref()
    }
}

impl From<PortableChain> for Chain {
    fn from(PortableChain { link, baggage }: PortableChain) -> Self {
        Self { link: link.map_or(Link::None, Link::Path), baggage }
    }
}

impl WaitingTurn {
    pub(super) fn new(id: TurnId) -> Self {
        Self { id, not_send: PhantomData }
    }
}

impl CallPath {
    /// Returns the path of a chain that came from elsewhere, or `None` if no actor waits.
    pub(crate) fn of(chain: ChainView<'_>) -> Option<Self> {
        (!chain.is_empty()).then(|| Self(chain.as_bytes().into()))
    }

    /// Returns the path as it travels.
    pub(crate) fn view(&self) -> ChainView<'_> {
        // It was validated when it was made.
        ChainView::parse(&self.0).unwrap_or_default()
    }

    /// Returns the name of the innermost caller.
    pub(super) fn last(&self) -> Option<String> {
        self.view().entries().last().map(|(kind, key)| format!("{kind}/{key}"))
    }
}

/// Does not compile if links could be sent to another shard: then both implementations fit.
const _: fn() = || {
    trait NotSend<Marker> {
        fn holds() {}
    }
    struct IsSend;
    impl<T: ?Sized> NotSend<()> for T {}
    impl<T: ?Sized + Send> NotSend<IsSend> for T {}
    <Link as NotSend<_>>::holds();
};

//! Call chains: which actors wait for a call, and whether it would wait for itself.

use super::Shard;
use super::chain::{CallPath, Chain, Link, PortableChain, WaitingTurn};
use super::turns::TurnId;
use crate::actor::key::ActorId;

impl Shard {
    /// Returns the callers that wait for a call of the current turn.
    pub(crate) fn link_here(&self) -> Link {
        self.current_turn().map_or(Link::None, |turn| Link::Turn(WaitingTurn::new(turn)))
    }

    /// Returns the path of the cycle that a call to `id` with this chain would close, if `id` waits for it.
    pub(crate) fn cycle(&self, link: &Link, id: &ActorId) -> Option<Vec<String>> {
        if let Link::None = link {
            return None;
        }
        let mut next = link.clone();
        loop {
            match next {
                Link::None => return None,
                Link::Turn(waiting) => {
                    let turns = self.turns.borrow();
                    let turn = turns.find(waiting.id)?;
                    if turn.activation.id() == id {
                        break;
                    }
                    next = turn.link.clone();
                }
                Link::Path(path) => {
                    if path.view().contains(id.kind.name(), &id.key) {
                        break;
                    }
                    return None;
                }
            }
        }
        let path = self.path(link);
        let entries = path.as_ref().map(|path| path.view().entries()).into_iter().flatten();
        let mut names: Vec<String> = entries.map(|(kind, key)| format!("{kind}/{key}")).collect();
        names.push(id.to_string());
        Some(names)
    }

    /// Returns a chain of this shard as it is on every shard, node and cluster.
    pub(crate) fn portable(&self, Chain { link, baggage }: Chain) -> PortableChain {
        PortableChain { link: self.path(&link), baggage }
    }

    /// Returns the names of the callers.
    pub(super) fn path(&self, link: &Link) -> Option<CallPath> {
        match link {
            Link::None => None,
            Link::Path(path) => Some(path.clone()),
            Link::Turn(waiting) => self.path_of(waiting.id),
        }
    }

    /// Returns the name of the actor that waits for a message with this link.
    pub(super) fn awaited_by(&self, link: &Link) -> Option<String> {
        match link {
            Link::None => None,
            Link::Turn(waiting) => self.turns.borrow().find(waiting.id).map(|turn| turn.activation.id().to_string()),
            Link::Path(path) => path.last(),
        }
    }

    fn path_of(&self, turn: TurnId) -> Option<CallPath> {
        let (known, link, id) = {
            let turns = self.turns.borrow();
            // A turn that has ended waits for nothing.
            let turn = turns.find(turn)?;
            (turn.path.clone(), turn.link.clone(), turn.activation.id().clone())
        };
        if known.is_some() {
            return known;
        }
        let callers = self.path(&link);
        let view = callers.as_ref().map(CallPath::view).unwrap_or_default();
        // A chain that is too deep to extend is cut: its deadline then ends what it cannot see.
        let path = match view.extended(id.kind.name(), &id.key) {
            Ok(path) => CallPath::of(path.view()),
            Err(_) => callers,
        };
        if let Some(turn) = self.turns.borrow_mut().find_mut(turn) {
            turn.path = path.clone();
        }
        path
    }
}

//! Call chains: which actors wait for a call, and whether it would wait for itself.

use std::sync::Arc;

use greenroom_wire::ChainView;

use super::Shard;
use super::turns::{Link, TurnId};
use crate::actor::key::ActorId;

impl Shard {
    /// Who waits for a call that the current turn makes.
    pub(crate) fn link_here(&self) -> Link {
        self.current_turn().map_or(Link::None, Link::Turn)
    }

    /// Whether `id` waits for a call with this chain: the path of the cycle then.
    pub(crate) fn cycle(&self, link: &Link, id: &ActorId) -> Option<Vec<String>> {
        if let Link::None = link {
            return None;
        }
        let mut next = link.clone();
        loop {
            match next {
                Link::None => return None,
                Link::Turn(turn) => {
                    let turns = self.turns.borrow();
                    let turn = turns.find(turn)?;
                    if turn.activation.id() == id {
                        break;
                    }
                    next = turn.link.clone();
                }
                Link::Path(path) => {
                    let view = ChainView::parse(&path).ok()?;
                    if view.contains(id.kind.name(), &id.key) {
                        break;
                    }
                    return None;
                }
            }
        }
        let path = self.path(link);
        let mut names: Vec<String> = ChainView::parse(path.as_deref().unwrap_or_default())
            .map(|view| view.entries().map(|(kind, key)| format!("{kind}/{key}")).collect())
            .unwrap_or_default();
        names.push(id.to_string());
        Some(names)
    }

    /// The chain as it travels to other shards and nodes.
    pub(crate) fn path(&self, link: &Link) -> Option<Arc<[u8]>> {
        match link {
            Link::None => None,
            Link::Path(path) => Some(path.clone()),
            Link::Turn(turn) => self.path_of(*turn),
        }
    }

    fn path_of(&self, turn: TurnId) -> Option<Arc<[u8]>> {
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
        let view = ChainView::parse(callers.as_deref().unwrap_or_default()).unwrap_or_default();
        // A chain that is too deep to extend is cut: its deadline then ends what it cannot see.
        let path = match view.extended(id.kind.name(), &id.key) {
            Ok(path) => Some(path.view().as_bytes().into()),
            Err(_) => callers,
        };
        if let Some(turn) = self.turns.borrow_mut().find_mut(turn) {
            turn.path = path.clone();
        }
        path
    }
}

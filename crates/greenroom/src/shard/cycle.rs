//! Call chains: which actors wait for a call, and whether it would wait for itself.

use bytes::Bytes;
use greenroom_wire::{Chain as WireChain, ChainView};

use super::Shard;
use super::turns::{Chain, TurnId};
use crate::actor::key::ActorId;

impl Shard {
    /// The chain of a call that the current turn makes.
    pub(super) fn chain_here(&self) -> Chain {
        self.current_turn().map_or(Chain::None, Chain::Turn)
    }

    /// Whether `id` waits for a call with this chain: the path of the cycle then.
    pub(super) fn cycle(&self, chain: &Chain, id: &ActorId) -> Option<Vec<String>> {
        let mut link = chain.clone();
        loop {
            match link {
                Chain::None => return None,
                Chain::Turn(turn) => {
                    let turns = self.turns.borrow();
                    let turn = turns.find(turn)?;
                    if turn.activation.id() == id {
                        break;
                    }
                    link = turn.chain.clone();
                }
                Chain::Path(path) => {
                    let view = ChainView::parse(&path).ok()?;
                    if view.contains(id.kind.name(), &id.key) {
                        break;
                    }
                    return None;
                }
            }
        }
        let path = self.path(chain);
        let mut names: Vec<String> = ChainView::parse(&path)
            .map(|view| view.entries().map(|(kind, key)| format!("{kind}/{key}")).collect())
            .unwrap_or_default();
        names.push(id.to_string());
        Some(names)
    }

    /// The chain as it travels to other shards and nodes.
    pub(super) fn path(&self, chain: &Chain) -> Bytes {
        match chain {
            Chain::None => Bytes::new(),
            Chain::Path(path) => path.clone(),
            Chain::Turn(turn) => self.path_of(*turn),
        }
    }

    fn path_of(&self, turn: TurnId) -> Bytes {
        let (known, chain, id) = {
            let turns = self.turns.borrow();
            // A turn that has ended waits for nothing.
            let Some(turn) = turns.find(turn) else { return Bytes::new() };
            (turn.path.clone(), turn.chain.clone(), turn.activation.id().clone())
        };
        if let Some(path) = known {
            return path;
        }
        let callers = WireChain::from_bytes(self.path(&chain)).unwrap_or_default();
        // A chain that is too deep to extend is cut: its deadline then ends what it cannot see.
        let path = callers.extended(id.kind.name(), &id.key).unwrap_or(callers);
        let path = Bytes::copy_from_slice(path.view().as_bytes());
        if let Some(turn) = self.turns.borrow_mut().find_mut(turn) {
            turn.path = Some(path.clone());
        }
        path
    }
}

//! Activations of a shard, some of them in an order, for who looks at them page by page.

use std::cmp::Ordering;

use greenroom_world::Timestamp;
use serde::{Deserialize, Serialize};

use super::Shard;
use super::activation::AnyActivation;
use super::beside::is_beside;
use crate::actor::key::ActorId;
use crate::here::built_in::is_built_in;

/// Which activations are wanted, and in which order.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Wish {
    pub(crate) kind: Option<String>,
    /// What their keys begin with.
    pub(crate) prefix: String,
    pub(crate) order: Order,
    /// The place behind which they are wanted.
    pub(crate) after: Option<Place>,
    pub(crate) limit: usize,
}

/// What activations are ordered by; those of one rank are in the order of their names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order {
    /// Those with most messages in their mailboxes first.
    #[default]
    Mailbox,
    /// The oldest first.
    Age,
    /// Those that have had no turn for longest first.
    Idle,
    /// Those with most turns a second first.
    Heat,
    /// By their names alone.
    Key,
}

/// A place in the order: what has a higher rank stands before it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) rank: u64,
    pub(crate) actor: String,
}

/// An activation, as it is listed.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Listed {
    pub(crate) place: Place,
    pub(crate) shard: u64,
    pub(crate) state: String,
    pub(crate) mailbox: u64,
    /// Seconds since it was activated, and since its last turn began.
    pub(crate) age: f64,
    pub(crate) idle: f64,
    /// Turns a second of late; 0 where they are so few that its shard does not count them.
    pub(crate) turns: f64,
}

/// A list in the making.
pub(crate) struct Roll {
    wish: Wish,
    /// The first of those that are wanted, in their order: as many as are wanted, and one more.
    pub(crate) listed: Vec<Listed>,
    /// How many are wanted, without regard to where the list begins and ends.
    pub(crate) matched: u64,
}

impl Roll {
    pub(crate) fn new(wish: Wish) -> Self {
        Self { wish, listed: Vec::new(), matched: 0 }
    }

    fn see(&mut self, shard: &Shard, activation: &dyn AnyActivation) {
        let id = activation.id();
        let is_wanted = self.wish.kind.as_deref().is_none_or(|kind| kind == id.kind.name())
            && id.key.starts_with(&self.wish.prefix)
            && !is_built_in(id.kind.name())
            && !is_beside(id);
        if !is_wanted {
            return;
        }
        self.matched += 1;
        let (made, used) = activation.moments();
        let rank = match self.wish.order {
            Order::Mailbox => activation.waiting() as u64,
            Order::Age => shard.long_ago(made),
            Order::Idle => shard.long_ago(used),
            Order::Heat => (shard.turns_of(id) * RANKS_A_TURN) as u64,
            Order::Key => 0,
        };
        let is_full = self.listed.len() > self.wish.limit;
        if is_full && self.listed.last().is_some_and(|last| rank < last.place.rank) {
            return;
        }
        let place = Place { rank, actor: id.to_string() };
        let at = self.listed.partition_point(|listed| listed.place <= place);
        if at > self.wish.limit || self.wish.after.as_ref().is_some_and(|after| place <= *after) {
            return;
        }
        self.listed.truncate(self.wish.limit);
        let listed = Listed {
            place,
            shard: shard.index().into(),
            state: activation.state().to_owned(),
            mailbox: activation.waiting() as u64,
            age: shard.now().since(made).as_secs_f64(),
            idle: shard.now().since(used).as_secs_f64(),
            turns: shard.turns_of(id),
        };
        self.listed.insert(at, listed);
    }
}

impl Ord for Place {
    fn cmp(&self, other: &Self) -> Ordering {
        other.rank.cmp(&self.rank).then_with(|| self.actor.cmp(&other.actor))
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Shard {
    /// Takes some of the activations into the list, from the place `first` on; where to go on, if there are more.
    pub(crate) fn list_some(&self, first: u32, roll: &mut Roll) -> Option<u32> {
        let (some, next) = self.activations.borrow().some(first, LOOKED_AT_A_ROUND);
        some.iter().for_each(|activation| roll.see(self, &**activation));
        next
    }

    /// An actor's turns a second, if it has so many that they are counted.
    fn turns_of(&self, id: &ActorId) -> f64 {
        self.heat_of(&[id.stable_hash()]).first().map_or(0.0, |hot| hot.turns)
    }

    /// The higher the longer ago it was. It goes by the wall's clock, in tenths of a second, so that it is the same on the next page.
    fn long_ago(&self, then: Timestamp) -> u64 {
        let ago = self.now().since(then).as_millis() as u64;
        u64::MAX - self.port.node.wall().0.saturating_sub(ago) / 100
    }
}

/// How finely actors are told apart by their turns a second.
const RANKS_A_TURN: f64 = 1000.0;
/// Activations that one round looks at.
const LOOKED_AT_A_ROUND: u32 = 4096;

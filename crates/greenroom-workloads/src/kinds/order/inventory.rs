//! What there is of an item.

use std::collections::BTreeSet;

use greenroom::prelude::*;
use greenroom::versioned::Rejected;
use serde::{Deserialize, Serialize};

use super::Wish;

/// What was sold of one item, and who has reserved of it. An order is of one piece, and has a name that no other one has.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Inventory {
    sold: u64,
    reserved: BTreeSet<String>,
}

/// A wish of the order called `order`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Change {
    /// Whose.
    pub order: String,
    /// What.
    pub wish: Wish,
    /// Pieces that there were in the beginning.
    pub stock: u64,
}

impl Inventory {
    /// Does as `change` wishes; false if that cannot be.
    pub fn change(&mut self, change: &Change) -> bool {
        match change.wish {
            Wish::Exists => true,
            // A reservation is optimistic: it guarantees nothing.
            Wish::Reserve => self.is_left(change.stock) && self.reserved.insert(change.order.clone()),
            Wish::Confirm => {
                let may = self.is_left(change.stock) && self.reserved.remove(&change.order);
                self.sold += u64::from(may);
                may
            }
            Wish::Cancel => self.reserved.remove(&change.order),
        }
    }

    /// Pieces that were sold.
    pub fn sold(&self) -> u64 {
        self.sold
    }

    /// Whether there is something to sell, if there were so many in the beginning.
    pub fn is_left(&self, stock: u64) -> bool {
        self.sold < stock
    }
}

impl VersionedStateWithOutput for Inventory {
    type Update = Change;
    type Output = bool;

    fn apply(&mut self, change: &Change) -> Result<bool, Rejected> {
        Ok(self.change(change))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_sold_than_there_is_and_only_to_who_has_reserved() {
        let mut inventory = Inventory::default();
        let stock = 20;
        let change = |order: u64, wish| Change { order: order.to_string(), wish, stock };
        let orders = stock + 3;
        assert!((0..orders).all(|order| inventory.change(&change(order, Wish::Reserve))));
        assert!(!inventory.change(&change(orders, Wish::Confirm)), "it has reserved nothing");
        let sold = (0..orders).filter(|order| inventory.change(&change(*order, Wish::Confirm))).count();
        assert_eq!((sold as u64, inventory.sold()), (stock, stock));
    }
}

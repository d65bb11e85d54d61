//! Items, kept in three ways.

/// An item whose one instance saves each change.
pub mod basic {
    use greenroom::prelude::*;
    use serde::{Deserialize, Serialize};

    use crate::kinds::order::inventory::{Change, Inventory};
    use crate::kinds::order::{Wish, said};

    /// An item in a store.
    #[derive(Default, Serialize, Deserialize, Actor)]
    pub struct Item {
        inventory: Inventory,
    }

    #[actor(persistent, kind = "order_item_basic")]
    impl Item {
        /// Whether something of it is left.
        pub async fn is_left(&self, stock: u64) -> bool {
            self.inventory.is_left(stock)
        }

        /// Does as is wished, and saves; false if that cannot be.
        pub async fn change(&mut self, cx: &Cx, change: Change) -> Result<bool, StateError> {
            let done = self.inventory.change(&change);
            if done {
                cx.save(self).await?;
            }
            Ok(done)
        }

        /// Pieces that were sold.
        pub async fn sold(&self) -> u64 {
            self.inventory.sold()
        }
    }

    pub(crate) async fn ask(cx: &Cx, item: &str, change: Change) -> Result<bool, String> {
        let item = ItemRef::of(cx, item);
        match change.wish {
            Wish::Exists => item.is_left(change.stock).await.map_err(said),
            _ => item.change(change).await.map_err(said),
        }
    }

    pub(crate) async fn sold(cx: &Cx, item: &str) -> Result<u64, String> {
        ItemRef::of(cx, item).sold().await.map_err(said)
    }
}

macro_rules! versioned_item {
    ($module:ident, $what:literal, kind = $kind:tt, instances = $instances:tt) => {
        #[doc = $what]
        pub mod $module {
            use greenroom::prelude::*;
            use greenroom::versioned::UpdateError;

            use crate::kinds::order::inventory::{Change, Inventory};
            use crate::kinds::order::{Wish, said};

            /// An item that changes by updates.
            #[derive(Default, Actor)]
            pub struct Item {
                inventory: Versioned<Inventory>,
            }

            #[actor(kind = $kind, instances = $instances)]
            impl Item {
                /// Whether something is left in the latest state of all.
                pub async fn is_left(&self, stock: u64) -> Result<bool, StateError> {
                    self.inventory.refresh_now().await?;
                    Ok(self.inventory.confirmed().0.is_left(stock))
                }

                /// Whether something is left, as this instance sees it.
                pub async fn is_left_here(&self, stock: u64) -> bool {
                    self.inventory.tentative().is_left(stock)
                }

                /// Does as is wished, in the latest state of all; false if that cannot be.
                #[update]
                pub async fn change(&self, change: Change) -> Result<bool, UpdateError> {
                    self.inventory.confirm(change).await
                }

                /// Does as is wished, as this instance sees it; elsewhere later.
                #[update]
                pub async fn change_here(&self, change: Change) -> bool {
                    let may = self.inventory.tentative().is_left(change.stock);
                    self.inventory.enqueue(change);
                    may
                }

                /// Pieces that were sold, in the latest state of all.
                pub async fn sold(&self) -> Result<u64, StateError> {
                    self.inventory.refresh_now().await?;
                    Ok(self.inventory.confirmed().0.sold())
                }
            }

            pub(crate) async fn ask(cx: &Cx, item: &str, change: Change, local: bool) -> Result<bool, String> {
                let item = ItemRef::of(cx, item);
                match (change.wish, local) {
                    (Wish::Exists, false) => item.is_left(change.stock).await.map_err(said),
                    (Wish::Exists, true) => item.is_left_here(change.stock).await.map_err(said),
                    (_, false) => item.change(change).await.map_err(said),
                    (_, true) => item.change_here(change).await.map_err(said),
                }
            }

            pub(crate) async fn sold(cx: &Cx, item: &str) -> Result<u64, String> {
                ItemRef::of(cx, item).sold().await.map_err(said)
            }
        }
    };
}

versioned_item!(
    single,
    "An item that changes by updates, with one instance.",
    kind = "order_item_single",
    instances = "single"
);
versioned_item!(
    each,
    "An item that changes by updates, with an instance in each cluster.",
    kind = "order_item_each",
    instances = "per_cluster"
);

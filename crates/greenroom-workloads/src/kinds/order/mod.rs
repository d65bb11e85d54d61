//! TPC-W-mini (Geo §4.4): carts, items, and the robots that order.

pub mod cart;
pub mod inventory;
mod item;
pub mod robot;

use greenroom::{Builder, CallError, Cx};
use serde::{Deserialize, Serialize};

use self::inventory::Change;
pub use self::item::{basic, each, single};

/// Registers the kinds.
pub(super) fn register(builder: Builder) -> Builder {
    builder
        .register::<robot::OrderRobot>()
        .register::<cart::Cart>()
        .register::<basic::Item>()
        .register::<single::Item>()
        .register::<each::Item>()
}

/// How items are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Goods {
    /// In a store, by one instance, which saves each change.
    Basic,
    /// Changed by updates, in a store, by one instance.
    Versioned,
    /// Changed by updates, in a store, by an instance in each cluster.
    VersionedEach,
}

/// What a cart asks of an item.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wish {
    /// Whether it is there.
    Exists,
    /// Sets one aside for the cart.
    Reserve,
    /// Sells what was set aside, if there is enough.
    Confirm,
    /// Gives back what was set aside.
    Cancel,
}

/// How an item is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Asking {
    /// How items are kept.
    pub goods: Goods,
    /// Whether only a confirmation waits for the latest state of all.
    pub mixed: bool,
    /// Pieces of each item in the beginning.
    pub stock: u64,
}

impl Asking {
    /// Asks the item called `item`, for the order called `order`; whether it does as is wished.
    ///
    /// # Errors
    /// The error's message; nobody may know then whether it was done.
    pub async fn ask(self, cx: &Cx, item: &str, order: &str, wish: Wish) -> Result<bool, String> {
        let change = Change { order: order.to_owned(), wish, stock: self.stock };
        let local = self.mixed && wish != Wish::Confirm;
        match self.goods {
            Goods::Basic => basic::ask(cx, item, change).await,
            Goods::Versioned => single::ask(cx, item, change, local).await,
            Goods::VersionedEach => each::ask(cx, item, change, local).await,
        }
    }

    /// Pieces that were sold of an item.
    ///
    /// # Errors
    /// The error's message.
    pub async fn sold(self, cx: &Cx, item: &str) -> Result<u64, String> {
        match self.goods {
            Goods::Basic => basic::sold(cx, item).await,
            Goods::Versioned => single::sold(cx, item).await,
            Goods::VersionedEach => each::sold(cx, item).await,
        }
    }
}

fn said<E: std::fmt::Display>(error: CallError<E>) -> String {
    error.to_string()
}

//! A robot's cart, and how far its order is.

use greenroom::prelude::*;
use serde::{Deserialize, Serialize};

use super::{Asking, Wish};

/// A step of an order, in the order in which they are taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Begins with an empty cart.
    Create,
    /// Puts the items into it, if they exist.
    Add,
    /// Reserves them.
    Buy,
    /// Buys what was reserved, or nothing.
    Confirm,
}

impl Step {
    /// All of them.
    pub const ALL: [Step; 4] = [Step::Create, Step::Add, Step::Buy, Step::Confirm];
}

/// A cart. It is in memory, and one over all clusters.
#[derive(Default, Actor)]
pub struct Cart {
    order: String,
    items: Vec<String>,
}

#[actor(kind = "order_cart")]
impl Cart {
    /// Takes a step of the order called `order`; false if it cannot be taken, and the order is off then.
    pub async fn step(
        &mut self,
        cx: &Cx,
        step: Step,
        order: String,
        items: Vec<String>,
        asking: Asking,
    ) -> Result<bool, String> {
        match step {
            Step::Create => {
                self.items.clear();
                self.order = order;
                Ok(true)
            }
            Step::Add => {
                self.items = items;
                self.ask_all(cx, asking, Wish::Exists).await
            }
            Step::Buy => self.ask_or_undo(cx, asking, Wish::Reserve).await,
            Step::Confirm => self.ask_or_undo(cx, asking, Wish::Confirm).await,
        }
    }
}

impl Cart {
    async fn ask_all(&self, cx: &Cx, asking: Asking, wish: Wish) -> Result<bool, String> {
        for item in &self.items {
            if !asking.ask(cx, item, &self.order, wish).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn ask_or_undo(&self, cx: &Cx, asking: Asking, wish: Wish) -> Result<bool, String> {
        let done = self.ask_all(cx, asking, wish).await;
        if done != Ok(true) {
            for item in &self.items {
                // What was not reserved, or is sold, is left as it is.
                asking.ask(cx, item, &self.order, Wish::Cancel).await?;
            }
        }
        done
    }
}

//! What persistent actors promise, on one real node and stores that fail on command.

mod conflicts;
mod doubt;
mod faulty;
mod fields;
mod log;
mod protocols;
mod saving;
mod versioned;
mod versions;

use std::sync::Arc;

use greenroom::prelude::*;
use greenroom::{Builder, Node};
use greenroom_store::Store;
use serde::{Deserialize, Serialize};

/// An account whose every deposit is saved before it is answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Actor)]
pub(crate) struct Account {
    balance: i64,
}

#[actor(persistent)]
impl Account {
    pub async fn deposit(&mut self, cx: &Cx, amount: i64) -> Result<i64, StateError> {
        self.balance += amount;
        cx.save(self).await?;
        Ok(self.balance)
    }

    pub async fn balance(&self) -> i64 {
        self.balance
    }

    pub async fn reload(&mut self, cx: &Cx) -> Result<i64, StateError> {
        cx.reload(self).await?;
        Ok(self.balance)
    }

    pub async fn close(&mut self, cx: &Cx) -> Result<(), StateError> {
        cx.clear(self).await
    }

    pub async fn leave(&mut self, cx: &Cx) {
        cx.deactivate();
    }
}

/// A node whose actors keep their states in `store`.
async fn node(store: Arc<dyn Store>, equip: impl FnOnce(Builder) -> Builder) -> Node {
    equip(Node::builder().state_store("", store)).start().await.expect("a node on loopback starts")
}

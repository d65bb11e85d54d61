//! Registers, for checking what a cluster promises: their answers say which activation gave them and how many values it had
//! taken, so that a history of them shows what was lost, repeated or interleaved.

use std::time::Duration;

use greenroom::prelude::*;
use serde::{Deserialize, Serialize};

/// What a register answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stamped {
    /// The activation that answers.
    pub epoch: u64,
    /// Values taken so far, this call's included.
    pub count: u64,
    /// The value that was replaced or read; 0 before the first one.
    pub value: u64,
    /// The node that the activation is on.
    pub node: String,
}

/// A register that begins anew with each activation.
#[derive(Default, Actor)]
pub struct Register {
    count: u64,
    value: u64,
}

#[actor]
impl Register {
    /// Takes `value` and gives the one before.
    pub async fn swap(&mut self, cx: &Cx, value: u64) -> Stamped {
        let (count, before) = (self.count + 1, self.value);
        half_done(value).await;
        (self.count, self.value) = (count, value);
        stamped(cx, count, before)
    }

    /// Gives the value.
    pub async fn read(&self, cx: &Cx) -> Stamped {
        stamped(cx, self.count, self.value)
    }

    /// Ends the activation.
    pub async fn leave(&mut self, cx: &Cx) {
        cx.deactivate();
    }
}

/// A register that is kept in the node's store.
#[derive(Default, Serialize, Deserialize, Actor)]
pub struct KeptRegister {
    count: u64,
    value: u64,
}

#[actor(persistent)]
impl KeptRegister {
    /// Takes `value` and gives the one before, once it is saved.
    pub async fn swap(&mut self, cx: &Cx, value: u64) -> Result<Stamped, StateError> {
        let (count, before) = (self.count + 1, self.value);
        half_done(value).await;
        (self.count, self.value) = (count, value);
        cx.save(self).await?;
        Ok(stamped(cx, count, before))
    }

    /// Gives the value.
    pub async fn read(&self, cx: &Cx) -> Stamped {
        stamped(cx, self.count, self.value)
    }

    /// Ends the activation.
    pub async fn leave(&mut self, cx: &Cx) {
        cx.deactivate();
    }
}

fn stamped(cx: &Cx, count: u64, value: u64) -> Stamped {
    Stamped { epoch: cx.epoch(), count, value, node: cx.node_name().to_owned() }
}

/// Time inside a turn, in which another turn would see what this one has not finished.
async fn half_done(value: u64) {
    tokio::time::sleep(Duration::from_millis(value % 4)).await;
}

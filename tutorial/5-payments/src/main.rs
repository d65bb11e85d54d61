//! Members give each other money.

use greenroom::prelude::*;
use serde::{Deserialize, Serialize};

/// A room, and what was said in it.
#[derive(Default, Serialize, Deserialize, Actor)]
struct Room {
    lines: Vec<String>,
}

#[actor(persistent, save = "turn")]
impl Room {
    /// Says something; tells how many lines there are now.
    pub async fn post(&mut self, cx: &Cx, user: String, text: String) -> Result<usize, NotPosted> {
        if text.is_empty() {
            return Err(NotPosted::Empty);
        }
        match MemberRef::of(cx, &user).speak().await {
            Ok(_left) => {}
            Err(CallError::Actor(why)) => return Err(why),
            Err(lost) => return Err(NotPosted::Lost { why: lost.to_string() }),
        }
        self.lines.push(format!("{user}: {text}"));
        Ok(self.lines.len())
    }

    /// All lines.
    pub async fn read(&self) -> Vec<String> {
        self.lines.clone()
    }
}

/// Somebody who talks in rooms.
#[derive(Default, Serialize, Deserialize, Actor)]
struct Member {
    spoken: u32,
}

#[actor(persistent, save = "5s")]
impl Member {
    /// Counts one more line, in whatever room; tells how many are left.
    pub async fn speak(&mut self) -> Result<u32, NotPosted> {
        if self.spoken == LINES_MAX {
            return Err(NotPosted::Enough { lines: self.spoken });
        }
        self.spoken += 1;
        Ok(LINES_MAX - self.spoken)
    }
}

/// Lines that a member may say.
const LINES_MAX: u32 = 3;

/// Why a line is not in the room.
#[derive(Debug, Serialize, Deserialize, thiserror::Error)]
enum NotPosted {
    #[error("there is nothing in it")]
    Empty,
    #[error("{lines} lines are enough")]
    Enough { lines: u32 },
    #[error("the member could not be asked: {why}")]
    Lost { why: String },
}

// anchor: wallet
/// Money of a member.
#[derive(Default, Actor)]
struct Wallet {
    balance: Register<u64>,
}

#[actor(reliable)]
impl Wallet {
    /// Puts money in; tells how much there is now.
    pub async fn fill(&mut self, amount: u64) -> u64 {
        *self.balance.get_mut() += amount;
        *self.balance.get()
    }

    /// Gives money to another member; tells how much is left.
    pub async fn tip(&mut self, cx: &Cx, to: String, amount: u64) -> Result<u64, String> {
        let left = self.balance.get().checked_sub(amount).ok_or("there is not enough in it")?;
        self.balance.set(left);
        WalletRef::of(cx, to).fill(amount).send();
        Ok(left)
    }

    /// How much there is.
    pub async fn balance(&self) -> u64 {
        *self.balance.get()
    }
}
// end: wallet

#[tokio::main]
async fn main() -> greenroom::Result<()> {
    Node::builder().register::<Room>().register::<Member>().register::<Wallet>().run_from_args().await
}

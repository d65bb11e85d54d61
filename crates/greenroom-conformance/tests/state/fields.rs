//! Several states of one actor.

use std::sync::atomic::Ordering;

use greenroom::prelude::*;
use serde::{Deserialize, Serialize};

use super::faulty::Faulty;
use super::node;

#[derive(Default, Serialize, Deserialize)]
struct Profile {
    name: String,
}
impl State for Profile {}

#[derive(Default, Serialize, Deserialize)]
struct Wallet {
    coins: u64,
}
impl State for Wallet {}

#[derive(Default, Actor)]
struct Player {
    profile: Stored<Profile>,
    wallet: Stored<Wallet>,
    seen: u64,
}

#[actor]
impl Player {
    pub async fn rename(&mut self, cx: &Cx, name: String) -> Result<(), StateError> {
        self.profile.name = name;
        self.profile.save(cx).await
    }

    pub async fn earn(&mut self, cx: &Cx, coins: u64) -> Result<u64, StateError> {
        self.wallet.coins += coins;
        self.wallet.save(cx).await?;
        Ok(self.wallet.coins)
    }

    pub async fn lose_all(&mut self, cx: &Cx) -> Result<(), StateError> {
        self.wallet.clear(cx).await
    }

    pub async fn change_purse(&mut self, cx: &Cx) -> Result<(), StateError> {
        self.wallet = Stored::default();
        self.wallet.save(cx).await
    }

    pub async fn look(&mut self) -> (String, u64, u64) {
        self.seen += 1;
        (self.profile.name.clone(), self.wallet.coins, self.seen)
    }

    pub async fn leave(&mut self, cx: &Cx) {
        cx.deactivate();
    }
}

#[derive(Default, Serialize, Deserialize, Actor)]
struct Both {
    count: u64,
    wallet: Stored<Wallet>,
}

#[actor(persistent, save = "turn")]
impl Both {
    pub async fn add(&mut self) -> (u64, u64) {
        self.count += 1;
        self.wallet.coins += 10;
        (self.count, self.wallet.coins)
    }

    pub async fn leave(&mut self, cx: &Cx) {
        cx.deactivate();
    }
}

#[tokio::test]
async fn each_field_is_a_state_of_its_own() {
    let store = Faulty::new();
    let node = node(store.clone(), |builder| builder.register::<Player>()).await;
    let player = PlayerRef::of(&node, "ada");
    player.rename("Ada").await.unwrap();
    assert_eq!(player.earn(7).await, Ok(7));
    assert_eq!(store.reads.load(Ordering::Relaxed), 2, "one read a state");
    player.leave().await.unwrap();
    assert_eq!(player.look().await, Ok(("Ada".to_owned(), 7, 1)));
    player.lose_all().await.unwrap();
    player.leave().await.unwrap();
    assert_eq!(player.look().await, Ok(("Ada".to_owned(), 0, 1)));
}

#[tokio::test]
async fn a_state_that_the_actor_did_not_come_with_is_refused_and_the_remedy_named() {
    let store = Faulty::new();
    let node = node(store.clone(), |builder| builder.register::<Player>()).await;
    let player = PlayerRef::of(&node, "ada");
    assert_eq!(player.earn(7).await, Ok(7));
    let refused = player.change_purse().await;
    let Err(CallError::Actor(StateError::NotSaved { state, reason })) = refused else { panic!("{refused:?}") };
    assert!(state.contains("Wallet of player"), "{state}");
    assert!(reason.contains("`#[derive(Actor)]`"), "{reason}");
    assert_eq!(player.look().await, Ok((String::new(), 7, 1)), "what is stored stays");
}

#[tokio::test]
async fn a_persistent_actor_may_have_states_of_their_own_besides() {
    let node = node(Faulty::new(), |builder| builder.register::<Both>()).await;
    let both = BothRef::of(&node, "x");
    assert_eq!(both.add().await, Ok((1, 10)));
    both.leave().await.unwrap();
    assert_eq!(both.add().await, Ok((2, 20)));
}

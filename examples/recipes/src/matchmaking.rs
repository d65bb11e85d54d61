//! Players who wait are put together, and hear where they play.

// anchor: recipe
use std::collections::VecDeque;
use std::time::Duration;

use greenroom::prelude::*;

/// Who waits for a game, by the game's name as key: `chess`, `chess-blitz`.
#[derive(Default, Actor)]
pub struct Lobby {
    waiting: VecDeque<PlayerRef>,
    games: u64,
}

#[actor]
impl Lobby {
    /// Waits for an opponent. Whoever waits already stays where they are.
    pub async fn wait(&mut self, cx: &Cx, player: PlayerRef) {
        if !self.waiting.contains(&player) {
            self.waiting.push_back(player);
        }
        while self.waiting.len() >= 2 {
            let pair = [self.waiting.pop_front(), self.waiting.pop_front()];
            self.games += 1;
            for player in pair.into_iter().flatten() {
                player.bind(cx).play(format!("{}-{}", cx.key(), self.games)).send();
            }
        }
    }

    /// Waits no more.
    pub async fn leave(&mut self, player: PlayerRef) {
        self.waiting.retain(|other| *other != player);
    }
}

/// Somebody who plays, at the node that they came to first.
#[derive(Default, Actor)]
pub struct Player {
    game: Option<String>,
    lobby: Option<(LobbyRef, Timer)>,
}

#[actor(placement = "local")]
impl Player {
    /// Looks for a game; asks again each second, so that a lobby whose node died hears of it too.
    pub async fn seek(&mut self, cx: &Cx, game: String) -> Result<(), Refusal> {
        let lobby = LobbyRef::of(cx, game);
        lobby.wait(PlayerRef::me(cx)).send();
        let again = cx.every(Duration::from_secs(1), lobby.wait(PlayerRef::me(cx)))?;
        self.lobby = Some((lobby, again));
        Ok(())
    }

    /// The lobby has found an opponent.
    pub async fn play(&mut self, game: String) {
        if let Some((_, again)) = self.lobby.take() {
            again.cancel();
            self.game = Some(game);
        }
    }

    /// Where they play, once that is known.
    pub async fn game(&self) -> Option<String> {
        self.game.clone()
    }
}
// end: recipe

#[cfg(test)]
mod tests {
    use greenroom_test::Cluster;

    use super::*;

    #[test]
    fn two_who_seek_find_each_other_though_the_lobbys_node_dies() {
        let kinds = |builder: greenroom::Builder| builder.register::<Lobby>().register::<Player>();
        Cluster::of(3, kinds).seeds(10, |cluster| async move {
            let a = cluster.node("a");
            let player = |name: &str| PlayerRef::of(&a, name);
            player("ada").seek("chess".to_owned()).await.expect("she seeks");
            cluster.kill("c");
            player("bob").seek("chess".to_owned()).await.expect("he seeks");
            tokio::time::sleep(Duration::from_secs(30)).await;
            let games = (player("ada").game().await, player("bob").game().await);
            assert!(matches!(&games, (Ok(Some(one)), Ok(Some(other))) if one == other), "{games:?}");
        });
    }
}

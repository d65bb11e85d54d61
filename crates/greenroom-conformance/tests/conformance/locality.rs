//! The optimiser knows who talks with whom, and who would do better elsewhere.

use std::time::Duration;

use greenroom::Builder;
use greenroom::optimiser::{ActorAdvice, OptimiserMode};
use greenroom::prelude::*;

use crate::scenario::calm;

/// Moves in a game.
#[derive(Default, Actor)]
struct Player {}

#[actor(placement = "role:players")]
impl Player {
    pub async fn play(&mut self, cx: &Cx, game: String) -> u64 {
        GameRef::of(cx, game.as_str()).play().await.unwrap_or_default()
    }

    pub async fn play_on(&mut self, cx: &Cx, game: String, moves: u32) {
        for _ in 0..moves {
            GameRef::of(cx, game.as_str()).play().await.unwrap_or_default();
        }
    }

    pub async fn chat(&mut self, cx: &Cx, other: String) {
        PlayerRef::of(cx, other.as_str()).hear().send();
    }

    pub async fn hear(&mut self) {}

    pub async fn ask_and_tell(&mut self, cx: &Cx, asked: String, told: String) {
        GameRef::of(cx, asked.as_str()).play().await.unwrap_or_default();
        GameRef::of(cx, told.as_str()).play().send();
        for near in [&asked, &told] {
            PlayerRef::of(cx, near.as_str()).hear().await.unwrap_or_default();
        }
        PlayerRef::of(cx, told.as_str()).hear().send();
    }
}

/// Counts moves.
#[derive(Default, Actor)]
struct Game {
    moves: u64,
}

#[actor(placement = "role:games")]
impl Game {
    pub async fn play(&mut self) -> u64 {
        self.moves += 1;
        self.moves
    }
}

fn turned_off(builder: Builder, name: &str) -> Builder {
    let role = if name == "a" { "players" } else { "games" };
    let builder = builder.register::<Player>().register::<Game>();
    builder.configure(|config| {
        config.roles = vec![role.to_owned()];
        config.optimiser.mode = OptimiserMode::Off;
    })
}

fn advised(builder: Builder, name: &str) -> Builder {
    turned_off(builder, name).configure(|config| config.optimiser.mode = OptimiserMode::Advise)
}

/// Time in which each shard has looked at all rows.
const LOOKED: Duration = Duration::from_secs(3);

/// The parts of an actor's messages that stay on its node, and that go to each place.
fn parts(advice: &ActorAdvice) -> (f32, Vec<(&str, f32)>) {
    (
        advice.near + advice.beside + advice.outside,
        advice.places.iter().map(|(place, part)| (place.as_str(), *part)).collect(),
    )
}

#[test]
fn who_talks_with_an_actor_of_another_node_would_do_better_there() {
    calm(20, advised, async |cluster| {
        let [a, ..] = cluster.three();
        let ada = PlayerRef::of(&a, "ada");
        tokio::time::sleep(LOOKED).await;
        // Her caller is on her node, and its call is the first of many messages.
        ada.play_on("chess", 64).await.expect("it answers");
        tokio::time::sleep(LOOKED).await;
        let advice = a.explain("player", "ada").await.expect("it is among the hot ones");
        let (here, places) = parts(&advice);
        let (there, part) = places[0];
        assert!(there == "b" || there == "c", "the games are there: {advice:?}");
        assert!(part > 0.9 && here < 0.1, "all its messages went there: {advice:?}");
        assert!(advice.why.contains(&format!("would do better at {there}")), "{advice:?}");
        assert_eq!(advice.partners[0].0, "game/chess");

        let known = a.advice(10).await;
        let wishes: Vec<_> = known.shards.iter().flat_map(|shard| &shard.wishes).collect();
        assert!(wishes.iter().any(|wish| wish.actor == "player/ada" && wish.to == there), "{known:?}");
        let edges = || known.shards.iter().flat_map(|shard| &shard.edges);
        assert!(edges().any(|edge| (&*edge.actor, &*edge.partner) == ("player/ada", "game/chess")), "{known:?}");
    });
}

#[test]
fn whose_callers_are_no_actors_on_its_node_stays_as_long_as_they_call_as_much_as_others() {
    calm(10, advised, async |cluster| {
        let [a, ..] = cluster.three();
        let ada = PlayerRef::of(&a, "ada");
        tokio::time::sleep(LOOKED).await;
        for _ in 0..64 {
            ada.play("chess").await.expect("it answers");
        }
        tokio::time::sleep(LOOKED).await;
        let advice = a.explain("player", "ada").await.expect("it is among the hot ones");
        let (_, part) = parts(&advice).1[0];
        assert!((0.4..0.6).contains(&advice.outside) && (0.4..0.6).contains(&part), "one call each: {advice:?}");
        assert!(advice.why.starts_with("it stays"), "where it went its callers would be elsewhere: {advice:?}");
    });
}

#[test]
fn who_talks_with_actors_of_its_own_node_stays() {
    calm(20, advised, async |cluster| {
        let [a, ..] = cluster.three();
        let ada = PlayerRef::of(&a, "ada");
        tokio::time::sleep(LOOKED).await;
        for _ in 0..64 {
            ada.chat("bob").await.expect("it answers");
            // The first go by way of who owns bob's range.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        tokio::time::sleep(LOOKED).await;
        for name in ["ada", "bob"] {
            let advice = a.explain("player", name).await.expect("it is among the hot ones");
            let (here, _) = parts(&advice);
            assert!(here > 0.9 && advice.why.starts_with("it stays"), "all its messages stayed: {advice:?}");
        }
    });
}

#[test]
fn a_call_counts_as_a_question_and_an_answer_wherever_its_actor_is() {
    calm(10, advised, async |cluster| {
        let [a, ..] = cluster.three();
        let ada = PlayerRef::of(&a, "ada");
        tokio::time::sleep(LOOKED).await;
        for _ in 0..20 {
            ada.ask_and_tell("chess".to_owned(), "go".to_owned()).await.expect("it answers");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let advice = a.explain("player", "ada").await.expect("it is among the hot ones");
        let weight = |partner: &str| {
            let found = advice.partners.iter().find(|(name, _)| name == partner);
            found.unwrap_or_else(|| panic!("{partner} is no partner: {advice:?}")).1
        };
        let told = weight("game/go");
        for (partner, messages) in [("game/chess", 2.0), ("player/chess", 2.0), ("player/go", 3.0)] {
            let times = weight(partner) / told;
            assert!((times / messages - 1.0).abs() < 0.1, "{partner}: {times} times as many: {advice:?}");
        }
        let games = cluster.three().into_iter().filter(|node| node.name() != "a");
        for node in games {
            for (game, messages) in [("chess", 2.0), ("go", 1.0)] {
                let Some(found) = node.explain("game", game).await else { continue };
                // A third of a minute is not long beside half a minute's half-life.
                // Of ada's ten messages two are of her caller, which is no actor.
                let seen = found.rate / advice.rate * 10.0;
                assert!((seen / messages - 1.0).abs() < 0.2, "{game} has {seen}: {found:?}, {advice:?}");
            }
        }
    });
}

#[test]
fn nobody_wishes_to_be_on_a_node_that_is_gone() {
    calm(10, advised, async |cluster| {
        let [a, ..] = cluster.three();
        let ada = PlayerRef::of(&a, "ada");
        tokio::time::sleep(LOOKED).await;
        for _ in 0..16 {
            ada.play("chess").await.expect("it answers");
        }
        let before = a.explain("player", "ada").await.expect("it is among the hot ones");
        let there = before.places[0].0.clone();
        cluster.stop(&there);
        while a.members().contains(&there) {
            tokio::time::sleep(LOOKED).await;
        }
        tokio::time::sleep(LOOKED).await;
        let after = a.explain("player", "ada").await.expect("it is among the hot ones still");
        assert!(
            after.places.iter().all(|(place, _)| *place != there) && after.why.starts_with("it stays"),
            "{after:?}"
        );
        let known = a.advice(10).await;
        assert!(known.shards.iter().all(|shard| shard.wishes.is_empty()), "{known:?}");
    });
}

#[test]
fn nothing_is_known_where_the_optimiser_is_off() {
    calm(5, turned_off, async |cluster| {
        let [a, ..] = cluster.three();
        let ada = PlayerRef::of(&a, "ada");
        for _ in 0..64 {
            ada.play("chess").await.expect("it answers");
        }
        tokio::time::sleep(LOOKED).await;
        assert_eq!(a.explain("player", "ada").await, None);
        assert!(a.advice(10).await.shards.is_empty());
    });
}

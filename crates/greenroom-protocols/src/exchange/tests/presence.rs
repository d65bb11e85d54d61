//! Players and games in miniature: what the exchange is for, and what it leaves alone.

use std::time::Duration;

use super::super::*;
use super::world::World;
use crate::mix::mix;

/// Players in games of eight on so many nodes, placed at random.
fn presence(nodes: u64, games: u64, config: Config) -> World {
    let mut world = World::new(nodes, config);
    for game in 0..games {
        let name = 1_000_000 + game;
        world.actor(name, 1 + mix(name) % nodes, 400);
        for player in game * PLAYERS..(game + 1) * PLAYERS {
            world.actor(player, 1 + mix(player) % nodes, 100);
            world.talk(name, player, 60);
        }
    }
    world.settle();
    world
}

/// The hundredths of all messages that are remote, second by second.
fn remote(world: &mut World, seconds: u64) -> Vec<u64> {
    (0..seconds)
        .map(|_| {
            world.seconds(1);
            world.remote_percent()
        })
        .collect()
}

#[test]
fn players_and_their_games_come_together() {
    let mut world = presence(4, 200, Config::default());
    let first = world.remote_percent();
    let remote = remote(&mut world, 30);
    println!("remote {first} %, then {remote:?}, {} moves", world.moves);
    assert!(first > 70);
    assert!(remote[20] <= 10 && remote[29] <= 4, "{remote:?}");
    let counts: Vec<u64> = (1..=4).map(|node| world.count(node)).collect();
    let mean = 450;
    assert!(counts.iter().all(|count| *count <= mean + mean / 4), "{counts:?}");
    // Of 1,800 actors, hardly one goes twice.
    assert!(world.moves <= 1_800, "{}", world.moves);
    assert_eq!(world.seconds(60), 0, "nothing is left to do");
}

#[test]
fn players_of_new_games_come_together_again() {
    let mut world = presence(4, 100, Config::default());
    world.seconds(40);
    // Every tenth game ends, and its players begin a new one with those of others.
    let ended: Vec<u64> = (0..100).step_by(5).collect();
    let players: Vec<u64> = ended.iter().flat_map(|game| game * PLAYERS..(game + 1) * PLAYERS).collect();
    for game in &ended {
        world.stage.edges.remove(&(1_000_000 + game));
    }
    for (place, player) in players.iter().enumerate() {
        world.stage.edges.remove(player);
        let game = 2_000_000 + place as u64 % ended.len() as u64;
        if place < ended.len() {
            world.actor(game, 1 + mix(game) % 4, 400);
        }
        world.talk(game, *player, 60);
    }
    let (before, moves) = (world.remote_percent(), world.moves);
    let remote = remote(&mut world, 30);
    let moves = (world.moves - moves) / ended.len();
    println!("remote {before} %, then {remote:?}, {moves} moves a new game");
    assert!(before >= 12 && remote[29] <= 3, "{before} %, then {remote:?}");
    assert!(moves <= 9, "{moves} moves a new game");
}

#[test]
fn o15_with_one_exchange_a_minute_games_are_over_before_two_nodes_meet() {
    let rare = Config { round: Duration::from_secs(60), visits: 1, ..Config::default() };
    let remote = |config: Config| {
        let mut world = presence(8, 50, config);
        world.seconds(60);
        world.remote_percent()
    };
    let (rare, often) = (remote(rare), remote(Config::default()));
    assert!(often <= 4 && rare >= 40, "{often} % after a minute, with one exchange a minute {rare} %");
}

#[test]
fn where_nothing_can_be_gained_hardly_anything_moves() {
    let mut world = World::new(4, Config::default());
    for hash in 0..600 {
        world.actor(hash, 1 + mix(hash) % 4, 1_000);
    }
    for hash in 0..600_u64 {
        for talk in 0..16 {
            let other = mix(hash * 16 + talk) % 600;
            if other != hash {
                world.talk(hash, other, 10);
            }
        }
    }
    world.settle();
    let (first, moves) = (world.remote_percent(), world.seconds(60));
    println!("remote {first} %, then {} %, {moves} moves", world.remote_percent());
    assert!(moves <= 30, "{moves} moves of 600 actors");
}

#[test]
fn o15_one_exchange_a_minute_lags_behind_the_games() {
    let after = |config| {
        let mut world = presence(8, 80, config);
        world.seconds(60);
        world.remote_percent()
    };
    let (second, visits) = (Duration::from_secs(1), 1);
    let slow = Config { round: second * 60, jitter: second, visits, ..Config::default() };
    let (kept, lags) = (after(Config::default()), after(slow));
    assert!(kept <= 4, "{kept}");
    assert!(lags > 50, "{lags}");
}

#[test]
fn o29_who_has_left_something_to_be_done_does_not_wait_for_its_next_round() {
    let waits = Config { again: Config::default().round, ..Config::default() };
    let moved = |config: Config| {
        let tolerance = Tolerance { count_min: 10_000, ..Tolerance::default() };
        let mut world = World::new(2, Config { tolerance, ..config });
        world.anchor(1, 2, 0);
        // More than two exchanges take.
        for hash in 1_000..2_400 {
            world.actor(hash, 1, 0);
            world.talk(hash, 1, 100);
        }
        world.settle();
        world.seconds(4)
    };
    let (kept, waited) = (moved(Config::default()), moved(waits));
    assert!(kept == 1_400 && waited < 1_200, "{kept} and {waited}");
    let asks_again = |config| {
        let mut world = World::new(2, config);
        world.fate = |_, _, _| Vec::new();
        world.actor(10, 1, 0);
        world.anchor(20, 2, 0);
        world.talk(10, 20, 100);
        world.settle();
        world.tick(1);
        let x = ExchangeId { by: NodeId(1), number: 1 };
        world.say(2, 1, Message::Busy { x, wait: Duration::from_millis(100) });
        world.pass(Duration::from_millis(1_100));
        !world.nodes[&NodeId(1)].is_idle()
    };
    assert!(asks_again(Config::default()) && !asks_again(waits));
}

#[test]
fn messages_that_are_lost_and_late_only_slow_it_down() {
    let mut world = presence(4, 60, Config::default());
    world.fate = |from, to, message| match mix(from.0 * 31 + to.0 * 7 + message.x().number) % 5 {
        0 => Vec::new(),
        1 => vec![Duration::from_millis(700)],
        2 => vec![Duration::from_millis(3), Duration::from_millis(900)],
        _ => vec![Duration::from_millis(2)],
    };
    let remote = remote(&mut world, 120);
    assert!(remote[119] <= 5, "{remote:?}");
}

const PLAYERS: u64 = 8;

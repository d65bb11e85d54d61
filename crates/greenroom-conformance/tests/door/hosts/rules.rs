//! The rules of the host protocol, each against its trace, over real sockets.

use std::path::PathBuf;
use std::time::Duration;

use bytes::BytesMut;
use greenroom::prelude::*;
use greenroom_wire::carried::{PrincipalView, pairs};
use greenroom_wire::extension::tag;
use greenroom_wire::host::OfferStatus;
use greenroom_wire::{ExtensionView, ExtensionWriter, Status};
use serde_json::json;
use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::host::{Plan, TestHost};
use super::puppet::{Heard, Puppet, written};
use super::with_socket;
use crate::client::{Answer, call, post, raw};
use crate::kinds::{node, open};

/// A node with one shard that takes hosts, its door, and its socket.
pub(super) async fn opened(folder: &TempDir) -> (Node, String, PathBuf) {
    let (builder, path) = with_socket(node().configure(|config| config.shards = 1), folder, "a");
    let (node, door) = open(builder).await;
    (node, door, path)
}

/// A call that waits for its answer by itself.
fn calls(door: &str, path: &str) -> JoinHandle<Answer> {
    let (door, path) = (door.to_owned(), path.to_owned());
    tokio::spawn(async move { call(&door, &path, "{}").await })
}

async fn answered(call: JoinHandle<Answer>) -> Answer {
    call.await.expect("it ends")
}

#[tokio::test]
async fn who_hears_that_an_offer_is_taken_may_call_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let (node, door, path) = opened(&folder).await;
    let mut hosts = Vec::new();
    for kind in ["at_once", "at_once_too", "at_once_again"] {
        let host = TestHost::serve(&path, Plan { kind, version: 1, persistent: false }).await;
        assert_eq!(host.offered, [(OfferStatus::Taken, String::new())]);
        let answer = call(&door, &format!("/{kind}/x/total"), "{}").await;
        assert_eq!((answer.status, &*answer.body), (200, "0"), "{kind}");
        hosts.push(host);
    }
    node.stop().await;
}

#[tokio::test]
async fn who_comes_before_its_node_has_joined_is_welcomed_once_it_has() {
    let folder = tempfile::tempdir().expect("a folder");
    let (builder, path) = with_socket(node().configure(|config| config.shards = 1), &folder, "a");
    let opening = tokio::spawn(open(builder));
    while !path.exists() {
        tokio::task::yield_now().await;
    }
    let mut host = Puppet::comes(&path, "early", 1).await;
    host.defines("topics", "subscribers").await;
    host.asks((1, 0), "prices/eu", None, ExtensionView::default()).await;
    assert_eq!(host.answer().await, (1, Status::Ok), "nobody knew yet where actors are");
    drop(host);
    let (node, _) = opening.await.expect("it opens");
    node.stop().await;
}

#[tokio::test]
async fn actors_are_activated_on_shards_that_a_host_has_lanes_to() {
    let folder = tempfile::tempdir().expect("a folder");
    let (builder, path) = with_socket(node().configure(|config| config.shards = 3), &folder, "a");
    let (node, door) = open(builder).await;
    let mut host = Puppet::with(&path, "one_lane", 1, json!({}), |map| map.lanes = 1).await;
    for key in 0..12 {
        let read = calls(&door, &format!("/one_lane/{key}/total"));
        assert_eq!(host.seats().await.1, key.to_string());
        let (turn, _) = host.turn().await;
        host.ends(turn, key, false).await;
        assert_eq!(answered(read).await.body, key.to_string());
    }
    drop(host);
    node.stop().await;
}

#[tokio::test]
async fn l1_a_seat_is_given_away_when_its_host_has_dropped_it_and_not_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let (node, door, path) = opened(&folder).await;
    let mut first = Puppet::comes(&path, "held", 1).await;
    let read = calls(&door, "/held/x/total");
    let (_, key) = first.seats().await;
    let (_, method) = first.turn().await;
    assert_eq!((&*key, method), ("x", "total"));
    let mut next = Puppet::comes(&path, "held", 1).await;
    first.loses_lane().await;
    // It may still run what it has read: so the other host gets all but that.
    let other = calls(&door, "/held/y/total");
    assert_eq!(next.seats().await.1, "y");
    let (turn, _) = next.turn().await;
    next.ends(turn, 2, false).await;
    assert_eq!(answered(other).await.body, "2");
    first.drops();
    assert_eq!(next.seats().await.1, "x");
    let (turn, method) = next.turn().await;
    assert_eq!(method, "total", "a read runs again");
    next.ends(turn, 1, false).await;
    assert_eq!(answered(read).await.body, "1");
    drop((first, next));
    node.stop().await;
}

#[tokio::test]
async fn l3_what_a_host_says_of_a_turn_of_a_seat_that_was_lost_does_not_count() {
    let folder = tempfile::tempdir().expect("a folder");
    let (node, door, path) = opened(&folder).await;
    let kept = json!({ "options": { "persistent": true }, "states": [{ "name": "self", "version": 1 }] });
    let mut first = Puppet::with(&path, "late", 1, kept.clone(), |_| ()).await;
    let lost = calls(&door, "/late/x/add");
    first.seats().await;
    let (turn, _) = first.turn().await;
    // The session is lost while its user lane is whole, and calls come meanwhile: each of them ends, or waits for a host.
    first.loses_control();
    answered(lost).await.problem(502, "unknown-outcome");
    first.ends(turn, 7, true).await;
    let read = calls(&door, "/late/x/total");
    let mut next = Puppet::with(&path, "late", 1, kept, |_| ()).await;
    let (seat, key) = next.seats().await;
    assert_eq!((seat, &*key), (1, "x"));
    let (turn, _) = next.turn().await;
    next.ends(turn, 0, false).await;
    assert_eq!(answered(read).await.body, "0");
    drop(next);
    node.stop().await;
}

#[tokio::test]
async fn what_is_stored_comes_with_each_seat_until_an_actor_is_made_of_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let (node, door, path) = opened(&folder).await;
    let kept = json!({ "options": { "persistent": true }, "states": [{ "name": "self", "version": 1 }] });
    let comes = || Puppet::with(&path, "stored", 1, kept.clone(), |_| ());
    let mut first = comes().await;
    let add = calls(&door, "/stored/x/add");
    first.seats().await;
    let (turn, _) = first.turn().await;
    first.ends(turn, 7, true).await;
    assert_eq!(answered(add).await.body, "7");
    first.leaves().await;
    let read = calls(&door, "/stored/x/total");
    // The next one goes before it has made the actor.
    let mut next = comes().await;
    let brings = |heard| matches!(heard, Heard::Activate { stored: Some(7), .. });
    assert!(brings(next.hears().await));
    next.leaves().await;
    let mut last = comes().await;
    assert!(brings(last.hears().await), "the state is not there any more");
    drop(last);
    drop(read);
    node.stop().await;
}

#[tokio::test]
async fn an_actor_that_is_made_by_a_host_which_leaves_gets_its_turn_at_the_next() {
    let folder = tempfile::tempdir().expect("a folder");
    let (node, door, path) = opened(&folder).await;
    let mut first = Puppet::comes(&path, "drained", 1).await;
    let read = calls(&door, "/drained/x/total");
    let Heard::Activate { seat, .. } = first.hears().await else { panic!("no Activate") };
    let mut next = Puppet::comes(&path, "drained", 1).await;
    first.drains().await;
    first.has_made(seat).await;
    assert_eq!(first.hears().await, Heard::Deactivate { seat, is_carry: true });
    first.releases(seat, &[]).await;
    assert_eq!(next.seats().await.1, "x");
    let (turn, _) = next.turn().await;
    next.ends(turn, 3, false).await;
    assert_eq!(answered(read).await.body, "3");
    drop((first, next));
    node.stop().await;
}

#[tokio::test]
async fn l7_numbers_of_seats_and_turns_rise_over_all_lanes_of_a_session() {
    let folder = tempfile::tempdir().expect("a folder");
    let (node, door, path) = opened(&folder).await;
    let mut host = Puppet::comes(&path, "risen", 1).await;
    let read = calls(&door, "/risen/x/total");
    let (seat, _) = host.seats().await;
    let (turn, _) = host.turn().await;
    host.loses_lane().await;
    let next_seat = match host.rejoins_and_drops().await {
        Heard::Activate { seat, .. } => seat,
        other => panic!("{other:?}"),
    };
    host.has_made(next_seat).await;
    let (next_turn, _) = host.turn().await;
    assert!(next_seat > seat && next_turn > turn, "{next_seat} after {seat}, {next_turn} after {turn}");
    host.ends(next_turn, 3, false).await;
    assert_eq!(answered(read).await.body, "3");
    drop(host);
    node.stop().await;
}

#[tokio::test]
async fn l8_a_turn_that_waits_for_an_actor_of_its_own_host_gives_its_place_to_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let (node, door, path) = opened(&folder).await;
    let mut host = Puppet::with(&path, "narrow_host", 1, json!({}), |map| map.turns_max = 1).await;
    let asked = calls(&door, "/narrow_host/x/ask");
    host.seats().await;
    let (asking, _) = host.turn().await;
    host.calls(asking, "narrow_host", "y").await;
    assert_eq!(host.seats().await.1, "y");
    let (turn, method) = host.turn().await;
    assert_eq!(method, "total");
    host.ends(turn, 4, false).await;
    assert_eq!(host.hears().await, Heard::Reply { request: 1, status: Status::Ok });
    host.ends(asking, 5, false).await;
    assert_eq!(answered(asked).await.body, "5");
    drop(host);
    node.stop().await;
}

#[tokio::test]
async fn l12_a_version_of_a_kind_has_one_description() {
    let folder = tempfile::tempdir().expect("a folder");
    let (node, _, path) = opened(&folder).await;
    let first = Puppet::comes(&path, "claimed", 1).await;
    assert_eq!(first.offered.0, OfferStatus::Taken);
    let other = json!({ "methods": [{ "name": "add", "read": true, "arguments": true }] });
    let second = Puppet::with(&path, "claimed", 1, other, |_| ()).await;
    let (status, reason) = &second.offered;
    assert_eq!(*status, OfferStatus::Refused);
    assert!(reason.contains("another one") && reason.contains("higher version"), "{reason}");
    let same = Puppet::comes(&path, "claimed", 1).await;
    assert_eq!(same.offered.0, OfferStatus::Taken);
    node.stop().await;
}

#[tokio::test]
async fn l14_a_route_means_what_it_did_after_an_upgrade_and_is_looked_up_again_until_its_kind_has_come() {
    let folder = tempfile::tempdir().expect("a folder");
    let (node, _, path) = opened(&folder).await;
    let mut asker = Puppet::comes(&path, "asker", 1).await;
    asker.defines("numbered", "total").await;
    asker.asks((1, 0), "x", None, ExtensionView::default()).await;
    assert_eq!(asker.answer().await, (1, Status::Refused));
    let mut first = Puppet::comes(&path, "numbered", 1).await;
    asker.asks((2, 0), "x", None, ExtensionView::default()).await;
    let (seat, _) = first.seats().await;
    let (turn, method) = first.turn().await;
    assert_eq!(method, "total");
    first.ends(turn, 1, false).await;
    assert_eq!(asker.answer().await, (2, Status::Ok));
    // The newer version has the method at another place: the third, where the puppet's own list has `ask`.
    let of = |name: &str, read: bool| json!({ "name": name, "read": read, "arguments": true });
    let moved = json!({ "methods": [of("add", false), of("ask", false), of("total", true)] });
    let mut newer = Puppet::with(&path, "numbered", 2, moved, |_| ()).await;
    assert_eq!(newer.offered.0, OfferStatus::TakenInPlace);
    assert_eq!(first.hears().await, Heard::Deactivate { seat, is_carry: true });
    first.releases(seat, &[]).await;
    asker.asks((3, 0), "x", None, ExtensionView::default()).await;
    newer.seats().await;
    let (turn, method) = newer.turn().await;
    assert_eq!(method, "ask");
    newer.ends(turn, 2, false).await;
    assert_eq!(asker.answer().await, (3, Status::Ok));
    drop((asker, first, newer));
    node.stop().await;
}

#[tokio::test]
async fn l18_a_host_names_nobody_and_has_no_more_time_than_its_turn() {
    let folder = tempfile::tempdir().expect("a folder");
    let (node, door, path) = opened(&folder).await;
    let mut host = Puppet::comes(&path, "climber", 1).await;
    let asked = tokio::spawn(async move { raw(&door, &post("/climber/x/ask", "baggage: tenant=a\r\n", "{}")).await });
    host.seats().await;
    let (asking, _) = host.turn().await;
    let left = host.carried.1.expect("the door's calls have a limit");
    let mut field = BytesMut::new();
    PrincipalView { name: "root", roles: vec!["admin"] }.put(&mut field);
    let mut extension = ExtensionWriter::new();
    extension.put(tag::PRINCIPAL, &field).expect("it fits");
    let extension = extension.view();
    host.defines("climber", "total").await;
    // In the turn, and as a client.
    for (turn, key) in [(asking, "y"), (0, "z")] {
        host.asks((1 + turn, turn), key, Some(left * 1000), extension).await;
        assert_eq!(host.seats().await.1, key);
        let (called, _) = host.turn().await;
        let (carried, has) = host.carried.clone();
        let carried = ExtensionView::parse(&carried).expect("it is one");
        assert!(carried.find(tag::PRINCIPAL).is_none(), "the host has made itself an admin");
        assert!(turn == 0 || has.is_some_and(|has| has <= left), "{has:?} of {left:?}");
        // What the turn carries goes on with its calls, and with no others.
        let context = carried.find(tag::CONTEXT).map(|context| pairs(context).expect("they are pairs"));
        assert_eq!(context, (turn != 0).then(|| vec![("tenant", "a")]));
        host.ends(called, 1, false).await;
        assert_eq!(host.answer().await, (1 + turn, Status::Ok));
    }
    // Nor does its call begin a chain of its own: what would wait for itself is told so.
    host.asks((50, asking), "x", None, ExtensionView::default()).await;
    assert_eq!(host.answer().await, (50, Status::Cycle));
    // A turn that it does not run has no name to lend.
    host.asks((99, asking + 1000), "y", None, ExtensionView::default()).await;
    assert_eq!(host.answer().await, (99, Status::Unknown));
    host.ends(asking, 5, false).await;
    assert_eq!(answered(asked).await.body, "5");
    drop(host);
    node.stop().await;
}

#[tokio::test]
async fn l15_a_turn_that_was_sent_and_lost_is_not_sent_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let (node, door, path) = opened(&folder).await;
    let mut first = Puppet::comes(&path, "charged", 1).await;
    let charge = calls(&door, "/charged/x/add");
    first.seats().await;
    assert_eq!(first.turn().await.1, "add");
    let mut next = Puppet::comes(&path, "charged", 1).await;
    first.loses_lane().await;
    first.drops();
    answered(charge).await.problem(502, "unknown-outcome");
    let read = calls(&door, "/charged/x/total");
    assert_eq!(next.seats().await.1, "x");
    let (turn, method) = next.turn().await;
    assert_eq!(method, "total", "the card is charged twice");
    next.ends(turn, 0, false).await;
    assert_eq!(answered(read).await.body, "0");
    drop((first, next));
    node.stop().await;
}

#[tokio::test]
async fn l21_an_actor_whose_turn_has_raised_is_made_anew_of_what_is_stored() {
    let folder = tempfile::tempdir().expect("a folder");
    let (node, door, path) = opened(&folder).await;
    let kept = json!({ "options": { "persistent": true }, "states": [{ "name": "self", "version": 1 }] });
    let mut host = Puppet::with(&path, "halved", 1, kept, |_| ()).await;
    let saved = calls(&door, "/halved/x/add");
    let (seat, _) = host.seats().await;
    let (turn, _) = host.turn().await;
    host.ends(turn, 7, true).await;
    assert_eq!(answered(saved).await.body, "7");
    let failed = calls(&door, "/halved/x/add");
    let (turn, _) = host.turn().await;
    host.raises(turn).await;
    answered(failed).await.problem(500, "panicked");
    let next = calls(&door, "/halved/x/total");
    assert_eq!(host.hears().await, Heard::Deactivate { seat, is_carry: false }, "what it has half done is kept");
    host.releases(seat, &[]).await;
    let seat = match host.hears().await {
        Heard::Activate { seat, stored: Some(7), .. } => seat,
        other => panic!("{other:?}"),
    };
    host.has_made(seat).await;
    let (turn, _) = host.turn().await;
    host.ends(turn, 7, false).await;
    assert_eq!(answered(next).await.body, "7");
    drop(host);
    node.stop().await;
}

#[tokio::test]
async fn l23_an_actor_goes_to_the_newer_version_at_a_turn_boundary_and_never_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let (node, door, path) = opened(&folder).await;
    let mut old = Puppet::comes(&path, "raised", 1).await;
    let first = calls(&door, "/raised/x/add");
    let (seat, _) = old.seats().await;
    let (turn, _) = old.turn().await;
    let mut new = Puppet::comes(&path, "raised", 2).await;
    assert_eq!(new.offered.0, OfferStatus::TakenInPlace);
    old.ends(turn, 1, false).await;
    assert_eq!(answered(first).await.body, "1");
    assert_eq!(old.hears().await, Heard::Deactivate { seat, is_carry: true });
    let second = calls(&door, "/raised/x/add");
    old.releases(seat, &written(1)).await;
    let seat = match new.hears().await {
        Heard::Activate { seat, is_carried: true, .. } => seat,
        other => panic!("{other:?}"),
    };
    new.has_made(seat).await;
    let (turn, _) = new.turn().await;
    new.ends(turn, 2, false).await;
    assert_eq!(answered(second).await.body, "2");
    // The newer one goes: its actor waits for it, and is not given to the older one, which has others.
    new.leaves().await;
    let third = calls(&door, "/raised/x/add");
    let other = calls(&door, "/raised/y/total");
    assert_eq!(old.seats().await.1, "y");
    let (turn, _) = old.turn().await;
    old.ends(turn, 0, false).await;
    assert_eq!(answered(other).await.body, "0");
    answered(third).await.problem(503, "unavailable");
    drop((old, new));
    node.stop().await;
}

#[tokio::test]
async fn an_actor_whose_host_does_not_let_it_go_ends_all_the_same_and_the_next_call_makes_it_anew() {
    let folder = tempfile::tempdir().expect("a folder");
    let builder = node().configure(|config| {
        config.shards = 1;
        config.deactivating_timeout = Duration::from_millis(300);
        // Each bound for itself: this one would end it as well.
        config.stop_timeout = Duration::from_secs(3600);
    });
    let (builder, path) = with_socket(builder, &folder, "a");
    let (node, door) = open(builder).await;
    let mut host = Puppet::comes(&path, "clinging", 1).await;
    let read = calls(&door, "/clinging/x/total");
    let (seat, _) = host.seats().await;
    let (turn, _) = host.turn().await;
    host.ends(turn, 1, false).await;
    assert_eq!(answered(read).await.body, "1");
    assert_eq!(raw(&door, &post("/-/actors/clinging/x/deactivate", "", "")).await.status, 202);
    assert_eq!(host.hears().await, Heard::Deactivate { seat, is_carry: false });
    let read = calls(&door, "/clinging/x/total");
    let (next, _) = host.seats().await;
    assert_ne!(next, seat, "a seat that was not let go is given away");
    let (turn, _) = host.turn().await;
    // At last it lets go, of what nobody waits for any more.
    host.releases(seat, &[]).await;
    host.ends(turn, 2, false).await;
    assert_eq!(answered(read).await.body, "2");
    let read = calls(&door, "/clinging/x/total");
    let (turn, _) = host.turn().await;
    host.ends(turn, 3, false).await;
    assert_eq!(answered(read).await.body, "3");
    node.stop().await;
}

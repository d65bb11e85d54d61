//! Actors that are active, page by page.

use serde_json::Value;

use crate::client::{call, get};
use crate::kinds::{node, open};

fn names(page: &Value) -> Vec<String> {
    let actors = page["actors"].as_array().expect("a list");
    actors.iter().filter_map(|actor| Some(actor["actor"].as_str()?.to_owned())).collect()
}

#[tokio::test]
async fn each_active_actor_is_on_one_of_the_pages_and_looking_activates_none() {
    let (node, door) = open(node()).await;
    let empty = get(&door, "/-/actors").await.json();
    assert_eq!((names(&empty).len(), &empty["matched"], &empty["next"]), (0, &0.into(), &Value::Null), "{empty}");
    let all: Vec<String> = (0..30).map(|key| format!("notes/eu-{key:02}")).collect();
    for actor in all.iter().map(String::as_str).chain(["notes/us-1", "narrow/eu-99"]) {
        let method = if actor.starts_with("notes") { "all" } else { "doze" };
        call(&door, &format!("/{actor}/{method}"), r#"{"ms":0}"#).await;
    }
    let (mut met, mut after) = (Vec::new(), String::new());
    loop {
        let page = get(&door, &format!("/-/actors?kind=notes&prefix=eu-&order=key&limit=7{after}")).await.json();
        assert_eq!(page["matched"], 30, "{page}");
        met.extend(names(&page));
        let Some(next) = page["next"].as_str() else { break };
        after = format!("&after={}", next.replace('/', "%2F"));
    }
    assert_eq!(met, all);
    let of_all = get(&door, "/-/actors?limit=500").await.json();
    assert_eq!(of_all["matched"], 32, "{of_all}");
    assert_eq!(node.activations(), 32);
    node.stop().await;
}

#[tokio::test]
async fn those_with_most_messages_waiting_stand_first() {
    let (node, door) = open(node()).await;
    let mut seen = None;
    while seen.is_none() {
        let calls = [("one", 2), ("many", 6), ("none", 1)]
            .into_iter()
            .flat_map(|(key, count)| (0..count).map(move |_| format!("/notes/{key}/doze")));
        let calls: Vec<_> = calls
            .map(|path| {
                let door = door.clone();
                tokio::spawn(async move { call(&door, &path, r#"{"ms":300}"#).await })
            })
            .collect();
        while seen.is_none() && !calls.iter().all(|call| call.is_finished()) {
            let page = get(&door, "/-/actors?kind=notes").await.json();
            let actors = page["actors"].as_array().expect("a list");
            let waiting: Vec<u64> = actors.iter().filter_map(|actor| actor["mailbox"].as_u64()).collect();
            assert!(waiting.is_sorted_by(|one, other| one >= other), "{page}");
            // While several wait at one, and one at the other.
            seen = (waiting.len() == 3 && waiting[0] > waiting[1] && waiting[1] > 0).then_some(page);
        }
        for answer in calls {
            assert_eq!(answer.await.unwrap().status, 200);
        }
    }
    assert_eq!(names(&seen.expect("it was seen"))[0], "notes/many");
    node.stop().await;
}

#[tokio::test]
async fn those_with_most_turns_stand_first_by_heat() {
    let (node, door) = open(node()).await;
    // How many of its turns are timed, and so counted, the shard draws.
    let seen = loop {
        for (key, count) in [("many", 40), ("some", 10), ("few", 1)] {
            for _ in 0..count {
                assert_eq!(call(&door, &format!("/notes/{key}/size"), r#"{"text":"x"}"#).await.status, 200);
            }
        }
        let page = get(&door, "/-/actors?kind=notes&order=heat").await.json();
        let actors = page["actors"].as_array().expect("a list");
        let turns: Vec<f64> = actors.iter().filter_map(|actor| actor["turns"].as_f64()).collect();
        assert!(turns.len() == 3 && turns.is_sorted_by(|one, other| one + 0.01 >= *other), "{page}");
        if turns[0] > 2.0 * turns[1] && turns[1] > 2.0 * turns[2] && turns[2] > 0.0 {
            break page;
        }
    };
    assert_eq!(names(&seen), ["notes/many", "notes/some", "notes/few"]);
    let second = format!("/-/actors?kind=notes&order=heat&limit=1&after={}.notes%2Fmany", u64::MAX);
    assert_eq!(names(&get(&door, &second).await.json()), ["notes/many"], "behind a place that none is before");
    node.stop().await;
}

#[tokio::test]
async fn who_asks_for_another_page_than_there_is_is_told_what_there_is() {
    let (node, door) = open(node()).await;
    for wrong in ["limit=501", "order=size", "after=notes", "king=notes"] {
        get(&door, &format!("/-/actors?{wrong}")).await.problem(400, "bad-request");
    }
    let elsewhere = get(&door, "/-/actors?node=nobody").await.json();
    assert_eq!(elsewhere["silent"][0]["node"], "nobody", "{elsewhere}");
    node.stop().await;
}

//! What is found is told so that it is understood: what matters, a page, a diagram, a file that replays it.

use greenroom_explore::Failure;
use greenroom_explore::prelude::*;

use super::bank::{AccountRef, TellerRef, bank};

async fn two_deposits(world: World) {
    AccountRef::of(&world, "ada").add(1).await.expect("it answers");
    for desk in ["1", "2"] {
        let (teller, stranger) = (TellerRef::of(&world, desk), AccountRef::of(&world, "</script><b>bob"));
        world.client(async move {
            drop(teller.deposit(10).await);
            stranger.add(5).send();
        });
    }
    world.finally(|world| async move {
        assert_eq!(AccountRef::of(&world, "ada").balance().await, Ok(21), "a deposit is lost");
    });
}

fn found() -> Box<Failure> {
    bank().check(two_deposits).expect_err("a deposit is lost")
}

#[test]
fn what_matters_is_said() {
    let failure = found();
    println!("{failure}");
    let matters: Vec<&str> = failure.matters().collect();
    assert!(
        matters.iter().any(|pair| {
            let (first, then) = pair.split_once(" came before ").expect("it is a pair");
            first.starts_with("account/ada.balance<teller/") && then.starts_with("account/ada.set<teller/")
        }),
        "{failure}"
    );
    let text = failure.to_string();
    assert!(text.contains("end  account/ada.balance() = 11"), "{text}");
    assert!(text.contains("(11)") && text.contains("= 1"), "arguments and answers are told: {text}");
}

#[test]
fn a_page_shows_what_actors_are_and_nothing_in_it_is_markup() {
    let failure = found();
    let page = failure.page();
    assert!(page.contains("balance: 11"), "the states of actors are not told");
    assert!(!page.contains("</script><b>bob") && page.contains("\\u003c/script>"), "a key is markup");
    let diagram = failure.mermaid();
    assert!(diagram.starts_with("sequenceDiagram") && diagram.contains("deposit(10)"), "{diagram}");
    assert!(!diagram.contains("<b>"), "{diagram}");
    let story: serde_json::Value = serde_json::from_str(&failure.story()).expect("it is JSON");
    let greys = |name: &str| {
        let lane = story["lanes"].as_array().and_then(|lanes| lanes.iter().find(|lane| lane["name"] == name));
        lane.expect("it acts")["matters"] == false
    };
    assert!(greys("account/</script><b>bob") && !greys("account/ada") && !greys("teller/1"), "{story}");
}

#[test]
fn a_file_replays_what_was_found() {
    let files = found().save().expect("there is a folder for it");
    let text = std::fs::read_to_string(&files.schedule).expect("it was written");
    let saved: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(saved["test"], "judges::told::a_file_replays_what_was_found");
    let schedule = saved["schedule"].as_str().expect("it has a schedule");
    for _ in 0..3 {
        let again = bank().replay(schedule).check(two_deposits).expect_err("it breaks again");
        assert_eq!(again.steps().collect::<Vec<_>>(), found().steps().collect::<Vec<_>>());
    }
    assert!(files.page.is_file());
    let namesake = files.page.with_file_name("judges.told.a_file_replays_what_was_found.html");
    assert_eq!(files.page, namesake, "a test of this name in another module has files of its own");
}

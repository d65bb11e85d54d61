//! The paper's programs, explored: as they are in the examples they break nothing, and with a mistake put back in they do.

#![allow(missing_docs, reason = "examples are no interfaces")]
#![expect(dead_code, reason = "the examples' `main`s are not run here")]
#![expect(unreachable_pub, reason = "examples show what a crate of one's own would say")]

#[path = "../../examples/auction.rs"]
mod auction;
#[path = "../../examples/auction_house.rs"]
mod auction_house;
#[path = "../../../greenroom/examples/chat.rs"]
mod chat;
#[path = "../../../greenroom/examples/survey.rs"]
mod survey;
#[path = "../../../greenroom/examples/word_count.rs"]
mod word_count;

use greenroom_explore::prelude::*;

#[test]
fn an_auction_that_compares_and_takes_in_two_turns_holds_money_for_nothing() {
    let failure = auction::house().check(|world| auction::auction(world, false)).expect_err("it breaks");
    println!("{failure}");
    assert!(failure.violated().contains("held for a bid that does not stand"), "{failure}");
    assert!(failure.deviations() <= 6, "{failure}");
    auction::house().schedules(1_000).run(|world| auction::auction(world, true));
}

#[test]
fn an_auction_house_that_forgets_to_save_a_bid_under_way_holds_money_for_nothing() {
    for seed in 0..8 {
        let failure = auction_house::house().seed(seed).check(|world| auction_house::sale(world, false));
        let failure = failure.expect_err("the bid is gone with its node, and the money is held");
        assert!(failure.violated().contains("held for a bid that does not stand"), "{failure}");
        assert!(failure.replay().contains("crash "), "{failure}");
        assert!(failure.schedule() <= 167 && failure.deviations() <= 6, "{failure}");
    }
    auction_house::house().faults("crash:2").run(|world| auction_house::sale(world, true));
}

#[explore(chat::ChatRoom, chat::User, schedules = 300)]
async fn who_was_banned_before_posts_nothing(world: World) {
    chat::UserRef::of(&world, "eve").ban().await.expect("users answer");
    for user in ["ada", "eve"] {
        let room = chat::ChatRoomRef::of(&world, "lobby");
        world.client(async move { drop(room.post(user, "hello").await) });
    }
    world.finally(|world| async move {
        assert_eq!(chat::ChatRoomRef::of(&world, "lobby").read().await, Ok(vec!["ada: hello".to_owned()]));
    });
}

#[explore(survey::Coordinator, survey::Survey, schedules = 500, timers = "in_time", faults = "crash")]
async fn each_vote_counts_once(world: World) {
    let office = survey::CoordinatorRef::of(&world, "office");
    let choices = vec!["soup".to_owned(), "salad".to_owned()];
    let lunch = office.open("lunch", choices, 3_600_000).await.expect("it answers").bind(&world);
    for choice in ["soup", "salad"] {
        let lunch = lunch.clone();
        world.client(async move {
            let vote = || async { lunch.vote("ada", choice).idempotent(choice).await };
            while matches!(vote().await, Err(CallError::Refused(_) | CallError::Unknown(_))) {}
        });
    }
    world.finally(|_| async move {
        let again = lunch.vote("ada", "soup").await;
        assert_eq!(again, Err(CallError::Actor(survey::VoteError::Twice)));
    });
}

#[explore(
    word_count::Main,
    word_count::WordCount,
    word_count::Max,
    schedules = 500,
    timers = "in_time",
    faults = "crash"
)]
async fn the_most_frequent_word_is_found(world: World) {
    let (main, best) = (word_count::MainRef::of(&world, "text"), word_count::MaxRef::of(&world, "text"));
    main.begin(2_u64, best).await.expect("it answers");
    for (page, words) in [["the", "cat"], ["the", "dog"]].into_iter().enumerate() {
        let main = main.clone();
        world.client(async move {
            for word in words {
                // Once, however often a node is gone before it has answered.
                while main.word(word).idempotent(&format!("{page} {word}")).await.is_err() {}
            }
        });
    }
    world.finally(|world| async move {
        let best = word_count::MaxRef::of(&world, "text").best().await;
        assert_eq!(best, Ok(("the".to_owned(), 2)));
    });
}

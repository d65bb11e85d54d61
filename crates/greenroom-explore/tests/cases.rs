//! The paper's programs, explored: as they are in the examples they break nothing, and with a mistake put back in they do.

#![allow(missing_docs, reason = "examples are no interfaces")]
#![expect(dead_code, reason = "the examples' `main`s are not run here")]
#![expect(unreachable_pub, reason = "examples show what a crate of one's own would say")]

#[path = "../examples/auction.rs"]
mod auction;
#[path = "../../greenroom/examples/chat.rs"]
mod chat;
#[path = "../../greenroom/examples/survey.rs"]
mod survey;
#[path = "../../greenroom/examples/word_count.rs"]
mod word_count;

use std::time::Duration;

use greenroom_explore::prelude::*;

#[test]
fn an_auction_that_compares_and_takes_in_two_turns_holds_money_for_nothing() {
    let failure = auction::house().check(|world| auction::auction(world, false)).expect_err("it breaks");
    println!("{failure}");
    assert!(failure.violated().contains("held for a bid that does not stand"), "{failure}");
    assert!(failure.deviations() <= 6, "{failure}");
    auction::house().schedules(1_000).run(|world| auction::auction(world, true));
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

#[explore(survey::Coordinator, survey::Survey, schedules = 100, timers = "in_time")]
async fn each_vote_counts_once(world: World) {
    let office = survey::CoordinatorRef::of(&world, "office");
    let choices = vec!["soup".to_owned(), "salad".to_owned()];
    let lunch = office.open("lunch", choices, 3_600_000).await.expect("it answers").bind(&world);
    for choice in ["soup", "salad"] {
        let lunch = lunch.clone();
        world.client(async move { drop(lunch.vote("ada", choice).await) });
    }
    world.finally(|_| async move {
        let again = lunch.vote("ada", "soup").await;
        assert_eq!(again, Err(CallError::Actor(survey::VoteError::Twice)));
    });
}

#[explore(word_count::Main, word_count::WordCount, word_count::Max, schedules = 100, timers = "in_time")]
async fn the_most_frequent_word_is_found(world: World) {
    let (main, best) = (word_count::MainRef::of(&world, "text"), word_count::MaxRef::of(&world, "text"));
    main.begin(2_u64, best).await.expect("it answers");
    for words in [["the", "cat"], ["the", "dog"]] {
        let main = main.clone();
        world.client(async move {
            for word in words {
                main.word(word).await.expect("it answers");
            }
        });
    }
    world.finally(|world| async move {
        // Reliable messages are under way between partitions: that takes virtual time.
        tokio::time::sleep(Duration::from_secs(5)).await;
        let best = word_count::MaxRef::of(&world, "text").best().await;
        assert_eq!(best, Ok(("the".to_owned(), 2)));
    });
}

/// The word count of the paper, but that the most frequent word is the last one that was told.
#[derive(Default, Debug, Actor)]
struct Last {
    word: String,
    highest: u64,
}

#[actor]
impl Last {
    pub async fn report(&mut self, word: String, count: u64) {
        (self.word, self.highest) = (word, count);
    }

    pub async fn best(&self) -> (String, u64) {
        (self.word.clone(), self.highest)
    }
}

/// Counts some of the words.
#[derive(Default, Debug, Actor)]
struct Counter {
    highest: u64,
    words: std::collections::BTreeMap<String, u64>,
}

#[actor]
impl Counter {
    pub async fn word(&mut self, cx: &Cx, word: String) {
        let count = self.words.entry(word.clone()).or_default();
        *count += 1;
        if *count > self.highest {
            self.highest = *count;
            LastRef::of(cx, "text").report(word, *count).send();
        }
    }
}

#[test]
fn a_word_count_that_does_not_compare_is_found() {
    let failure = Explore::of(|builder| builder.register::<Counter>().register::<Last>()).check(|world| async move {
        for (counter, words) in [("1", vec!["the", "the"]), ("2", vec!["dog"])] {
            let counter = CounterRef::of(&world, counter);
            world.client(async move {
                for word in words {
                    counter.word(word).await.expect("it answers");
                }
            });
        }
        world.eventually("the most frequent word is known", |now| {
            now.get::<Last>("text").is_some_and(|last| (last.word.as_str(), last.highest) == ("the", 2))
        });
    });
    let failure = failure.expect_err("the other counter may tell last");
    assert!(failure.deviations() <= 6, "{failure}");
}

/// A survey that asks in one turn whether somebody has voted, and counts in another.
#[derive(Default, Debug, Actor)]
struct Ballot {
    voters: std::collections::BTreeSet<String>,
    count: u64,
}

#[actor]
impl Ballot {
    pub async fn has_voted(&self, voter: String) -> bool {
        self.voters.contains(&voter)
    }

    pub async fn count(&mut self, voter: String) {
        self.voters.insert(voter);
        self.count += 1;
    }

    pub async fn counted(&self) -> u64 {
        self.count
    }
}

#[derive(Default, Actor)]
struct Booth;

#[actor]
impl Booth {
    pub async fn vote(&self, cx: &Cx, voter: String) {
        let ballot = BallotRef::of(cx, "lunch");
        if !ballot.has_voted(voter.clone()).await.expect("it answers") {
            ballot.count(voter).await.expect("it answers");
        }
    }
}

#[test]
fn a_survey_that_asks_and_counts_in_two_turns_is_found_without_a_specification() {
    let failure = Explore::of(|builder| builder.register::<Ballot>().register::<Booth>()).check(|world| async move {
        for booth in ["1", "2"] {
            let booth = BoothRef::of(&world, booth);
            world.client(async move { booth.vote("ada").await.expect("it answers") });
        }
        world.linearizable();
        world.finally(|world| async move { drop(BallotRef::of(&world, "lunch").counted().await) });
    });
    let failure = failure.expect_err("ada votes twice");
    assert!(failure.violated().starts_with("not linearizable"), "{failure}");
    assert!(failure.to_string().contains("end  ballot/lunch.counted() = 2"), "{failure}");
}

/// A bank that moves money in two turns.
#[derive(Default, Debug, Actor)]
struct Account {
    balance: i64,
}

#[actor]
impl Account {
    pub async fn add(&mut self, amount: i64) {
        self.balance += amount;
    }

    pub async fn balance(&self) -> i64 {
        self.balance
    }
}

#[derive(Default, Actor)]
struct Transfer;

#[actor]
impl Transfer {
    pub async fn run(&self, cx: &Cx, amount: i64) {
        let (from, to) = (AccountRef::of(cx, "ada"), AccountRef::of(cx, "bob"));
        if from.balance().await.expect("it answers") >= amount {
            from.add(-amount).await.expect("it answers");
            to.add(amount).await.expect("it answers");
        }
    }
}

#[test]
fn a_bank_that_looks_before_it_takes_goes_into_debt() {
    let failure =
        Explore::of(|builder| builder.register::<Account>().register::<Transfer>()).check(|world| async move {
            AccountRef::of(&world, "ada").add(10).await.expect("it answers");
            for number in ["1", "2"] {
                let transfer = TransferRef::of(&world, number);
                world.client(async move { transfer.run(10).await.expect("it answers") });
            }
            world.always("nobody is in debt", |now| now.all::<Account>().all(|(_, account)| account.balance >= 0));
        });
    let failure = failure.expect_err("both look first");
    assert_eq!(failure.violated(), "not always: nobody is in debt");
    assert!(failure.deviations() <= 6, "{failure}");
}

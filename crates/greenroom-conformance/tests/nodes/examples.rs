//! The examples do what they say.

#![expect(dead_code, reason = "the examples' `main`s are not run here")]
#![expect(unreachable_pub, reason = "examples show what a crate of one's own would say")]

#[path = "../../../greenroom/examples/account.rs"]
mod account;
#[path = "../../../greenroom/examples/chat.rs"]
mod chat;
#[path = "../../../greenroom/examples/context.rs"]
mod context;
#[path = "../../../greenroom/examples/geo.rs"]
mod geo;
#[path = "../../../greenroom/examples/hello.rs"]
mod hello;
#[path = "../../../greenroom/examples/migration.rs"]
mod migration;
#[path = "../../../greenroom/examples/overload.rs"]
mod overload;
#[path = "../../../greenroom/examples/pool_server/main.rs"]
mod pool_server;
#[path = "../../../greenroom/examples/presence.rs"]
mod presence;
#[path = "../../../greenroom/examples/reliable.rs"]
mod reliable;
#[path = "../../../greenroom/examples/security.rs"]
mod security;
#[path = "../../../greenroom/examples/streams.rs"]
mod streams;
#[path = "../../../greenroom/examples/supervision.rs"]
mod supervision;
#[path = "../../../greenroom/examples/survey.rs"]
mod survey;
#[path = "../../../greenroom/examples/time.rs"]
mod time;
#[path = "../../../greenroom/examples/topics.rs"]
mod topics;
#[path = "../../../greenroom/examples/versioned.rs"]
mod versioned;
#[path = "../../../greenroom/examples/word_count.rs"]
mod word_count;

use std::time::Duration;

use greenroom::{CallError, Node};

#[tokio::test]
async fn hello_greets_and_counts() {
    let node = Node::builder().register::<hello::Greeter>().start().await.unwrap();
    let greeter = hello::GreeterRef::of(&node, "front desk");
    assert_eq!(greeter.greet("Ada").await.unwrap(), "Hello, Ada! You are guest number 1.");
    assert_eq!(greeter.greet("Grace").await.unwrap(), "Hello, Grace! You are guest number 2.");
    node.stop().await;
}

#[tokio::test]
async fn a_banned_user_cannot_post_and_an_empty_text_is_an_error() {
    let node = Node::builder().register::<chat::ChatRoom>().register::<chat::User>().start().await.unwrap();
    let room = chat::ChatRoomRef::of(&node, "lobby");
    assert_eq!(room.post("ada", "hello").await, Ok(true));
    assert_eq!(room.post("ada", "").await, Err(CallError::Actor(chat::ChatError::Empty)));
    chat::UserRef::of(&node, "ada").ban().await.unwrap();
    assert_eq!(room.post("ada", "me again").await, Ok(false));
    assert_eq!(room.read().await.unwrap(), ["ada: hello"]);
    node.stop().await;
}

#[tokio::test]
async fn a_brokers_orders_are_settled_and_money_is_kept() {
    let node = Node::builder().journal("memory:").register::<reliable::Account>().register::<reliable::Broker>();
    let node = node.start().await.unwrap();
    reliable::AccountRef::of(&node, "ada").deposit("gift", 100).await.unwrap();
    let broker = reliable::BrokerRef::of(&node, "exchange");
    for order in 0..5 {
        broker.order(order.to_string(), "ada", "bob", 30).await.unwrap();
    }
    while broker.counts().await.unwrap().0 > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(broker.counts().await.unwrap(), (0, 3, 2));
    let bob = reliable::AccountRef::of(&node, "bob");
    while bob.look().await.unwrap().0 < 90 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(
        (reliable::AccountRef::of(&node, "ada").look().await.unwrap().0, bob.look().await.unwrap()),
        (10, (90, 3))
    );
    node.stop().await;
}

#[tokio::test]
async fn a_player_is_in_the_game_joined_last() {
    let node = Node::builder().register::<presence::Player>().register::<presence::Game>().start().await.unwrap();
    let player = presence::PlayerRef::of(&node, 7);
    player.join("chess").await.unwrap();
    player.join("go").await.unwrap();
    assert_eq!(player.game().await.unwrap().as_deref(), Some("go"));
    let (chess, go) = (presence::GameRef::of(&node, "chess"), presence::GameRef::of(&node, "go"));
    let arrived = async {
        while (chess.online().await.unwrap(), go.online().await.unwrap()) != (0, 1) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), arrived).await.expect("one-way messages arrive");
    node.stop().await;
}

#[tokio::test]
async fn a_worker_that_fails_is_there_again_and_one_that_was_stopped_is_not() {
    let node = Node::builder().register::<supervision::Pool>().start().await.unwrap();
    let pool = supervision::PoolRef::of(&node, "letters");
    let worker = pool.hire("ada").await.unwrap().bind(&node);
    assert_eq!(worker.letters("room").await, Ok(4));
    assert!(worker.letters("\0").await.is_err());
    assert_eq!(worker.done().await, Ok(0), "a fresh one answers");
    worker.stop().await.unwrap();
    let told = async {
        while pool.report().await.unwrap() != (0, vec!["it was stopped".to_owned()]) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), told).await.expect("the pool is told");
    node.stop().await;
}

#[tokio::test]
async fn a_kettle_boils_and_is_descaled() {
    let node = Node::builder().register::<time::Kettle>().start().await.unwrap();
    let kettle = time::KettleRef::of(&node, "kitchen");
    kettle.switch_on().await.unwrap();
    kettle.descale_later(1).await.unwrap();
    let done = async {
        while kettle.look().await != Ok((100, 1)) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), done).await.expect("both come");
    node.stop().await;
}

#[tokio::test]
async fn an_account_is_there_again_on_the_next_node() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("accounts.db").display());
    for balance in [5, 10] {
        let node = Node::builder().state(url.as_str()).register::<account::Account>().start().await.unwrap();
        assert_eq!(account::AccountRef::of(&node, "ada").deposit(5).await, Ok(balance));
        node.stop().await;
    }
}

#[tokio::test]
async fn a_leaderboard_knows_who_leads_and_who_led() {
    let node = Node::builder().register::<versioned::Leaderboard>().start().await.unwrap();
    let board = versioned::LeaderboardRef::of(&node, "chess");
    board.won("ada", 30).await.unwrap();
    board.won("bob", 50).await.unwrap();
    assert_eq!(board.leader().await.unwrap().as_deref(), Some("bob"));
    let (lost, seen) = board.disqualify("bob").await.unwrap();
    assert_eq!(lost, 50);
    assert!(board.disqualify("bob").await.unwrap_err().to_string().contains("does not play"));
    assert_eq!(board.leader_since(seen).await.unwrap().as_deref(), Some("ada"));
    assert_eq!(board.leader_after(2).await.unwrap().as_deref(), Some("bob"));
    let mut leaders = board.leaders().await.unwrap();
    assert_eq!(leaders.next().await.unwrap().unwrap().as_deref(), Some("ada"));
    board.won("eve", 70).await.unwrap();
    while leaders.next().await.unwrap().unwrap().as_deref() != Some("eve") {}
    node.stop().await;
}

#[tokio::test]
async fn a_writer_works_for_a_client_and_stops_when_nobody_waits() {
    let builder = Node::builder().register::<context::Writer>().register::<context::Desk>();
    let node = builder.intercept_kind("desk", context::Clients).start().await.unwrap();
    let desk = context::DeskRef::of(&node, "front");
    assert!(matches!(desk.ask("ada").await, Err(CallError::Refused(_))));
    assert_eq!(desk.ask("ada").with("client", "Grace").await.unwrap().as_deref(), Some("Grace"));
    let writer = context::WriterRef::of(&node, "ada");
    let given_up = tokio::time::timeout(Duration::from_millis(50), writer.write(u64::MAX).into_future()).await;
    assert!(given_up.is_err());
    assert!(writer.pages().by(Duration::from_secs(20)).await.unwrap() > 0, "the next turn begins");
    node.stop().await;
}

#[tokio::test]
async fn a_document_is_written_by_nobody_who_has_shown_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens.toml");
    std::fs::write(&tokens, security::TOKENS).unwrap();
    let node = security::guarded(&tokens).start().await.unwrap();
    let document = security::DocumentRef::of(&node, "plan");
    let refused = document.write("hm").await.unwrap_err();
    assert!(matches!(&refused, CallError::Actor(why) if why.contains("credentials")), "{refused}");
    assert_eq!(document.read().await.unwrap(), "");
    node.stop().await;
}

#[tokio::test]
async fn a_printer_that_is_asked_for_too_much_prints_all_pages_of_who_comes_back() {
    let node = Node::builder().register::<overload::Printer>().start().await.unwrap();
    let printer = overload::PrinterRef::of(&node, "hall");
    let pages: Vec<_> = (0..8).map(|page| tokio::spawn(printer.print(format!("page {page}")).into_future())).collect();
    for page in pages {
        page.await.unwrap().unwrap();
    }
    let refused: Vec<_> = (0..8).map(|_| tokio::spawn(printer.print("x").once().into_future())).collect();
    let mut full = 0;
    for page in refused {
        full += u64::from(matches!(page.await.unwrap(), Err(CallError::Refused(_))));
    }
    assert_eq!(full, 5, "one is printed, two wait");
    node.stop().await;
}

#[tokio::test]
async fn who_watches_a_room_hears_what_was_said_and_what_is_said_then() {
    let node = Node::builder().register::<streams::Room>().start().await.unwrap();
    let room = streams::RoomRef::of(&node, "lobby");
    room.say("hello").await.unwrap();
    room.say("you there").await.unwrap();
    let mut messages = room.watch(1).await.unwrap();
    room.say("goodbye").await.unwrap();
    assert_eq!(messages.next().await, Some(Ok("you there".to_owned())));
    assert_eq!(messages.next().await, Some(Ok("goodbye".to_owned())));
    node.stop().await;
}

#[tokio::test]
async fn a_price_comes_to_who_watches_to_who_follows_and_to_its_market() {
    let node = topics::node().start().await.unwrap();
    let prices = greenroom::Topic::<f64>::of(&node, "prices/eu");
    let mut watch = prices.watch().await.unwrap();
    let (counter, ticker) = (topics::CounterRef::of(&node, "all"), topics::TickerRef::of(&node, "eu"));
    counter.follow("prices/eu").await.unwrap();
    while prices.subscribers().await.unwrap() < 3 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    prices.publish(&1.5).await.unwrap();
    assert_eq!(watch.next().await, Some(Ok(greenroom::Delivery::Event(1.5))));
    let arrived = async {
        while (counter.count().await.unwrap(), ticker.last().await.unwrap()) != (1, Some(1.5)) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), arrived).await.expect("all are told");
    node.stop().await;
}

#[tokio::test]
async fn a_game_goes_on_where_it_stands_in_another_room() {
    let [red, blue] = migration::rooms().await.unwrap();
    let game = migration::GameRef::of(&red, "final");
    assert_eq!(game.play("e4").await.unwrap(), 1);
    for (number, room) in ["blue", "red", "blue"].into_iter().enumerate() {
        // No move is made while a node that has just come is not known everywhere: who wants it asks again.
        while game.room().await.unwrap() != room {
            game.carry_to(room).await.unwrap();
        }
        assert_eq!(game.play("e5").await.unwrap(), number + 2);
    }
    red.stop().await;
    blue.stop().await;
}

#[tokio::test]
async fn a_room_is_one_over_two_clusters() {
    let clusters = ["eu", "us"].map(|name| (name, geo::free_address().unwrap()));
    let eu = geo::node("eu", &clusters).await.unwrap();
    assert_eq!(geo::RoomRef::of(&eu, "lobby").post("hello?").await, Ok(1));
    assert_eq!(geo::RoomRef::of(&eu, "lobby").is_doubtful().await, Ok(true));
    let us = geo::node("us", &clusters).await.unwrap();
    while geo::RoomRef::of(&eu, "lobby").is_doubtful().await.unwrap() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(geo::RoomRef::of(&us, "lobby").post("hello").await, Ok(2));
    assert_eq!(geo::RoomRef::of(&us, "lobby").read().await.unwrap(), ["hello?", "hello"]);
    us.stop().await;
    eu.stop().await;
}

#[tokio::test]
async fn each_vote_counts_once_and_a_survey_closes_by_itself() {
    let node = Node::builder().journal("memory:").register::<survey::Coordinator>().register::<survey::Survey>();
    let node = node.start().await.unwrap();
    let coordinator = survey::CoordinatorRef::of(&node, "office");
    let choices = vec!["soup".to_owned(), "salad".to_owned()];
    let survey = coordinator.open("lunch", choices, 1000).await.unwrap().bind(&node);
    assert_eq!(survey.vote("ada", "soup").await, Ok(1));
    assert_eq!(survey.vote("ada", "salad").await, Err(CallError::Actor(survey::VoteError::Twice)));
    assert_eq!(survey.vote("bob", "cake").await, Err(CallError::Actor(survey::VoteError::NoChoice)));
    assert_eq!(survey.vote("bob", "soup").idempotent("bob").await, Ok(2));
    assert_eq!(survey.vote("bob", "soup").idempotent("bob").await, Ok(2), "a repeated call is one vote");
    let result = loop {
        match coordinator.result("lunch").await.unwrap() {
            Some(result) => break result,
            None => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    };
    assert_eq!(result, [("salad".to_owned(), 0), ("soup".to_owned(), 2)]);
    assert_eq!(survey.vote("cy", "soup").await, Err(CallError::Actor(survey::VoteError::Closed)));
    node.stop().await;
}

#[tokio::test]
async fn the_most_frequent_word_is_found() {
    let node = Node::builder().journal("memory:").register::<word_count::Main>().register::<word_count::WordCount>();
    let node = node.register::<word_count::Max>().start().await.unwrap();
    let (main, best) = (word_count::MainRef::of(&node, "text"), word_count::MaxRef::of(&node, "text"));
    main.begin(3_u64, best.clone()).await.unwrap();
    for word in "the cat and the dog and the bird".split(' ') {
        main.word(word).await.unwrap();
    }
    while best.best().await.unwrap() != ("the".to_owned(), 3) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    node.stop().await;
}

#[tokio::test]
async fn a_pool_has_the_size_that_is_wanted_though_its_provider_refuses_and_loses() {
    let node = Node::builder().journal("memory:").register::<pool_server::Pool>().register::<pool_server::Resource>();
    let node = node.register::<pool_server::Provider>().start().await.unwrap();
    let provider = pool_server::ProviderRef::of(&node, "cloud");
    let pool = pool_server::PoolRef::of(&node, "ada");
    let ready = async |size: u64| loop {
        let view = pool.look().await.unwrap();
        assert_eq!(view.creating + view.created, view.goal, "Property 1: {view:?}");
        if (&*view.state, view.created) == ("Ready", size) {
            let mut there = provider.allocations().await.unwrap();
            there.sort_unstable();
            assert_eq!(there, view.resources, "no garbage");
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    provider.refuse(3).await.unwrap();
    assert_eq!(pool.resize(3).await, Err(CallError::Actor(pool_server::PoolError::Absent)));
    pool.create_pool(3).await.unwrap();
    assert_eq!(pool.create_pool(3).await, Err(CallError::Actor(pool_server::PoolError::Exists)));
    ready(3).await;
    assert!(provider.lose(1).await.unwrap());
    pool.resize(5).await.unwrap();
    pool.resize(2).await.unwrap();
    ready(2).await;
    pool.delete().await.unwrap();
    while !provider.allocations().await.unwrap().is_empty() || pool.look().await.unwrap().state != "Absent" {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    node.stop().await;
}

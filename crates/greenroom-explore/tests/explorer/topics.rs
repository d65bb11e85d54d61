//! Events of topics come when that is chosen.

use greenroom::Topic;
use greenroom_explore::prelude::*;

#[derive(Default, Debug, Actor)]
struct Ticker {
    last: u64,
    heard: u64,
    /// Prices that are other ones than the last.
    known: u64,
}

#[actor]
impl Ticker {
    pub async fn on_price(&mut self, price: u64) {
        self.known += u64::from(price != self.last);
        (self.last, self.heard) = (price, self.heard + 1);
    }

    pub async fn last(&self) -> u64 {
        self.last
    }
}

fn tickers() -> Explore {
    Explore::of(|builder| {
        builder
            .register::<Ticker>()
            .subscribe("prices", |node, key, price: u64| TickerRef::of(node, key).on_price(price))
    })
}

/// A price is published, and then somebody asks for it, who takes for granted that it was heard.
async fn published(world: World) {
    let ticker = TickerRef::of(&world, "eu");
    let prices = Topic::<u64>::of(&world, "prices/eu");
    world.client(async move {
        prices.publish(&5).await.expect("it is published");
        assert_eq!(ticker.last().await, Ok(5), "it is heard");
    });
}

#[test]
fn an_event_that_is_published_may_come_later() {
    let failure = tickers().schedules(50).check(published).expect_err("it is under way");
    assert!(failure.violated().contains("it is heard"), "{failure}");
    for _ in 0..3 {
        let again = tickers().replay(failure.replay()).check(published);
        assert_eq!(again.expect_err("it breaks again").violated(), failure.violated());
    }
}

#[test]
fn an_event_is_a_step() {
    let failure = tickers().schedules(1).check(|world| async move {
        let prices = Topic::<u64>::of(&world, "prices/eu");
        world.client(async move { drop(prices.publish(&5).await) });
        world.finally(|world| async move {
            assert_ne!(TickerRef::of(&world, "eu").last().await, Ok(5), "it is heard");
        });
    });
    let failure = failure.expect_err("it is heard in the end");
    println!("{failure}");
    assert!(failure.steps().any(|step| step.starts_with("ticker/eu.on_price<")), "{failure}");
}

/// One price is published, and is heard once by who takes for granted that it does not come twice.
async fn heard_once(world: World) {
    let prices = Topic::<u64>::of(&world, "prices/eu");
    world.client(async move { drop(prices.publish(&5).await) });
    world.always("heard once", |now| now.all::<Ticker>().all(|(_, ticker)| ticker.heard <= 1));
}

/// The same of who asks whether it knows the price.
async fn known_once(world: World) {
    let prices = Topic::<u64>::of(&world, "prices/eu");
    world.client(async move { drop(prices.publish(&5).await) });
    world.always("known once", |now| now.all::<Ticker>().all(|(_, ticker)| ticker.known <= 1));
}

#[test]
fn an_event_may_come_twice() {
    let failure = tickers().schedules(500).faults("repeat").check(heard_once).expect_err("it comes twice");
    assert!(
        failure.steps().any(|step| step.starts_with("repeat ") && step.ends_with("<ticker/eu.on_price")),
        "{failure}"
    );
    let again = tickers().faults("repeat").replay(failure.replay()).check(heard_once);
    assert_eq!(again.expect_err("it breaks again").violated(), failure.violated());
    tickers().schedules(500).faults("repeat").run(known_once);
}

#[test]
fn an_event_whose_answer_is_lost_comes_again() {
    let failure = tickers().schedules(500).faults("lose").check(heard_once).expect_err("it comes again");
    assert!(failure.steps().any(|step| step.starts_with("lose ")), "{failure}");
    tickers().schedules(500).faults("lose").run(known_once);
}

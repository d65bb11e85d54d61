//! Events of topics come when that is chosen.

use greenroom::Topic;
use greenroom_explore::prelude::*;

#[derive(Default, Debug, Actor)]
struct Ticker {
    last: u64,
    heard: u64,
}

#[actor]
impl Ticker {
    pub async fn on_price(&mut self, price: u64) {
        self.last = price;
        self.heard += 1;
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

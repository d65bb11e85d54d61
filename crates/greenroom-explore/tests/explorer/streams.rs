//! Items of streams come when that is chosen, one by one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::{self, Either};
use futures_util::{Stream, StreamExt, stream};
use greenroom_explore::prelude::*;

#[derive(Default, Debug, Actor)]
struct Board {
    shown: Arc<AtomicU64>,
}

#[actor]
impl Board {
    pub async fn show(&mut self, number: u64) {
        self.shown.store(number, Ordering::Relaxed);
    }

    /// What it shows when it is looked at, twice.
    pub fn looks(&self) -> impl Stream<Item = u64> {
        let shown = self.shown.clone();
        stream::iter(0..2).map(move |_| shown.load(Ordering::Relaxed))
    }
}

fn boards() -> Explore {
    Explore::of(|builder| builder.register::<Board>())
}

/// The test breaks, and does so each time it is replayed.
fn breaks<F: Future<Output = ()> + 'static>(body: impl Fn(World) -> F + Copy + Send + Sync + 'static, why: &str) {
    let failure = boards().schedules(200).check(body).expect_err("an order breaks it");
    assert!(failure.violated().contains(why), "{failure}");
    for _ in 0..3 {
        let again = boards().replay(failure.replay()).check(body);
        assert_eq!(again.expect_err("it breaks again").violated(), failure.violated());
    }
}

#[test]
fn items_of_two_streams_come_in_any_order() {
    let takes_an_order_for_granted = |world: World| async move {
        let (one, other) = (BoardRef::of(&world, "one"), BoardRef::of(&world, "other"));
        world.client(async move {
            let (mut one, mut other) = (one.looks().await.expect("it looks"), other.looks().await.expect("it looks"));
            let first = future::select(Box::pin(one.next()), Box::pin(other.next())).await;
            assert!(matches!(first, Either::Left(_)), "one is first");
        });
    };
    breaks(takes_an_order_for_granted, "one is first");
    boards().schedules(200).run(|world| async move {
        let (one, other) = (BoardRef::of(&world, "one"), BoardRef::of(&world, "other"));
        world.client(async move {
            let (one, other) = (one.looks().await.expect("it looks"), other.looks().await.expect("it looks"));
            assert_eq!(stream::select(one, other).count().await, 4, "in whatever order");
        });
    });
}

#[test]
fn a_turn_may_come_between_two_items_of_a_stream() {
    let takes_its_items_for_one_look = |world: World| async move {
        let (board, shows) = (BoardRef::of(&world, "one"), BoardRef::of(&world, "one"));
        world.client(async move {
            let mut looks = board.looks().await.expect("it looks");
            let first = looks.next().await.expect("there are two").expect("it is not broken off");
            let second = looks.next().await.expect("there are two").expect("it is not broken off");
            assert_eq!(first, second, "one look");
        });
        world.client(async move { shows.show(1).await.expect("it answers") });
    };
    breaks(takes_its_items_for_one_look, "one look");
}

#[test]
fn an_item_may_be_made_after_what_was_sent_when_it_was_asked_for() {
    let takes_items_for_there_at_once = |world: World| async move {
        let board = BoardRef::of(&world, "one");
        world.client(async move {
            let mut looks = board.looks().await.expect("it looks");
            board.show(1).send();
            assert_eq!(looks.next().await, Some(Ok(0)), "it is there at once");
        });
    };
    breaks(takes_items_for_there_at_once, "it is there at once");
}

//! The pool alone, in the real world: windows end when the test says so.

use std::sync::{Arc, Barrier, mpsc};
use std::thread;

use greenroom_world::real::RealWorld;
use greenroom_world::{Timestamp, World};

use super::pool::{Pool, Taken};
use super::settings::{PoolSize, Threads};
use super::sizing::WINDOW;

fn world() -> Arc<dyn World> {
    RealWorld::start().expect("the machine has threads")
}

fn sized() -> Arc<Pool> {
    Arc::new(Pool::new(&Threads::default(), 2.0))
}

/// Hands over closures that end when all of them have met.
fn that_meet(pool: &Arc<Pool>, world: &Arc<dyn World>, count: usize) -> Vec<Taken> {
    let all = Arc::new(Barrier::new(count));
    let meet = |all: Arc<Barrier>| pool.submit(world, Box::new(move || Box::new(all.wait().is_leader())));
    (0..count).map(|_| meet(all.clone()).expect("there is room")).collect()
}

#[tokio::test]
async fn a_pool_grows_until_all_closures_that_wait_for_each_other_run() {
    let (world, pool) = (world(), sized());
    let begun: Timestamp = world.now();
    let meeting = that_meet(&pool, &world, 20);
    assert_eq!(pool.counts().threads, 4, "as many as there may be at first");
    while pool.counts().begun < 4 {
        thread::yield_now();
    }
    assert_eq!(pool.counts().threads_max, 4);
    pool.window(&world, begun + WINDOW);
    assert!(pool.counts().threads_max >= 20, "all of them want one, and four cannot do their work");
    for taken in meeting {
        assert!(taken.answer.await.expect("it ran").is_ok());
    }
    pool.close();
}

#[tokio::test]
async fn a_pool_of_a_fixed_size_keeps_it() {
    let (world, threads) = (world(), Threads { blocking: PoolSize::Fixed(2), ..Threads::default() });
    let pool = Arc::new(Pool::new(&threads, 2.0));
    let mut now = world.now();
    let pairs: Vec<_> = (0..4).flat_map(|_| that_meet(&pool, &world, 2)).collect();
    for _ in 0..6 {
        now = now + WINDOW;
        pool.window(&world, now);
        let counts = pool.counts();
        assert_eq!((counts.threads, counts.threads_max), (2, 2));
    }
    for taken in pairs {
        assert!(taken.answer.await.expect("it ran").is_ok());
    }
    assert_eq!((pool.counts().begun, pool.counts().done), (8, 8));
    pool.close();
}

#[tokio::test]
async fn a_closed_pool_runs_nothing_more_and_its_threads_end() {
    let (world, threads) = (world(), Threads { blocking: PoolSize::Fixed(1), ..Threads::default() });
    let pool = Arc::new(Pool::new(&threads, 2.0));
    let ((begins, begun), (go, gone)) = (mpsc::channel(), mpsc::channel());
    let runs = pool.submit(&world, Box::new(move || Box::new((begins.send(()), gone.recv())))).expect("there is room");
    begun.recv().expect("it begins");
    let waits = pool.submit(&world, Box::new(|| Box::new(()))).expect("there is room");
    pool.close();
    assert!(waits.answer.await.is_err(), "it waited for the thread");
    assert!(pool.submit(&world, Box::new(|| Box::new(()))).is_err());
    go.send(()).expect("the other one still runs");
    assert!(runs.answer.await.is_ok());
    while pool.counts().threads > 0 {
        thread::yield_now();
    }
}

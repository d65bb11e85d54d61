//! What asks the system and not its world: clocks show the schedule's time, and threads and sleeps are no secret.

#![cfg(all(feature = "watch", target_os = "linux", target_env = "gnu"))]

use std::thread;
use std::time::{Duration, Instant, SystemTime};

use greenroom_explore::prelude::*;

/// A lease, as somebody writes it who does not think of tests.
#[derive(Default, Actor)]
struct Lease {
    since: Option<Instant>,
}

#[actor]
impl Lease {
    /// When that was, by the calendar.
    pub async fn take(&mut self, cx: &Cx) -> SystemTime {
        self.since = Some(Instant::now());
        let taken = SystemTime::now();
        NoteRef::of(cx, "taken").keep(taken).await.expect("it answers");
        taken
    }

    pub async fn age(&self) -> Option<Duration> {
        self.since.map(|since| since.elapsed())
    }

    pub async fn sleep(&self) {
        thread::sleep(Duration::from_secs(3600));
    }

    pub async fn start(&self) {
        drop(thread::spawn(|| ()).join());
    }

    #[blocking]
    pub fn block(&mut self) {
        thread::sleep(Duration::from_millis(1));
    }
}

#[derive(Default, Actor)]
struct Note {
    kept: Option<SystemTime>,
}

#[actor]
impl Note {
    pub async fn keep(&mut self, time: SystemTime) {
        self.kept = Some(time);
    }
}

fn leases() -> Explore {
    Explore::of(|builder| builder.register::<Lease>().register::<Note>()).schedules(200)
}

fn violated(call: impl AsyncFn(LeaseRef) + Clone + Send + Sync + 'static) -> String {
    let failure = leases().check(move |world| {
        let call = call.clone();
        async move {
            let lease = LeaseRef::of(&world, "1");
            world.client(async move { call(lease).await });
        }
    });
    failure.err().map(|failure| failure.violated().to_owned()).unwrap_or_default()
}

#[test]
fn clocks_of_the_standard_library_show_the_schedules_time() {
    leases().run(|world| async move {
        let lease = LeaseRef::of(&world, "1");
        let new_year = SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600);
        world.client(async move {
            let taken = lease.take().await.expect("it answers");
            // A schedule begins with the year; in it time passes only where somebody waits.
            assert_eq!(taken.duration_since(new_year).expect("it is later").as_secs(), 0);
            tokio::time::sleep(Duration::from_secs(10)).await;
            let age = lease.age().await.expect("it answers").expect("it was taken");
            assert_eq!(age.as_secs(), 10);
            assert_eq!(SystemTime::now().duration_since(new_year).expect("it is later").as_secs(), 10);
            assert_eq!(Instant::now(), tokio::time::Instant::now().into_std());
        });
    });
}

#[test]
fn who_lets_its_thread_sleep_is_named_at_once() {
    let told = violated(async |lease| lease.sleep().await.expect("it answers"));
    assert!(told.starts_with("lease/1 lets its thread sleep"), "{told}");
    assert!(told.contains("tokio::time::sleep"), "{told}");
    let told = violated(async |_| thread::sleep(Duration::from_secs(3600)));
    assert!(told.starts_with("client 1 lets its thread sleep"), "{told}");
}

#[test]
fn who_starts_a_thread_is_named() {
    let told = violated(async |lease| lease.start().await.expect("it answers"));
    assert!(told.starts_with("lease/1 starts a thread"), "{told}");
    assert!(told.contains("`#[blocking]`"), "{told}");
}

#[test]
fn what_may_block_may_sleep() {
    assert_eq!(violated(async |lease| lease.block().await.expect("it answers")), "");
}

#[test]
fn outside_of_steps_clocks_and_threads_are_what_they_were() {
    let (before, wall) = (Instant::now(), SystemTime::now());
    assert_eq!(violated(async |lease| drop(lease.age().await)), "");
    thread::sleep(Duration::from_millis(2));
    assert!(before.elapsed() >= Duration::from_millis(2));
    assert!(wall.elapsed().expect("it goes on") >= Duration::from_millis(1));
    assert_eq!(thread::spawn(|| 7).join().expect("it ends"), 7);
}

//! Spawned actors and what else an actor may use.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use greenroom::prelude::*;
use greenroom::{Builder, Refusal, ReminderError, Topic};

use super::{SEEDS, pair, until};

/// A job that lives as long as its parent.
struct Job {
    done: u64,
}

impl Actor for Job {}

#[actor]
impl Job {
    pub async fn work(&mut self, more: u64) -> u64 {
        self.done += more;
        self.done
    }

    pub async fn done(&self) -> u64 {
        self.done
    }

    pub async fn listen(&mut self, cx: &Cx) {
        let me = JobRef::me(cx);
        Topic::<u64>::of(cx, "work").subscribe(cx, me, |me, more| me.work(more));
    }

    pub fn count_down(&self) -> impl Stream<Item = u64> {
        stream::iter((0..=self.done).rev())
    }

    pub async fn work_later(&mut self, cx: &Cx, more: u64) -> Result<(), Refusal> {
        cx.after(Duration::from_millis(300), JobRef::me(cx).work(more)).map(drop)
    }

    pub async fn remind(&mut self, cx: &Cx) -> Result<(), ReminderError> {
        JobRef::me(cx).work(1).after(Duration::from_secs(2)).named("work").await
    }

    pub async fn move_to(&mut self, cx: &Cx, node: String) -> Result<(), String> {
        cx.migrate_to(&node).map_err(|unmoved| unmoved.to_string())
    }
}

fn equip(builder: Builder) -> Builder {
    builder.register::<Job>()
}

#[test]
fn a_spawned_actor_hears_a_topic_until_it_ends() {
    pair(equip).seeds(SEEDS, |cluster| async move {
        let (a, b) = (cluster.node("a"), cluster.node("b"));
        let job = a.spawn(Job { done: 0 }).await.unwrap();
        job.listen().await.unwrap();
        let topic = Topic::<u64>::of(&b, "work");
        until(|| topic.subscribers(), |count| *count == 1).await;
        topic.publish(&2).await.unwrap();
        until(|| job.done(), |done| *done == 2).await;
        job.stop().await.unwrap();
        until(|| topic.subscribers(), |count| *count == 0).await;
    });
}

#[test]
fn a_spawned_actor_streams_and_has_timers() {
    pair(equip).seeds(SEEDS, |cluster| async move {
        let job = cluster.node("a").spawn(Job { done: 0 }).await.unwrap();
        job.work_later(3).await.unwrap();
        until(|| job.done(), |done| *done == 3).await;
        let items = job.count_down().await.unwrap();
        assert_eq!(items.collect::<Vec<_>>().await, [Ok(3), Ok(2), Ok(1), Ok(0)]);
    });
}

#[test]
fn a_reminder_of_a_spawned_actor_is_refused_and_so_is_its_move() {
    pair(equip).seeds(SEEDS, |cluster| async move {
        let job = cluster.node("a").spawn(Job { done: 0 }).await.unwrap();
        let refused = job.remind().await.unwrap_err().to_string();
        assert!(refused.contains("spawned"), "{refused}");
        let refused = job.move_to("b").await.unwrap_err().to_string();
        assert!(refused.contains("spawned"), "{refused}");
        assert_eq!(job.work(1).await.unwrap(), 1);
    });
}

//! Interceptors: they see calls that come in and go out, change what those carry, and refuse them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use greenroom::prelude::*;
use greenroom::{Builder, CallError, CallInfo, End, Interceptor, Refusal};
use tokio::time::sleep;

use crate::cluster::Cluster;
use crate::scenario::calm;

/// Calls itself names, and others.
#[derive(Default, Actor)]
struct Seen {
    turns: u64,
}

#[actor(placement = "random")]
impl Seen {
    pub async fn touch(&mut self) -> u64 {
        self.turns += 1;
        self.turns
    }

    pub async fn fail(&mut self) -> Result<(), String> {
        Err("no".to_owned())
    }

    pub async fn doze(&mut self) {
        sleep(Duration::from_secs(1)).await;
    }

    pub async fn fall_over(&mut self) {
        panic!("as asked");
    }

    pub async fn mark(&mut self, cx: &Cx) -> Option<String> {
        cx.context().get("mark").map(str::to_owned)
    }

    /// What touching another one came to.
    pub async fn touch_other(&mut self, cx: &Cx, other: String) -> String {
        match SeenRef::of(cx, other).touch().await {
            Ok(_) => "touched".to_owned(),
            Err(error) => error.to_string(),
        }
    }
}

/// A kind that the interceptors of `seen` have nothing to do with.
#[derive(Default, Actor)]
struct Unseen {}

#[actor(placement = "random")]
impl Unseen {
    pub async fn touch(&mut self) {}
}

/// Writes down what it sees.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    fn note(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl Interceptor for Diary {
    fn incoming(&self, call: &mut CallInfo<'_>) -> Result<(), Refusal> {
        self.note(format!("{} in from {:?}", call.method(), call.caller()));
        if call.key().as_str() == "locked" {
            return Err(Refusal::Denied { message: "it is locked".to_owned() });
        }
        call.set_context("mark", "seen").unwrap();
        Ok(())
    }

    fn finished(&self, call: &CallInfo<'_>, end: &End) {
        self.note(format!("{} ended {:?} after {} s", call.method(), end.outcome, end.took.as_secs_f64().round()));
    }
}

/// Lets nothing out to actors that must not be called.
struct Gate;

impl Interceptor for Gate {
    fn outgoing(&self, call: &mut CallInfo<'_>) -> Result<(), Refusal> {
        match call.key().as_str() {
            "out of bounds" => Err(Refusal::Denied { message: format!("{} stays in", call.kind()) }),
            _ => Ok(()),
        }
    }
}

/// Runs `scenario` on nodes that share a diary of the kind `seen`.
fn watched<F: Future<Output = ()> + 'static>(scenario: impl Fn(Cluster, Diary) -> F + Sync) {
    std::thread_local! {
        // Each seed runs on a thread of its own.
        static DIARY: Diary = Diary::default();
    }
    fn equip(builder: Builder, _: &str) -> Builder {
        let diary = DIARY.with(Clone::clone);
        builder.register::<Seen>().register::<Unseen>().intercept_kind("seen", diary).intercept(Gate)
    }
    calm(10, equip, |cluster| {
        let diary = DIARY.with(Clone::clone);
        diary.take();
        scenario(cluster, diary)
    });
}

#[test]
fn an_interceptor_sees_each_turn_of_its_kind_begin_and_end() {
    watched(|cluster, diary| async move {
        for (round, node) in cluster.three().iter().enumerate() {
            let seen = SeenRef::of(node, round);
            diary.take();
            seen.touch().await.unwrap();
            UnseenRef::of(node, round).touch().await.unwrap();
            assert_eq!(diary.take(), ["touch in from None", "touch ended Ok after 0 s"]);
            assert!(seen.fail().await.is_err());
            assert_eq!(diary.take(), ["fail in from None", "fail ended Error after 0 s"]);
            seen.doze().await.unwrap();
            assert_eq!(diary.take(), ["doze in from None", "doze ended Ok after 1 s"]);
            seen.fall_over().await.unwrap_err();
            assert_eq!(diary.take(), ["fall_over in from None", "fall_over ended Broken after 0 s"]);
            seen.touch_other(format!("other {round}")).await.unwrap();
            let calls = diary.take();
            assert_eq!(calls[1], format!("touch in from Some(\"seen/{round}\")"), "{calls:?}");
        }
    });
}

#[test]
fn what_an_interceptor_refuses_never_begins_and_its_caller_is_told() {
    watched(|cluster, diary| async move {
        let denied = |error: CallError| matches!(error, CallError::Refused(Refusal::Denied { .. }));
        for (round, node) in cluster.three().iter().enumerate() {
            let locked = SeenRef::of(node, "locked");
            assert!(denied(locked.touch().await.unwrap_err()));
            locked.touch().send();
            sleep(Duration::from_millis(200)).await;
            assert_eq!(diary.take(), ["touch in from None"; 2], "nothing has begun, so nothing ends");
            let told = SeenRef::of(node, round).touch_other("locked".to_owned()).await.unwrap();
            assert!(told.contains("it is locked"), "{told}");
            diary.take();
        }
    });
}

#[test]
fn an_interceptor_refuses_what_goes_out_before_it_leaves() {
    watched(|cluster, diary| async move {
        for (round, node) in cluster.three().iter().enumerate() {
            diary.take();
            let error = SeenRef::of(node, "out of bounds").touch().await.unwrap_err();
            assert!(matches!(&error, CallError::Refused(Refusal::Denied { message }) if message == "seen stays in"));
            assert!(UnseenRef::of(node, "out of bounds").touch().try_send().is_err());
            assert_eq!(diary.take(), [""; 0]);
            let told = SeenRef::of(node, round).touch_other("out of bounds".to_owned()).await.unwrap();
            assert!(told.contains("seen stays in"), "{told}");
        }
    });
}

#[test]
fn what_an_interceptor_adds_to_the_context_is_seen_by_the_turn() {
    watched(|cluster, _| async move {
        for (round, node) in cluster.three().iter().enumerate() {
            let marked = SeenRef::of(node, round).mark().with("mark", "by the caller").await.unwrap();
            assert_eq!(marked.as_deref(), Some("seen"));
        }
    });
}

//! Reliable actors as state machines: states, messages that wait or are ignored, and states that nobody knows.

use std::sync::Arc;
use std::time::Duration;

use greenroom::prelude::*;
use greenroom_store::memory::MemoryStore;

#[derive(Default, Actor)]
struct Door {
    passed: Register<u64>,
}

#[actor(reliable, start = "Shut")]
impl Door {
    #[on(open, state = "Shut", ignore = "Open")]
    async fn open(&mut self, cx: &Cx) {
        cx.jump("Open");
    }

    #[on(shut, state = "Open")]
    async fn shut(&mut self, cx: &Cx) {
        cx.jump("Shut");
    }

    #[on(pass, state = "Open", defer = "Shut")]
    async fn pass(&mut self) -> u64 {
        *self.passed.get_mut() += 1;
        *self.passed.get()
    }

    /// In all states.
    pub async fn look(&self, cx: &Cx) -> (String, u64) {
        (cx.machine_state().map(|state| state.to_string()).unwrap_or_default(), *self.passed.get())
    }

    /// No state that there is.
    pub async fn break_in(&mut self, cx: &Cx, to: String) {
        self.passed.set(1000);
        cx.jump(&to);
    }
}

mod earlier {
    //! The same kind in an earlier version of the program, which knows another state.

    use greenroom::prelude::*;

    #[derive(Default, Actor)]
    pub(crate) struct Door {
        passed: Register<u64>,
    }

    #[actor(reliable, start = "Shut")]
    impl Door {
        #[on(lock, state = "Shut")]
        async fn lock(&mut self, cx: &Cx) {
            self.passed.set(7);
            cx.jump("Locked");
        }

        #[on(unlock, state = "Locked")]
        async fn unlock(&mut self, cx: &Cx) {
            cx.jump("Shut");
        }

        #[on(pass, state = "Shut", defer = "Locked")]
        async fn pass(&mut self) -> u64 {
            *self.passed.get_mut() += 1;
            *self.passed.get()
        }
    }
}

/// Lets others pass.
#[derive(Default, Actor)]
struct Porter {
    told: u64,
}

#[actor(reliable)]
impl Porter {
    pub async fn let_pass(&mut self, door: DoorRef) {
        self.told += 1;
        door.pass().send();
    }

    pub async fn told(&self) -> u64 {
        self.told
    }
}

async fn node<D: greenroom::__private::Behaviour>(journal: &Arc<MemoryStore>) -> Node {
    let builder = Node::builder().register::<D>().register::<Porter>().journal_store(journal.clone());
    builder.configure(|config| config.reliable.partitions = 4).start().await.expect("it starts")
}

async fn settled(door: &DoorRef, wanted: (&str, u64)) {
    for _ in 0..500 {
        let (state, passed) = door.look().await.expect("it answers");
        if (&*state, passed) == wanted {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{:?} instead of {wanted:?}", door.look().await);
}

#[tokio::test]
async fn a_message_is_handled_by_the_state_that_its_actor_is_in() {
    let journal = Arc::new(MemoryStore::new());
    let node = node::<Door>(&journal).await;
    let door = DoorRef::of(&node, "front");
    assert_eq!(door.look().await.unwrap(), ("Shut".to_owned(), 0), "it begins in its first state");
    door.open().await.unwrap();
    assert_eq!(door.pass().await.unwrap(), 1);
    let error = door.open().await.unwrap_err().to_string();
    assert!(error.contains("ignores \"open\" in the state \"Open\""), "{error}");
    door.shut().await.unwrap();
    let error = door.shut().await.unwrap_err().to_string();
    assert!(error.contains("does not know \"shut\" in the state \"Shut\"") && error.contains("#[on(shut"), "{error}");
    node.stop().await;
}

#[tokio::test]
async fn a_deferred_message_waits_in_the_journal_for_its_state() {
    let journal = Arc::new(MemoryStore::new());
    let first = node::<Door>(&journal).await;
    let porter = PorterRef::of(&first, "p");
    for _ in 0..3 {
        porter.let_pass(DoorRef::of(&first, "front")).await.unwrap();
    }
    assert_eq!(DoorRef::of(&first, "front").look().await.unwrap().1, 0);
    first.stop().await;
    let second = node::<Door>(&journal).await;
    let door = DoorRef::of(&second, "front");
    // A call waits just so, and is answered by the turn that it gets at last.
    let waiting = door.pass().by(Duration::from_secs(20));
    let opening = async {
        settled(&door, ("Shut", 0)).await;
        door.open().await
    };
    let (passed, opened) = tokio::join!(waiting.into_future(), opening);
    assert_eq!((passed.unwrap(), opened.is_ok()), (4, true), "those that came first go first");
    settled(&door, ("Open", 4)).await;
    second.stop().await;
}

#[tokio::test]
async fn a_jump_to_a_state_that_there_is_not_fails_the_turn() {
    let journal = Arc::new(MemoryStore::new());
    let node = node::<Door>(&journal).await;
    let door = DoorRef::of(&node, "front");
    let error = door.break_in("Ajar".to_owned()).await.unwrap_err().to_string();
    assert!(error.contains("no state \"Ajar\"") && error.contains("\"Shut\", \"Open\""), "{error}");
    assert_eq!(door.look().await.unwrap(), ("Shut".to_owned(), 0), "nothing of the turn is kept");
    node.stop().await;
}

#[tokio::test]
async fn a_state_that_an_upgrade_forgot_is_told_and_what_came_meanwhile_is_not_lost() {
    let journal = Arc::new(MemoryStore::new());
    let first = node::<earlier::Door>(&journal).await;
    earlier::DoorRef::of(&first, "front").lock().await.unwrap();
    first.stop().await;

    let second = node::<Door>(&journal).await;
    let door = DoorRef::of(&second, "front");
    let error = door.open().await.unwrap_err().to_string();
    assert!(error.contains("in the state \"Locked\", which this program does not know"), "{error}");
    let porter = PorterRef::of(&second, "p");
    porter.let_pass(door.clone()).await.unwrap();
    assert_eq!(door.look().await.unwrap(), ("Locked".to_owned(), 7), "a read that is called in all states shows it");
    second.stop().await;

    let third = node::<earlier::Door>(&journal).await;
    earlier::DoorRef::of(&third, "front").unlock().await.unwrap();
    third.stop().await;
    let fourth = node::<Door>(&journal).await;
    let door = DoorRef::of(&fourth, "front");
    door.open().await.unwrap();
    settled(&door, ("Open", 8)).await;
    fourth.stop().await;
}

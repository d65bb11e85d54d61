//! Names of kinds that others offer: however many, the process goes on, and its own kinds have room.
//!
//! A program of its own, as a process keeps such names for ever.

use greenroom::prelude::*;
use greenroom::{KINDS_MAX, KINDS_OFFERED_MAX, Kind};

#[derive(Default, Actor)]
struct Late;

#[actor(kind = "registered_late")]
impl Late {
    pub async fn place(&self, cx: &Cx) -> String {
        cx.node_name().to_owned()
    }
}

#[tokio::test]
async fn however_many_kinds_others_offer_the_programs_own_have_room() {
    let taken = (0..2 * KINDS_MAX).filter(|number| Kind::offered(&format!("offered_{number}")).is_some()).count();
    assert_eq!(taken, KINDS_OFFERED_MAX);
    assert!(Kind::offered("offered_0").is_some(), "who is known stays so");
    assert_eq!(Kind::offered("one_more"), None);
    // What a node starts with is the program's own, and so are all that it is called by.
    let node = Node::builder().name("a").register::<Late>().start().await.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(LateRef::of(&node, "x").place().await.unwrap_or_else(|error| panic!("{error}")), "a");
    node.stop().await;
}

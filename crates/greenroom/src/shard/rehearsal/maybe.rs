//! What is not up to an actor, chosen by who explores it.

use std::cell::RefCell;
use std::rc::Rc;

/// Who chooses: by the name of what happens or not.
type Maybe = Rc<dyn Fn(&str) -> bool>;

thread_local! {
    static MAYBE: RefCell<Option<Maybe>> = const { RefCell::new(None) };
}

/// Lets `choose` say on this thread from here on what happens; nothing does without one.
pub fn ask_maybe(choose: Option<Maybe>) {
    // What was there may hold more than itself: it goes when nothing is borrowed.
    drop(MAYBE.with(|maybe| maybe.replace(choose)));
}

/// Whether it happens.
pub(crate) fn maybe(what: &str) -> bool {
    let choose = MAYBE.with_borrow(Clone::clone);
    choose.is_some_and(|choose| choose(what))
}

//! Panics that are looked for are not told one by one.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs `run`, in which panics of this thread are silent; the one that ends it is told.
pub(crate) fn quietly<R>(run: impl FnOnce() -> R) -> R {
    struct Loud(bool);
    impl Drop for Loud {
        fn drop(&mut self) {
            IS_QUIET.set(self.0);
        }
    }
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let told = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !IS_QUIET.get() {
                told(info);
            }
        }));
    });
    let loud = Loud(IS_QUIET.replace(true));
    let ran = panic::catch_unwind(AssertUnwindSafe(run));
    drop(loud);
    ran.unwrap_or_else(|payload| panic!("{}", said(&*payload)))
}

/// What a panic said.
pub(crate) fn said(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without words".to_owned())
}

//! What a test's author does wrong is said, with its remedy.

use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use greenroom_test::Cluster;

use crate::actors::{Annals, Book, Counter, cluster};

/// What a panic of `test` says.
fn complaint(test: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(test)).expect_err("it complains");
    panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap()
}

#[test]
fn an_unknown_node_is_named_with_those_that_there_are() {
    let said = complaint(|| cluster(2).run(0, |cluster| async move { cluster.kill("d") }));
    assert!(said.contains("\"d\"") && said.contains("a, b"), "{said}");
}

#[test]
fn a_cut_from_an_unknown_machine_is_refused() {
    let said = complaint(|| cluster(2).run(0, |cluster| async move { cluster.cut("a", "stats") }));
    assert!(said.contains("\"stats\""), "{said}");
}

#[test]
fn a_node_that_is_down_says_so() {
    let said = complaint(|| {
        cluster(2).run(0, |cluster| async move {
            cluster.kill("b");
            cluster.node("b");
        });
    });
    assert!(said.contains("is down") && said.contains("cluster.start"), "{said}");
}

#[test]
fn a_node_that_cannot_start_says_why_at_once() {
    let twice = Cluster::of(1, |builder| builder.register::<Counter>().register::<Counter>());
    let said = complaint(|| twice.run(0, |_| async {}));
    assert!(said.contains("node \"a\" cannot start") && said.contains("registered twice"), "{said}");
    let storeless = Cluster::of(1, |builder| builder.register::<Annals>().register::<Book>());
    let said = complaint(|| storeless.run(0, |_| async {}));
    assert!(said.contains("archive"), "{said}");
}

#[test]
fn a_scenario_that_never_ends_fails_at_its_deadline() {
    let said = complaint(|| cluster(1).deadline(Duration::from_secs(30)).run(0, |_| pending::<()>()));
    assert!(said.contains("no end") && said.contains("deadline"), "{said}");
}

#[test]
fn the_zeroth_act_is_no_moment() {
    let said = complaint(|| {
        cluster(1).run(0, |cluster| async move { cluster.crash_at("a", greenroom_test::Moment::AfterSave, 0) });
    });
    assert!(said.contains("counted from 1"), "{said}");
}

//! The usual mistakes with `#[actor]` and `#[derive(Actor)]` are named in the user's words, at the user's code.
//!
//! What is expected stands in `compile_errors/*.stderr`. After a deliberate change of a message:
//! `TRYBUILD=overwrite cargo test -p greenroom-mistakes --test compile_errors`, then read the difference.

#[test]
fn mistakes_are_named_where_they_are_made() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/compile_errors/*.rs");
}

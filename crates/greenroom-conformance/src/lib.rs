//! What Greenroom promises, claim by claim, in the simulated world: the tests are in `tests/conformance`, their list in its
//! README. A crate of its own, as the tests compile four times as fast when nothing optimises them.

//! What Greenroom promises, claim by claim: in the simulated world (`tests/conformance`, with the list of all claims in its README),
//! on one real node (`actors`, `state`, `reliable`, `security`), and at the HTTP door (`door`). A crate of its own, as the tests
//! compile seven times as fast when nothing optimises them.

//! Operations: nodes that drain, actors that move, and what their callers see of it.

mod drain;
mod inspecting;
mod ledger;
mod migration;
mod stuck;
pub(crate) mod wanderers;

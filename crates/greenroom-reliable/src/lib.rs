//! What reliable actors keep, and how it is written: their [fields], which know what a turn has changed of them, and the
//! [ledger] of a partition, which puts all that a turn does into one commit of a journal.
//!
//! Nothing here decides anything: who may run when, what is sent, acknowledged and repeated is the business of
//! [`greenroom_protocols::delivery`].

pub mod fields;
pub mod ledger;

//! The recipes of Greenroom's documentation (`docs/recipes`): small programs to begin from, each with a test.

pub mod agent;
pub mod board;
pub mod cache;
pub mod cart;
pub mod chat;
pub mod document;
pub mod fanout;
pub mod gateway;
pub mod limiter;
pub mod matchmaking;
pub mod scheduler;
pub mod tenants;
pub mod transfer;
pub mod twin;
pub mod workflow;

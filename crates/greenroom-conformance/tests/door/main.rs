//! The HTTP door of real nodes, over real sockets.

mod actors;
mod answers;
mod client;
mod console;
mod context;
mod events;
mod hosts;
mod idempotency;
mod interfaces;
mod joining;
mod keys;
mod kinds;
mod life;
mod limits;
mod live;
mod methods;
mod optimiser;
mod overview;
mod pids;
mod rebinding;
mod reliable;
mod reminders;
mod slow;
mod streams;
mod tail;
mod topics;

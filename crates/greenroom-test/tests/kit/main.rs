//! The kit does what it says: crashes at their moments, cuts, reports of failures, replays.

mod actors;
mod mistakes;
mod moments;
mod network;
mod nodes;
mod reports;

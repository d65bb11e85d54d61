//! The program from outside, a module for each subject: its processes and what they print, stored states, certificates and tokens,
//! the projects that it makes, and the rules by which it is monitored.

mod monitoring;
mod output;
mod processes;
mod security;
mod settings;
mod state;
pub mod templates;

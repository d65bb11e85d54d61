//! Who may connect to a node, and who may call what: certificates, connections inside TLS, credentials and rules.
//!
//! Nothing here knows of nodes or actors. Cryptography is rustls and ring alone; files are read again when they change
//! ([`watched`]), and a file that cannot be used leaves in force what was.

mod authorities;
mod chain;
mod explain;
mod pem;
mod stream;

pub mod access;
pub mod certificates;
pub mod door;
pub mod error;
pub mod files;
pub mod identity;
#[cfg(feature = "issue")]
pub mod issue;
pub mod jwt;
pub mod link;
pub mod principal;
pub mod rules;
pub mod tokens;
pub mod watched;

//! Who may connect to a node, and who may call what: certificates, connections inside TLS, credentials and rules.
//!
//! Nothing here knows of nodes or actors. Cryptography is rustls and ring alone, behind the feature `tls` (on by default),
//! without which there are settings, rules and plain connections; files are read again when they change ([`watched`]),
//! and a file that cannot be used leaves in force what was.

#[cfg(feature = "tls")]
mod authorities;
#[cfg(feature = "tls")]
mod chain;
#[cfg(feature = "tls")]
mod explain;
#[cfg(feature = "tls")]
mod pem;
#[cfg(feature = "tls")]
mod stream;

#[cfg(feature = "tls")]
pub mod access;
pub mod auth;
#[cfg(feature = "tls")]
pub mod certificates;
#[cfg(feature = "tls")]
pub mod door;
pub mod error;
pub mod files;
#[cfg(feature = "tls")]
pub mod identity;
#[cfg(feature = "issue")]
pub mod issue;
#[cfg(feature = "tls")]
pub mod jwt;
pub mod link;
pub mod principal;
pub mod rules;
#[cfg(feature = "tls")]
pub mod tokens;
#[cfg(feature = "tls")]
pub mod watched;

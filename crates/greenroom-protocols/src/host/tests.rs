//! Named traces of hosts, each against one rule.

mod lanes;
mod sessions;

use super::*;
use crate::time::Timestamp;

fn at(ms: u64) -> Timestamp {
    Timestamp::from_nanos(ms * 1_000_000)
}

fn offer(kind: &str, version: u16, compatible: u16, digest: &str) -> Offer {
    let versions = crate::versions::Offer { version, compatible };
    Offer { kind: kind.into(), versions, digest: digest.into() }
}

fn with(off: impl Fn(&mut Checks)) -> Settings {
    let mut settings = Settings::default();
    off(&mut settings.checks);
    settings
}

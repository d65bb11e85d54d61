//! Which kinds can be adaptive.

use crate::geo::config::{GeoActivation, GeoConfig};
use crate::here::kinds::Kinds;
use crate::node::config::Config;

/// Refuses adaptive kinds that cannot be.
///
/// # Errors
/// What is wrong, and what helps.
pub(in crate::geo) fn check_kinds(kinds: &Kinds, config: &Config) -> Result<(), String> {
    if let Some(trouble) = config.geo.as_ref().and_then(|geo| geo.adaptive.trouble()) {
        return Err(trouble);
    }
    let none = GeoConfig::default();
    let geo = config.geo.as_ref().unwrap_or(&none);
    for (kind, options) in kinds.options().filter(|(kind, options)| geo.is_adaptive(kind, options.adaptive)) {
        let refused = |why: &str| {
            Err(format!(
                "actor kind {kind:?} has instances = \"adaptive\", {why} instances = \"single\" or \"per_cluster\""
            ))
        };
        if options.reliable || options.workers > 0 {
            return refused(
                "and is reliable, or made of workers, whose number of instances is given: leave it out, or say",
            );
        }
        if !kinds.is_versioned(kind) {
            return refused(
                "and nothing that several instances could agree on: give it a field `Versioned<S>`, or say",
            );
        }
        let protocol = config.protocol_of(kind, options.protocol);
        if protocol == VOLATILE {
            return refused(
                "and protocol = \"vlb\", whose state is in memory and lost where instances end: say protocol = \"bcas\" or \
                 \"log\", which keep it in a store, or say",
            );
        }
        let homes = config.kinds.get(kind).is_some_and(|said| said.home.is_some()) || !options.home.is_empty();
        if homes {
            return refused("and a home, which its uses decide: leave `home` out, or say");
        }
        let activation = geo.kinds.get(kind).and_then(|said| said.activation);
        if activation == Some(GeoActivation::Pessimistic) {
            return refused(
                "which does not wait for silent clusters, and activation = \"pessimistic\": leave that out, or say",
            );
        }
    }
    Ok(())
}

/// The protocol in the box whose states are in memory.
const VOLATILE: &str = "vlb";

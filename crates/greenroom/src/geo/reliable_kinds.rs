//! The rule for reliable kinds in a multi-cluster: each cluster has actors of its own, and the kind must say so.
//!
//! A reliable actor lives in the journal of its cluster. Under the same key every other cluster has another actor, with another
//! state and other idempotency keys. Nothing in a call shows that, so a node takes such a kind only if somebody has declared it.

use greenroom_protocols::node::Instances;

use super::config::{GeoHome, GeoInstances};
use crate::actor::interface::Options;
use crate::here::built_in::is_built_in;
use crate::node::config::Config;

/// Refuses the first of these kinds that is reliable and does not declare one actor in each cluster.
///
/// # Errors
/// The kind, the setting, and the remedy.
pub(crate) fn check_reliable_kinds<'a>(
    config: &Config,
    mut kinds: impl Iterator<Item = (&'a str, &'a Options)>,
) -> Result<(), String> {
    kinds.try_for_each(|(kind, options)| match options.reliable {
        true => check_reliable_kind(config, kind, options.instances == Instances::PerCluster),
        false => Ok(()),
    })
}

/// Refuses the reliable kind `kind` on a node of a multi-cluster, unless one actor in each cluster is declared: by the kind
/// itself (`declares_per_cluster`) or by the node's `[geo.kinds]`, whose word counts if both say something.
///
/// # Errors
/// The kind, the setting, and the remedy.
pub(crate) fn check_reliable_kind(config: &Config, kind: &str, declares_per_cluster: bool) -> Result<(), String> {
    let Some(geo) = config.geo.as_ref().filter(|_| !is_built_in(kind)) else { return Ok(()) };
    let remedy = format!(
        "reliable actors live in their cluster's journal, so that each cluster has an actor of its own under the same key, with a \
         state and idempotency keys of its own; if that is meant, write `instances = \"per_cluster\"` under `[geo.kinds.{kind}]`, or \
         else do not host the kind in a multi-cluster"
    );
    match geo.kinds.get(kind).and_then(|said| said.instances) {
        Some(GeoInstances::PerCluster) => {}
        Some(other) => {
            let written = other.name();
            return Err(format!(
                "`[geo.kinds.{kind}] instances = \"{written}\"` cannot be kept, as actor kind {kind:?} is reliable: {remedy}"
            ));
        }
        None if declares_per_cluster => {}
        None => {
            return Err(format!(
                "actor kind {kind:?} is reliable and does not declare `instances = \"per_cluster\"`: {remedy}"
            ));
        }
    }
    let cannot_be_kept = |setting: &str| {
        format!(
            "`{setting}` cannot be kept, as actor kind {kind:?} is reliable, and each cluster has actors of its own; leave it out"
        )
    };
    if geo.kinds.get(kind).is_some_and(|said| said.activation.is_some()) {
        return Err(cannot_be_kept(&format!("[geo.kinds.{kind}] activation")));
    }
    let home = config.kinds.get(kind).and_then(|said| said.home.as_ref());
    if home.is_some_and(|home| *home != GeoHome::None) {
        return Err(cannot_be_kept(&format!("[kinds.{kind}] home")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geo::config::{GeoActivation, GeoConfig, GeoKind};
    use crate::node::config::KindConfig;

    fn configured(said: Option<GeoKind>, home: Option<GeoHome>) -> Config {
        let mut geo = GeoConfig::default();
        geo.kinds.extend(said.map(|said| ("wallet".to_owned(), said)));
        let mut config = Config { geo: Some(geo), ..Config::default() };
        let at = |home| KindConfig { home: Some(home), ..KindConfig::default() };
        config.kinds.extend(home.map(|home| ("wallet".to_owned(), at(home))));
        config
    }

    fn instances(instances: GeoInstances) -> Option<GeoKind> {
        Some(GeoKind { instances: Some(instances), activation: None })
    }

    #[test]
    fn a_reliable_kind_that_declares_nothing_is_refused_with_the_kind_the_setting_and_the_remedy() {
        let refused = check_reliable_kind(&configured(None, None), "wallet", false).unwrap_err();
        for part in ["actor kind \"wallet\"", "`instances = \"per_cluster\"`", "`[geo.kinds.wallet]`"] {
            assert!(refused.contains(part), "{part} is not in: {refused}");
        }
    }

    #[test]
    fn the_configuration_or_the_kind_itself_may_declare_it_and_the_configuration_counts() {
        let declared = configured(instances(GeoInstances::PerCluster), None);
        assert_eq!(check_reliable_kind(&declared, "wallet", false), Ok(()));
        assert_eq!(check_reliable_kind(&configured(None, None), "wallet", true), Ok(()));
        for (other, written) in [(GeoInstances::Single, "single"), (GeoInstances::Adaptive, "adaptive")] {
            let refused = check_reliable_kind(&configured(instances(other), None), "wallet", true).unwrap_err();
            assert!(refused.contains(&format!("`[geo.kinds.wallet] instances = \"{written}\"`")), "{refused}");
        }
    }

    #[test]
    fn settings_of_single_actors_are_refused_for_a_reliable_kind() {
        let said = GeoKind { instances: Some(GeoInstances::PerCluster), activation: Some(GeoActivation::Pessimistic) };
        let refused = check_reliable_kind(&configured(Some(said), None), "wallet", false).unwrap_err();
        assert!(refused.contains("`[geo.kinds.wallet] activation`"), "{refused}");
        let home = configured(instances(GeoInstances::PerCluster), Some(GeoHome::Lease));
        assert!(check_reliable_kind(&home, "wallet", false).unwrap_err().contains("`[kinds.wallet] home`"));
    }

    #[test]
    fn a_cluster_that_is_alone_and_the_runtimes_own_kinds_need_no_declaration() {
        assert_eq!(check_reliable_kind(&Config::default(), "wallet", false), Ok(()));
        assert_eq!(check_reliable_kind(&configured(None, None), "greenroom.partition", false), Ok(()));
    }
}

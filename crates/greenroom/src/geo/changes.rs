//! Changes of the list of clusters, one step at a time (G3 of GSI).

use std::sync::Arc;

use greenroom_protocols::gsi::{Change, ChangeRefused};

use super::clusters::id_of;
use super::config::GeoCluster;
use super::{Clusters, Geo};
use crate::node::shared::Shared;

/// What an operator wants of the list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Wish {
    /// A cluster joins, with these gateways.
    Add(String, Vec<String>),
    /// A cluster is to give up what it has.
    Drain(String),
    /// A drained cluster leaves.
    Remove(String),
}

/// Why the list was not changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Unchanged {
    /// Only one node makes changes, so that they follow each other.
    #[error("changes are made at node {node:?} of cluster {cluster:?}; ask there")]
    Elsewhere {
        /// The cluster.
        cluster: String,
        /// The node, if it is of this cluster.
        node: String,
    },
    #[error("{0}")]
    Refused(String),
}

impl Geo {
    /// Changes the list, if it is this node that does and the last change is complete.
    pub(crate) fn change(self: &Arc<Self>, node: &Shared, wish: &Wish) -> Result<(), Unchanged> {
        let list = self.clusters();
        let first = list.clusters.keys().next().map_or("", String::as_str);
        let view = node.view();
        let maker = view.view.active().next();
        if first != self.name() || maker.is_none_or(|(id, _)| id != node.me()) {
            let own = maker.filter(|_| first == self.name()).map(|(_, member)| member.name.clone());
            return Err(Unchanged::Elsewhere {
                cluster: first.to_owned(),
                node: own.unwrap_or_else(|| "any".to_owned()),
            });
        }
        let (name, change) = match wish {
            Wish::Add(name, _) => (name, Change::Add(id_of(name))),
            Wish::Drain(name) => (name, Change::Drain(id_of(name))),
            Wish::Remove(name) => (name, Change::Drop(id_of(name))),
        };
        let changed = list.configuration().change(change, &self.acknowledged(node));
        let changed = changed.map_err(|refused| Unchanged::Refused(explained(&list, name, &refused)))?;
        let mut next = Clusters { epoch: changed.epoch.0, clusters: list.clusters.clone() };
        match wish {
            Wish::Add(name, gateways) => {
                next.clusters.insert(name.clone(), GeoCluster::at(gateways));
            }
            Wish::Drain(name) => {
                if let Some(cluster) = next.clusters.get_mut(name) {
                    cluster.draining = true;
                }
            }
            Wish::Remove(name) => {
                next.clusters.remove(name);
            }
        }
        next.check().map_err(Unchanged::Refused)?;
        self.adopt(node, next);
        Ok(())
    }
}

/// The machine's refusal, with names in place of numbers.
fn explained(list: &Clusters, name: &str, refused: &ChangeRefused) -> String {
    let named = |id: u16| list.clusters.keys().find(|known| id_of(known).0 == id).map_or(name, String::as_str);
    match refused {
        ChangeRefused::Present(id) => format!("cluster {:?} is already in the list", named(*id)),
        ChangeRefused::Absent(id) => {
            format!("cluster {:?} is not in the list; see `greenroom clusters list`", named(*id))
        }
        ChangeRefused::NotDraining(id) => {
            format!("cluster {0:?} is not draining; first `greenroom clusters drain {0}`", named(*id))
        }
        ChangeRefused::Unacknowledged { cluster, epoch } => format!(
            "cluster {:?} does not work by list {epoch} yet; see `greenroom clusters status`, and try again when it does",
            named(*cluster)
        ),
        ChangeRefused::NotEmpty(id) => format!(
            "cluster {:?} still has instances; wait until `greenroom clusters status` shows it empty",
            named(*id)
        ),
        other => other.to_string(),
    }
}

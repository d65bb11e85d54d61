//! The example of a versioned state: score boards. In a multi-cluster, each cluster has an instance of each.

use std::collections::BTreeMap;

use greenroom::Builder;
use greenroom::prelude::*;
use greenroom::versioned::Version;
use serde::{Deserialize, Serialize};

/// Registers score boards.
pub(crate) fn register(builder: Builder) -> Builder {
    builder.register::<ScoreBoard>()
}

/// Points by player.
#[derive(Default, Clone, Serialize, Deserialize)]
struct Scores(BTreeMap<String, u64>);

/// Points that a player has won.
#[derive(Clone, Serialize, Deserialize)]
struct Won {
    player: String,
    points: u64,
}

impl VersionedState for Scores {
    type Update = Won;

    fn apply(&mut self, won: &Won) {
        let points = self.0.entry(won.player.clone()).or_default();
        *points = points.saturating_add(won.points);
    }
}

/// Who has won how much.
#[derive(Default, Actor)]
pub(crate) struct ScoreBoard {
    scores: Versioned<Scores>,
}

#[actor(instances = "per_cluster")]
impl ScoreBoard {
    /// Notes points at once; other clusters hear of them as soon as they are reached.
    #[update]
    pub async fn won(&self, player: String, points: u64) -> BTreeMap<String, u64> {
        self.scores.enqueue(Won { player, points });
        self.scores.tentative().0.clone()
    }

    /// Notes points, and answers once they are confirmed, with what a reader elsewhere may bring along.
    #[update]
    pub async fn won_for_sure(&self, player: String, points: u64) -> Result<Version, StateError> {
        self.scores.enqueue(Won { player, points });
        self.scores.confirm_updates().await?;
        Ok(self.scores.confirmed().1)
    }

    /// The scores as this cluster knows them.
    pub async fn scores(&self) -> BTreeMap<String, u64> {
        self.scores.tentative().0.clone()
    }

    /// The latest scores of all clusters.
    pub async fn latest(&self) -> Result<BTreeMap<String, u64>, StateError> {
        self.scores.refresh_now().await?;
        Ok(self.scores.confirmed().0.0.clone())
    }

    /// The scores of `version` or later.
    pub async fn since(&self, version: Version) -> Result<BTreeMap<String, u64>, StateError> {
        Ok(self.scores.read_at_least(version).await?.0.0.clone())
    }
}

//! The stage of a cluster, as JSON.

use serde_json::Value;

use super::problem::Problem;
use super::{Door, asked};
use crate::observe::look::Whom;
use crate::observe::stage::cluster::stage;
use crate::observe::stage::{TOP_DEFAULT, TOP_MAX};

/// Reads `?top=500`, which may be left out.
///
/// # Errors
/// Something else is asked for.
pub(super) fn wanted(query: Option<&str>) -> Result<(usize, Whom), Problem> {
    let mut top = TOP_DEFAULT;
    let whom = asked::read(query, UNCLEAR, |name, value| {
        let read = value.parse().ok().filter(|read| name == "top" && *read <= TOP_MAX)?;
        top = read;
        Some(())
    })?;
    Ok((top, whom))
}

/// Where actors are, and the `top` hottest of them with who talks with whom.
pub(super) async fn list(door: &Door, top: usize, whom: &Whom) -> Value {
    stage(&door.node, top, whom).await
}

const UNCLEAR: &str = "write how many of the hottest actors are wanted as `?top=500`, at most 2000, with `&nodes=a,b` if not those of all nodes";

//! What is asked of a cluster at a glance.

use super::asked;
use super::problem::Problem;
use crate::observe::look::Whom;

/// What a request says of how much of the past it wants: `?seconds=600`; and of which nodes.
///
/// # Errors
/// Something else is asked for.
pub(super) fn wanted(query: Option<&str>) -> Result<(u32, Whom), Problem> {
    let mut wanted = SECONDS_DEFAULT;
    let whom = asked::read(query, UNCLEAR, |name, value| {
        let seconds = value.parse().ok().filter(|seconds| name == "seconds" && (1..=SECONDS_MAX).contains(seconds));
        seconds.map(|seconds| wanted = seconds)
    })?;
    Ok((wanted, whom))
}

const SECONDS_DEFAULT: u32 = 300;
const SECONDS_MAX: u32 = 3_600;
const UNCLEAR: &str = "write of how much of the past you want to hear as `?seconds=600`, at most 3600, with `&nodes=a,b` if not of all nodes";

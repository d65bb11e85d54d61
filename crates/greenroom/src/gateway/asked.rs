//! What is asked of several nodes at one door.

use super::path::decode;
use super::problem::Problem;
use crate::observe::look::Whom;

/// Reads a query: which nodes it asks (`nodes=a,b`); what else it says, `read` takes by name and value, or knows nothing of.
///
/// # Errors
/// `read` knows nothing of something; `unclear` says what it knows.
pub(super) fn read(
    query: Option<&str>,
    unclear: &str,
    mut read: impl FnMut(&str, String) -> Option<()>,
) -> Result<Whom, Problem> {
    let mut whom = Whom::All;
    for part in query.unwrap_or_default().split('&').filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once('=').ok_or_else(|| Problem::bad_request(unclear))?;
        let value = decode(value).map_err(|why| Problem::bad_request(&why))?;
        match name {
            "nodes" => whom = Whom::Named(value.split(',').map(str::to_owned).collect()),
            _ => read(name, value).ok_or_else(|| Problem::bad_request(unclear))?,
        }
    }
    Ok(whom)
}

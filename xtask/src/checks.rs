//! The folder in which checks keep things from one run to the next: outside of the checkout, inside the cache of engines.

use std::fs;
use std::path::PathBuf;

/// The folder `name` of those that are kept, which is there, if it can be made.
pub(crate) fn folder(name: &str) -> Option<PathBuf> {
    let from = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let user = || from("XDG_CACHE_HOME").or_else(|| from("HOME").map(|home| home.join(".cache")));
    let engines = from("GREENROOM_ENGINES_CACHE");
    let engines = engines.unwrap_or_else(|| user().unwrap_or_else(std::env::temp_dir).join("greenroom/engines"));
    let folder = engines.join("checks").join(name);
    fs::create_dir_all(&folder).is_ok().then_some(folder)
}

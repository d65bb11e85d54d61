//! A schedule that breaks a test, told: as a story, as a page, as a diagram, as a file that replays it.

mod file;
mod matters;
mod mermaid;
mod page;
mod story;

pub(crate) use self::file::{Saved, file_name, folder, read, test_name};
pub(crate) use self::matters::{Swapped, matters};
pub(crate) use self::mermaid::mermaid;
pub(crate) use self::page::page;
pub(crate) use self::story::{Scene, Story, actor_of};

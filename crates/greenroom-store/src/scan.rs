//! Pages of a scan.

use crate::Versioned;

/// A key with what is under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The whole key, prefix included.
    pub key: String,
    /// Its value and version.
    pub versioned: Versioned,
}

/// Some items of a scan, in the byte order of their keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// At most as many as were asked for; may be empty although more follow.
    pub items: Vec<Item>,
    /// Where the next page begins: pass it as `after`. `None` on the last page.
    pub next: Option<String>,
}

/// Fills a page within its bounds; for providers, which offer it every matching item in key order.
#[derive(Debug)]
pub struct PageBuilder {
    page: Page,
    limit: usize,
    bytes: usize,
}

impl PageBuilder {
    /// A page of at most `limit` items, clamped to 1..=[`LIMIT_MAX`], and of about [`PAGE_BYTES_MAX`].
    pub fn new(limit: usize) -> Self {
        Self { page: Page::default(), limit: limit.clamp(1, LIMIT_MAX), bytes: 0 }
    }

    /// Whether the page holds all it may: the next match is not read but makes the page end with a `next`.
    pub fn is_full(&self) -> bool {
        self.page.items.len() >= self.limit || self.bytes >= PAGE_BYTES_MAX
    }

    /// Adds the next item in key order to a page that is not full.
    pub fn push(&mut self, item: Item) {
        self.bytes += item.key.len() + item.versioned.value.len();
        self.page.items.push(item);
    }

    /// The page; `more` tells whether another match follows.
    pub fn finish(mut self, more: bool) -> Page {
        self.page.next = self.page.items.last().filter(|_| more).map(|last| last.key.clone());
        self.page
    }
}

/// Most items in a page.
pub const LIMIT_MAX: usize = 1000;

/// A page that has reached this size ends, after at least one item: 4 MiB.
pub const PAGE_BYTES_MAX: usize = 4 << 20;

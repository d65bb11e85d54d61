//! Pages of keys, from listings of names and the objects themselves.

use futures_util::stream::{self, StreamExt, TryStreamExt};
use greenroom_store::scan::PageBuilder;
use greenroom_store::{Item, Page, Result, StoreError, Versioned};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore as _, ObjectStoreExt as _};

use crate::body::{Body, Content, TOMBSTONE_BYTES};
use crate::fault::Failure;
use crate::names::{self, Named};
use crate::object::{Bucket, Object, path};

/// An object that may belong to a page.
struct Candidate {
    location: Path,
    bytes: u64,
    /// `None` if only the object tells.
    key: Option<String>,
    /// Of a long key: what the names of all keys with the same beginning begin with.
    group: Option<String>,
}

impl Bucket {
    pub(crate) async fn scan(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Page> {
        let begin = names::group(prefix.as_bytes());
        let matches = |key: &str| key.starts_with(prefix) && after.is_none_or(|after| key > after);
        let mut listing = self.listing(&begin, after);
        let mut page = PageBuilder::new(limit);
        let (mut ahead, mut batch) = (None, Vec::new());
        loop {
            let next = match ahead.take() {
                Some(candidate) => Some(candidate),
                None => self.next_candidate(&mut listing, &begin).await?,
            };
            let ended = next.is_none();
            match next {
                // First what comes before the long keys.
                Some(Candidate { group: Some(_), .. }) if !batch.is_empty() => ahead = next,
                Some(Candidate { group: Some(_), .. }) => {
                    (batch, ahead) = self.whole_group(next, &mut listing, &begin).await?;
                }
                Some(candidate) => {
                    batch.push(candidate);
                    let bytes: u64 = batch.iter().map(|candidate| candidate.bytes).sum();
                    if batch.len() < BATCH_LEN_MAX && batch.len() <= limit && bytes < BATCH_BYTES_MAX {
                        continue;
                    }
                }
                None => {}
            }
            batch.retain(|candidate| candidate.key.as_deref().is_none_or(matches));
            let mut items = stream::iter(std::mem::take(&mut batch)).map(|found| self.item(found)).buffered(AT_ONCE);
            while let Some(item) = items.try_next().await? {
                let Some(item) = item.filter(|item| matches(&item.key)) else { continue };
                if page.is_full() {
                    return Ok(page.finish(true));
                }
                page.push(item);
            }
            if ended {
                return Ok(page.finish(false));
            }
        }
    }

    pub(crate) async fn remove_tombstones(&self, prefix: &str) -> Result<u64> {
        let begin = names::group(prefix.as_bytes());
        let mut listing = self.listing(&begin, None);
        let mut removed = 0;
        while let Some(meta) = listing.try_next().await? {
            let name = meta.location.as_ref().strip_prefix(&self.folder()).unwrap_or_default();
            if meta.size != TOMBSTONE_BYTES as u64 || !name.starts_with(&begin) {
                continue;
            }
            let found = self.fetch(&meta.location).await.map_err(|failure| failure.of_read(self.name()))?;
            if matches!(found, Some(Object { body: Body { content: Content::Tombstone, .. }, .. })) {
                let deleted = self.s3.delete(&meta.location).await;
                deleted.map_err(|error| Failure::of(&error, self.name()).of_read(self.name()))?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// What is in the bucket from the first name that begins with `begin`, or from behind `after`, in the order of names.
    fn listing(&self, begin: &str, after: Option<&str>) -> stream::BoxStream<'static, Result<ObjectMeta>> {
        let folder = self.folder();
        let inside = begin.rfind('/').map_or("", |slash| &begin[..=slash]);
        let from = match after {
            // The last of the names that are not wanted.
            Some(after) if after.len() <= names::WHOLE_BYTES_MAX => names::of(after),
            Some(after) => names::group(after.as_bytes()),
            None => begin.to_owned(),
        };
        let (inside, from) = (path(&format!("{folder}{inside}")), path(&format!("{folder}{from}")));
        let store = self.name().to_owned();
        let listing = self.s3.list_with_offset(Some(&inside), &from);
        // It is asked again after its end.
        listing.map_err(move |error| Failure::of(&error, &store).of_read(&store)).fuse().boxed()
    }

    /// The next object of `listing` whose name begins with `begin`, unless it is a tombstone.
    async fn next_candidate(
        &self,
        listing: &mut stream::BoxStream<'static, Result<ObjectMeta>>,
        begin: &str,
    ) -> Result<Option<Candidate>> {
        let folder = self.folder();
        while let Some(meta) = listing.try_next().await? {
            let Some(name) = meta.location.as_ref().strip_prefix(&folder) else { continue };
            if !name.starts_with(begin) {
                if name > begin {
                    return Ok(None);
                }
                continue;
            }
            if meta.size == TOMBSTONE_BYTES as u64 {
                continue;
            }
            let (key, group) = match names::key_of(name) {
                Named::Foreign => continue,
                Named::Hashed => (None, name.split(names::HASHED).next().map(str::to_owned)),
                Named::Key(key) if key.len() > names::WHOLE_BYTES_MAX => {
                    let group = names::group(key.as_bytes());
                    (Some(key), Some(group))
                }
                Named::Key(key) => (Some(key), None),
            };
            return Ok(Some(Candidate { bytes: meta.size, location: meta.location, key, group }));
        }
        Ok(None)
    }

    /// All long keys that begin as `first`, in their order, and what comes behind them.
    async fn whole_group(
        &self,
        first: Option<Candidate>,
        listing: &mut stream::BoxStream<'static, Result<ObjectMeta>>,
        begin: &str,
    ) -> Result<(Vec<Candidate>, Option<Candidate>)> {
        let group = first.as_ref().and_then(|first| first.group.clone());
        let (mut all, mut next) = (Vec::new(), first);
        while let Some(mut candidate) = next.take_if(|next| next.group == group) {
            if all.len() >= GROUP_LEN_MAX {
                let key = group.unwrap_or_default();
                let reason = format!("over {GROUP_LEN_MAX} long keys have the same beginning; shorten or hash them");
                return Err(StoreError::NotApplied { key, reason });
            }
            if candidate.key.is_none() {
                let found = self.fetch(&candidate.location).await.map_err(|failure| failure.of_read(self.name()))?;
                if let Some(Object { body: Body { content: Content::Live { key, .. }, .. }, .. }) = found {
                    candidate.key = Some(key);
                }
            }
            all.push(candidate);
            next = self.next_candidate(listing, begin).await?;
        }
        // One that was deleted meanwhile has no key.
        all.retain(|candidate| candidate.key.is_some());
        all.sort_by(|one, other| one.key.cmp(&other.key));
        Ok((all, next))
    }

    async fn item(&self, candidate: Candidate) -> Result<Option<Item>> {
        let found = self.fetch(&candidate.location).await.map_err(|failure| failure.of_read(self.name()))?;
        let Some(Object { version, body: Body { content: Content::Live { key, value }, .. } }) = found else {
            return Ok(None);
        };
        if let Some(expected) = candidate.key.filter(|expected| *expected != key) {
            return Err(self.mixed_up(&expected, &key));
        }
        Ok(Some(Item { key, versioned: Versioned { value, version } }))
    }
}

/// Objects that are asked for at the same time.
const AT_ONCE: usize = 16;

/// Most objects that are asked for before a page is looked at.
const BATCH_LEN_MAX: usize = 64;

/// Most bytes that are asked for before a page is looked at, a last object's aside.
const BATCH_BYTES_MAX: u64 = 4 << 20;

/// Most long keys with the same beginning.
const GROUP_LEN_MAX: usize = 10_000;

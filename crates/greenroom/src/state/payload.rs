//! States whose types nobody here knows: payloads, as hosts write them.

use bytes::Bytes;

use super::StateError;
use super::record;
use super::slot::{Site, Slot, digest};
use crate::actor::cx::Cx;

impl Slot {
    /// Reads the state's payload; `None` if there is none.
    pub(crate) async fn load_bytes(&self, cx: &Cx, site: &Site) -> Result<Option<Bytes>, StateError> {
        let Some(found) = self.look_up(cx, site).await? else { return Ok(None) };
        let (_, payload) = record::open(&found).map_err(|why| StateError::not_loaded(site.key(), why))?;
        Ok(Some(found.slice_ref(payload)))
    }

    /// True if the record is not the one that this activation last saw.
    pub(crate) async fn is_changed(&self, cx: &Cx, site: &Site) -> Result<bool, StateError> {
        Ok(self.read_changed(cx, site).await?.is_some())
    }

    /// Writes a payload, if the state is still as this activation last saw it, unless it is what was last read or written.
    pub(crate) async fn save_bytes(&self, cx: &Cx, site: &Site, payload: &[u8]) -> Result<(), StateError> {
        self.write_changed(cx, site, payload, digest(payload)).await
    }
}

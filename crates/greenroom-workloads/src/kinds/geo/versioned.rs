//! Arrays that change by updates, in every combination of how many instances they have and where their latest version is.

use greenroom::prelude::*;

use super::array::{Array, Patch};

impl VersionedState for Array {
    type Update = Patch;

    fn apply(&mut self, patch: &Patch) {
        self.write(patch);
    }
}

macro_rules! versioned_bytes {
    ($module:ident, $what:literal, kind = $kind:tt, instances = $instances:tt, protocol = $protocol:tt) => {
        #[doc = $what]
        pub mod $module {
            use std::time::Duration;

            use greenroom::prelude::*;

            use crate::kinds::Payload;
            use crate::kinds::geo::array::{Array, Patch};
            use crate::kinds::geo::{Access, Failure};

            /// An array that changes by updates.
            #[derive(Default, Actor)]
            pub struct Bytes {
                array: Versioned<Array>,
            }

            #[actor(kind = $kind, instances = $instances, protocol = $protocol)]
            impl Bytes {
                /// A part of the latest state of all.
                pub async fn read(&self, offset: u16) -> Result<Payload, StateError> {
                    self.array.refresh_now().await?;
                    Ok(self.array.confirmed().0.part(offset))
                }

                /// Writes a part, and waits until that is confirmed.
                #[update]
                pub async fn write(&self, patch: Patch) -> Result<(), StateError> {
                    self.array.enqueue(patch);
                    self.array.confirm_updates().await
                }

                /// A part of this instance's view.
                pub async fn read_here(&self, offset: u16) -> Payload {
                    self.array.tentative().part(offset)
                }

                /// Writes a part, which is confirmed in the background.
                #[update]
                pub async fn write_here(&self, patch: Patch) {
                    self.array.enqueue(patch);
                }
            }

            pub(crate) async fn access(
                cx: &Cx,
                key: &str,
                access: Access,
                offset: u16,
                within: Duration,
            ) -> Result<(), Failure> {
                let bytes = BytesRef::of(cx, key);
                match access {
                    Access::Read => drop(bytes.read(offset).by(within).await?),
                    Access::Write => bytes.write(Patch::at(offset)).by(within).await?,
                    Access::ReadHere => drop(bytes.read_here(offset).by(within).await?),
                    Access::WriteHere => bytes.write_here(Patch::at(offset)).by(within).await?,
                }
                Ok(())
            }
        }
    };
}

versioned_bytes!(
    volatile_single,
    "In the memory of its one instance.",
    kind = "geo_bytes_vlb_single",
    instances = "single",
    protocol = "vlb"
);
versioned_bytes!(
    volatile_each,
    "In the memory of an instance in each cluster, one of which leads.",
    kind = "geo_bytes_vlb_each",
    instances = "per_cluster",
    protocol = "vlb"
);
versioned_bytes!(
    kept_single,
    "In a store, by its one instance.",
    kind = "geo_bytes_bcas_single",
    instances = "single",
    protocol = "bcas"
);
versioned_bytes!(
    kept_each,
    "In a store, by an instance in each cluster.",
    kind = "geo_bytes_bcas_each",
    instances = "per_cluster",
    protocol = "bcas"
);

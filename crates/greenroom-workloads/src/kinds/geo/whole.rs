//! Arrays that are one actor's own: in memory, or in a store; at home nowhere, or in one cluster, as the configuration says.

macro_rules! volatile_bytes {
    ($module:ident, $what:literal, kind = $kind:tt) => {
        #[doc = $what]
        pub mod $module {
            use std::time::Duration;

            use greenroom::prelude::*;

            use crate::kinds::Payload;
            use crate::kinds::geo::array::{Array, Patch};
            use crate::kinds::geo::{Access, Failure};

            /// An array in memory.
            #[derive(Default, Actor)]
            pub struct Bytes {
                array: Array,
            }

            #[actor(kind = $kind)]
            impl Bytes {
                /// A part of it.
                pub async fn read(&self, offset: u16) -> Payload {
                    self.array.part(offset)
                }

                /// Writes a part of it.
                pub async fn write(&mut self, patch: Patch) {
                    self.array.write(&patch);
                }

                /// The node that it is on.
                pub async fn node(&self, cx: &Cx) -> String {
                    cx.node_name().to_owned()
                }
            }

            access!();
        }
    };
}

macro_rules! kept_bytes {
    ($module:ident, $what:literal, kind = $kind:tt) => {
        #[doc = $what]
        pub mod $module {
            use std::time::Duration;

            use greenroom::prelude::*;
            use serde::{Deserialize, Serialize};

            use crate::kinds::Payload;
            use crate::kinds::geo::array::{Array, Patch};
            use crate::kinds::geo::{Access, Failure};

            /// An array in a store.
            #[derive(Default, Serialize, Deserialize, Actor)]
            pub struct Bytes {
                array: Array,
            }

            #[actor(persistent, kind = $kind)]
            impl Bytes {
                /// A part of it.
                pub async fn read(&self, offset: u16) -> Payload {
                    self.array.part(offset)
                }

                /// Writes a part of it, and saves.
                pub async fn write(&mut self, cx: &Cx, patch: Patch) -> Result<(), StateError> {
                    self.array.write(&patch);
                    cx.save(self).await
                }
            }

            access!();
        }
    };
}

macro_rules! access {
    () => {
        pub(crate) async fn access(
            cx: &Cx,
            key: &str,
            access: Access,
            offset: u16,
            within: Duration,
        ) -> Result<(), Failure> {
            let bytes = BytesRef::of(cx, key);
            match access {
                Access::Read | Access::ReadHere => drop(bytes.read(offset).by(within).await?),
                Access::Write | Access::WriteHere => bytes.write(Patch::at(offset)).by(within).await?,
            }
            Ok(())
        }
    };
}

volatile_bytes!(volatile, "In the memory of their one instance.", kind = "geo_bytes_volatile");
volatile_bytes!(volatile_home_c, "In memory, at home in California.", kind = "geo_bytes_volatile_home_c");
volatile_bytes!(volatile_home_n, "In memory, at home in the Netherlands.", kind = "geo_bytes_volatile_home_n");
kept_bytes!(kept, "In a store, by an instance that saves each change.", kind = "geo_bytes_kept");
kept_bytes!(kept_home_c, "In a store, at home in California.", kind = "geo_bytes_kept_home_c");

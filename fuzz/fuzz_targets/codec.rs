//! Any bytes as a payload, read as types of many shapes: no panic, and what was read survives encoding.
#![no_main]

use std::collections::BTreeMap;

use bytes::BytesMut;
use greenroom_wire::codec::{self, Codec};
use libfuzzer_sys::fuzz_target;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Tree {
    name: String,
    #[serde(default)]
    weight: Option<u64>,
    #[serde(default)]
    children: Vec<Tree>,
    #[serde(default)]
    kind: Kind,
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Default)]
enum Kind {
    #[default]
    Leaf,
    Pair(i32, bool),
    Named {
        by: String,
    },
}

fuzz_target!(|data: &[u8]| {
    check::<Tree>(data);
    check::<BTreeMap<String, Vec<i64>>>(data);
    check::<(u8, String, Option<char>)>(data);
    check::<serde_json::Value>(data);
    check::<()>(data);
});

fn check<T: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(data: &[u8]) {
    if let Ok(value) = codec::decode::<T>(data) {
        let mut batch = BytesMut::new();
        if codec::encode(Codec::MessagePack, 1, &value, &mut batch).is_ok() {
            assert_eq!(codec::decode::<T>(&batch), Ok(value));
        }
    }
}

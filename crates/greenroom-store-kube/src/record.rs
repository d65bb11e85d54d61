//! The objects that records are, and their names.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use greenroom_store::Version;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// An object of the kind `GreenroomRecord`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Record {
    #[serde(default)]
    pub(crate) api_version: String,
    #[serde(default)]
    pub(crate) kind: String,
    pub(crate) metadata: Metadata,
    pub(crate) format: u32,
    pub(crate) key: String,
    pub(crate) salt: String,
    /// In base64.
    pub(crate) value: String,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Metadata {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) name: String,
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub(crate) labels: Labels,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) uid: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) resource_version: String,
    /// Of a list that is to go on.
    #[serde(default, rename = "continue", skip_serializing_if = "String::is_empty")]
    pub(crate) more: String,
}

pub(crate) type Labels = std::collections::BTreeMap<String, String>;

/// Some of the objects of a store.
#[derive(Debug, Deserialize)]
pub(crate) struct List {
    pub(crate) metadata: Metadata,
    pub(crate) items: Vec<Record>,
}

impl Record {
    /// For `key` of the store called `store`, as it is to be written.
    pub(crate) fn new(store: &str, key: &str, value: &[u8]) -> Self {
        Self {
            api_version: format!("{GROUP}/v1"),
            kind: "GreenroomRecord".to_owned(),
            metadata: Metadata {
                name: name(store, key),
                labels: Labels::from([(STORE_LABEL.to_owned(), store.to_owned())]),
                ..Metadata::default()
            },
            format: FORMAT,
            key: key.to_owned(),
            salt: Uuid::new_v4().to_string(),
            value: STANDARD.encode(value),
        }
    }

    /// Which write it is of: the object's own id, as a successor of the same name has another, and its resource version.
    pub(crate) fn version(&self) -> Version {
        Version::new(format!("{}.{}", self.metadata.uid, self.metadata.resource_version))
    }

    /// What it holds.
    ///
    /// # Errors
    ///
    /// What is wrong with it, and what helps.
    pub(crate) fn bytes(&self) -> Result<Bytes, String> {
        if self.format != FORMAT {
            let found = self.format;
            return Err(format!("a record is of format {found}, this version knows {FORMAT}; use a newer Greenroom"));
        }
        let decoded = STANDARD.decode(&self.value);
        decoded.map(Bytes::from).map_err(|_| format!("the value of object {:?} is no base64", self.metadata.name))
    }
}

/// The object's name: a hash, as few keys are names that Kubernetes takes.
pub(crate) fn name(store: &str, key: &str) -> String {
    let hash = digest(&SHA256, key.as_bytes());
    let hex: String = hash.as_ref()[..NAME_HASH_BYTES].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{store}-{hex}")
}

/// The object's own id and resource version that `version` stands for; `None` if no API server has spelled it.
pub(crate) fn parts(version: &Version) -> Option<(&str, &str)> {
    let (uid, resource_version) = version.as_str().split_once('.')?;
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let spelled = Uuid::try_parse(uid).is_ok() && !resource_version.is_empty() && plain(resource_version);
    // Zero means "any" to an API server.
    (spelled && resource_version != "0").then_some((uid, resource_version))
}

pub(crate) const GROUP: &str = "greenroom.dev";
pub(crate) const PLURAL: &str = "greenroomrecords";

/// Tells the stores of one namespace apart.
pub(crate) const STORE_LABEL: &str = "greenroom.dev/store";

/// Of records and their names, as this version writes and reads them.
const FORMAT: u32 = 1;

/// Of a SHA-256, so that nobody finds two keys with one name.
const NAME_HASH_BYTES: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_objects_do_not_change_between_releases() {
        assert_eq!(name("prod", "node/a"), "prod-0c41013b5e1475ee40e31d8d313f0c79c903de04");
        let mut record = Record::new("prod", "node/a", b"one");
        record.salt = "salt".to_owned();
        let json = serde_json::to_string(&record).unwrap();
        let expected = concat!(
            r#"{"apiVersion":"greenroom.dev/v1","kind":"GreenroomRecord","metadata":{"name":"prod-0c41013b5e1475ee40e31d8d313f0c79c903de04","#,
            r#""labels":{"greenroom.dev/store":"prod"}},"format":1,"key":"node/a","salt":"salt","value":"b25l"}"#
        );
        assert_eq!(json, expected);
        assert_eq!(serde_json::from_str::<Record>(expected).unwrap().bytes().unwrap(), "one");
    }

    #[test]
    fn only_an_own_id_with_a_resource_version_is_a_version() {
        let version = Version::new("0b0ee8a5-4a02-4a50-b1a5-8d2b9f3f1d20.77");
        assert_eq!(parts(&version), Some(("0b0ee8a5-4a02-4a50-b1a5-8d2b9f3f1d20", "77")));
        for foreign in ["", "0", "77", ".77", "x.77", "0b0ee8a5-4a02-4a50-b1a5-8d2b9f3f1d20.0"] {
            assert_eq!(parts(&Version::new(foreign)), None, "{foreign:?}");
        }
    }
}

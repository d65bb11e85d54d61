//! Requests to the API server.

use std::path::PathBuf;
use std::time::Duration;

use greenroom_store::url::Parameters;
use greenroom_store::{Found, Result, StoreError, Version, Versioned};
use http::{Method, Request, header};
use http_body_util::BodyExt;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::VALUE_BYTES_MAX;
use crate::fault::Failure;
use crate::record::{GROUP, List, PLURAL, Record, STORE_LABEL, name, parts};

/// A namespace of a cluster, and the store in it.
pub(crate) struct Cluster {
    client: Client,
    namespace: String,
    /// The store among those of the namespace.
    store: String,
    /// The store, as its URL names it.
    pub(crate) name: String,
}

impl Cluster {
    pub(crate) async fn new(namespace: &str, parameters: &Parameters) -> Result<Self> {
        let name = format!("kube:{namespace}{parameters}");
        let bad = |reason: String| StoreError::Configuration { store: name.clone(), reason };
        parameters.check(&name, &["store", "kubeconfig", "context"])?;
        let store = parameters.find("store").unwrap_or(STORE_DEFAULT).to_owned();
        if !is_label(namespace) || !is_label(&store) || store.len() > STORE_BYTES_MAX {
            let rule = format!("small letters, digits and hyphens, a store's at most {STORE_BYTES_MAX}");
            return Err(bad(format!("the names of its namespace and store are not plain; use {rule}")));
        }
        let mut config = config(parameters.path("kubeconfig"), parameters.find("context")).await.map_err(bad)?;
        // A write that the client repeats would be refused by its own success.
        config.default_retry = false;
        if greenroom_store::url::is_on_this_machine(&config.cluster_url.to_string()) {
            // The variable of a proxy is for other machines.
            config.proxy_url = None;
        }
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        let client = Client::try_from(config).map_err(|error| bad(error.to_string()))?;
        Ok(Self { client, namespace: namespace.to_owned(), store, name })
    }

    pub(crate) async fn read(&self, key: &str) -> Result<Option<Versioned>> {
        let found = self.fetch(key).await.map_err(|failure| failure.of_read(&self.name))?;
        let Some(found) = found else { return Ok(None) };
        Ok(Some(Versioned { value: self.value(&found, key)?, version: found.version() }))
    }

    /// Writes, if `expected` is there, or nothing.
    pub(crate) async fn put(&self, key: &str, expected: Option<Version>, value: &[u8]) -> Result<Version> {
        let mut record = Record::new(&self.store, key, value);
        let (method, object) = match &expected {
            None => (Method::POST, ""),
            Some(version) => {
                let Some((uid, resource_version)) = parts(version) else { return self.conflict(key).await };
                (record.metadata.uid, record.metadata.resource_version) = (uid.to_owned(), resource_version.to_owned());
                (Method::PUT, record.metadata.name.as_str())
            }
        };
        let body = serde_json::to_vec(&record).expect("it is made of texts");
        let failure = match self.request::<Record>(method, object, "", body, &record.metadata.name).await {
            Ok(written) => return Ok(written.version()),
            Err(failure) => failure,
        };
        match failure {
            // Someone between may have sent the write twice, and the second was refused by the first.
            Failure::Condition | Failure::Absent => match self.fetch(key).await {
                Ok(Some(found)) if found.salt == record.salt => Ok(found.version()),
                found => Err(refused(key, found)),
            },
            Failure::TooLarge => {
                let (key, store, bytes) = (key.to_owned(), self.name.clone(), value.len());
                let bytes_max = VALUE_BYTES_MAX.min(bytes.saturating_sub(1));
                Err(StoreError::TooLarge { key, store, bytes, bytes_max })
            }
            Failure::Lost(reason) => match self.fetch(key).await {
                Ok(Some(found)) if found.salt == record.salt => Ok(found.version()),
                _ => Err(StoreError::Unknown { key: key.to_owned(), reason }),
            },
            other => Err(other.of_read(&self.name)),
        }
    }

    pub(crate) async fn delete(&self, key: &str, expected: Version) -> Result<()> {
        let Some((uid, resource_version)) = parts(&expected) else { return self.conflict(key).await };
        let body = json!({
            "apiVersion": "v1", "kind": "DeleteOptions",
            "preconditions": { "uid": uid, "resourceVersion": resource_version },
        });
        let object = name(&self.store, key);
        match self.request::<serde_json::Value>(Method::DELETE, &object, "", body.to_string().into(), &object).await {
            Ok(_) => Ok(()),
            Err(Failure::Condition | Failure::Absent) => self.conflict(key).await,
            Err(Failure::Lost(reason)) => Err(StoreError::Unknown { key: key.to_owned(), reason }),
            Err(other) => Err(other.of_read(&self.name)),
        }
    }

    /// Everything in the store whose key `wanted` wants, in the order of keys. One snapshot, not older than the call.
    pub(crate) async fn list(&self, wanted: impl Fn(&str) -> bool) -> Result<Vec<Record>> {
        let mut restarts = 0;
        let mut found = loop {
            match self.list_once(&wanted).await {
                Err(Failure::Expired) if restarts < LIST_RESTARTS_MAX => restarts += 1,
                listed => break listed.map_err(|failure| failure.of_read(&self.name))?,
            }
        };
        found.sort_by(|one, other| one.key.cmp(&other.key));
        Ok(found)
    }

    async fn list_once(&self, wanted: &impl Fn(&str) -> bool) -> Result<Vec<Record>, Failure> {
        let (mut found, mut more) = (Vec::new(), String::new());
        loop {
            // Without a resource version the server answers as of now.
            let query = format!("?labelSelector={STORE_LABEL}%3D{}&limit={LIST_LEN}&continue={more}", self.store);
            let list: List = self.read_request("", &query).await?;
            found.extend(list.items.into_iter().filter(|record| wanted(&record.key)));
            more = list.metadata.more.replace('+', "%2B").replace('=', "%3D");
            if more.is_empty() {
                return Ok(found);
            }
        }
    }

    /// The value of `record`, which was looked for under `key`.
    pub(crate) fn value(&self, record: &Record, key: &str) -> Result<bytes::Bytes> {
        let format = |reason: String| StoreError::Format { store: self.name.clone(), reason };
        if record.key != key {
            return Err(format(format!("the object of key {key:?} says that it is {:?}'s", record.key)));
        }
        record.bytes().map_err(format)
    }

    async fn fetch(&self, key: &str) -> Result<Option<Record>, Failure> {
        match self.read_request(&name(&self.store, key), "").await {
            Err(Failure::Absent) => Ok(None),
            found => found.map(Some),
        }
    }

    /// Why a condition did not hold.
    async fn conflict<T>(&self, key: &str) -> Result<T> {
        Err(refused(key, self.fetch(key).await))
    }

    /// A request that changes nothing is made again if its connection breaks: the server may have been replaced.
    async fn read_request<T: DeserializeOwned>(&self, object: &str, query: &str) -> Result<T, Failure> {
        match self.request(Method::GET, object, query, Vec::new(), object).await {
            Err(Failure::Lost(_)) => self.request(Method::GET, object, query, Vec::new(), object).await,
            answer => answer,
        }
    }

    async fn request<T: DeserializeOwned>(
        &self,
        method: Method,
        object: &str,
        query: &str,
        body: Vec<u8>,
        about: &str,
    ) -> Result<T, Failure> {
        let slash = if object.is_empty() { "" } else { "/" };
        let path = format!("/apis/{GROUP}/v1/namespaces/{}/{PLURAL}{slash}{object}{query}", self.namespace);
        let request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, "application/json");
        let request = request.body(Body::from(body)).expect("its parts are plain");
        let failed = |error: kube::Error| Failure::of_error(&error, &self.name);
        let answer = self.client.send(request).await.map_err(failed)?;
        let status = answer.status();
        let body = answer.into_body().collect().await.map_err(failed)?.to_bytes();
        if !status.is_success() {
            return Err(Failure::of_answer(status, &body, about, &self.namespace, &self.name));
        }
        serde_json::from_slice(&body).map_err(|error| Failure::Lost(format!("its answer cannot be read: {error}")))
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What `file` says, or the environment (`KUBECONFIG`, `~/.kube/config`), or the pod that this process runs in.
async fn config(file: Option<PathBuf>, context: Option<&str>) -> Result<Config, String> {
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    match file {
        Some(file) => {
            let said = Kubeconfig::read_from(&file).map_err(|error| format!("{error}; see to {}", file.display()))?;
            Config::from_custom_kubeconfig(said, &options).await.map_err(|error| error.to_string())
        }
        None if context.is_some() => Config::from_kubeconfig(&options).await.map_err(|error| error.to_string()),
        None => Config::infer().await.map_err(|error| format!("{error}; name a file by kubeconfig=FILE")),
    }
}

/// That the condition of a write of `key` was not met by what was `found` then.
fn refused(key: &str, found: Result<Option<Record>, Failure>) -> StoreError {
    let found = match found {
        Ok(Some(found)) => Found::Version(found.version()),
        Ok(None) => Found::Absent,
        Err(_) => Found::Untold,
    };
    StoreError::Conflict { key: key.to_owned(), found }
}

/// Whether Kubernetes takes `text` as a name of the plainest sort.
fn is_label(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&text.len()) && text.bytes().all(plain) && !text.starts_with('-') && !text.ends_with('-')
}

const STORE_DEFAULT: &str = "greenroom";

/// Room for a hash in an object's name, and for the store in a label.
const STORE_BYTES_MAX: usize = 40;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Objects in one answer to a list.
const LIST_LEN: usize = 200;

const LIST_RESTARTS_MAX: usize = 3;

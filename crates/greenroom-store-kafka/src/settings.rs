//! What the URL of a journal says.

use greenroom_store::url::Remote;
use greenroom_store::{Result, StoreError};

/// Where a journal is, and how its topics are made if they are not there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Settings {
    /// The URL, for messages.
    pub(crate) name: String,
    /// `host:port,host:port`.
    pub(crate) brokers: String,
    /// What the names of the topics begin with.
    pub(crate) prefix: String,
    /// Partitions of each topic; 16.
    pub(crate) partitions: i32,
    /// Replicas of each partition; what the brokers say by default.
    pub(crate) replicas: i32,
    /// Bytes of commits behind which a checkpoint is written; 32 MiB.
    pub(crate) checkpoint_bytes: u64,
}

impl Settings {
    /// # Errors
    /// [`StoreError::Configuration`].
    pub(crate) fn of(remote: &Remote) -> Result<Self> {
        remote.check_parameters(&["partitions", "replicas", "checkpoint_kib"])?;
        Self::read(remote)
    }

    /// What the URL of an outlet says: the prefix is the topic.
    ///
    /// # Errors
    /// [`StoreError::Configuration`].
    pub(crate) fn of_topic(remote: &Remote) -> Result<Self> {
        remote.check_parameters(&[])?;
        if remote.path.is_empty() {
            let reason = "it names no topic; write \"kafka://host/topic\"".to_owned();
            return Err(StoreError::Configuration { store: remote.to_string(), reason });
        }
        Self::read(remote)
    }

    fn read(remote: &Remote) -> Result<Self> {
        let wrong = |reason: String| StoreError::Configuration { store: remote.to_string(), reason };
        if remote.tls == Some(true) || remote.user.is_some() {
            return Err(wrong(
                "TLS and users of Kafka are not built in; let the brokers listen without them on a network of their own"
                    .to_owned(),
            ));
        }
        let number = |name: &str, default: u64, most: u64| match remote.parameters.find(name) {
            None => Ok(default),
            Some(text) => text
                .parse::<u64>()
                .ok()
                .filter(|number| (1..=most).contains(number))
                .ok_or_else(|| wrong(format!("`{name}={text}` is no number from 1 to {most}"))),
        };
        let prefix = match remote.path.as_str() {
            "" => "greenroom".to_owned(),
            path => path.to_owned(),
        };
        let legal = |char: char| char.is_ascii_alphanumeric() || matches!(char, '.' | '_' | '-');
        if prefix.len() > PREFIX_MAX || !prefix.chars().all(legal) {
            return Err(wrong(format!(
                "topics cannot begin with {prefix:?}; use at most {PREFIX_MAX} letters, digits, `.`, `_` and `-`"
            )));
        }
        let replicas = match remote.parameters.find("replicas") {
            None => -1,
            Some(_) => number("replicas", 1, 100)? as i32,
        };
        let brokers: Vec<String> = remote.hosts.iter().map(ToString::to_string).collect();
        Ok(Self {
            name: remote.to_string(),
            brokers: brokers.join(","),
            prefix,
            partitions: number("partitions", 16, 1000)? as i32,
            replicas,
            checkpoint_bytes: number("checkpoint_kib", 32 << 10, 1 << 22)? << 10,
        })
    }

    /// Commits, in their order, until a checkpoint has them.
    pub(crate) fn commits(&self) -> String {
        format!("{}-commits", self.prefix)
    }

    /// Checkpoints of what there is, of which Kafka keeps the last record of each key.
    pub(crate) fn states(&self) -> String {
        format!("{}-states", self.prefix)
    }
}

const PREFIX_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use greenroom_store::url::StoreUrl;

    use super::*;

    fn settings(url: &str) -> Result<Settings> {
        let Ok(StoreUrl::Kafka(remote)) = url.parse() else { panic!("{url:?} is one") };
        Settings::of(&remote)
    }

    #[test]
    fn a_url_names_brokers_and_topics() {
        let known = settings("kafka://a,b:9093/bank?partitions=4&replicas=3").unwrap();
        assert_eq!((known.brokers.as_str(), known.partitions, known.replicas), ("a:9092,b:9093", 4, 3));
        assert_eq!((known.commits(), known.states()), ("bank-commits".to_owned(), "bank-states".to_owned()));
        assert_eq!(settings("kafka://a").unwrap().prefix, "greenroom");
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        for (url, word) in [
            ("kafka://a/x?partitions=0", "partitions=0"),
            ("kafka://a/x/y", "x/y"),
            ("kafka://ada@a", "users"),
            ("kafka://a?tls=on", "TLS"),
            ("kafka://a?acks=1", "acks"),
        ] {
            let error = settings(url).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}

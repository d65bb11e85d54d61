//! Which store a configuration names: `memory:`, `sqlite:/var/lib/greenroom/cluster.db`, `postgres://db/greenroom`.
//!
//! An engine behind a network is named by a [`Remote`]; its password stands in a file (`?password_file=PATH`), in the
//! environment (`?password_env=NAME`) or, for tests, in the URL. It is never shown: neither by `Debug` and `Display` nor
//! by the errors of this module.

mod clear;
mod percent;
mod remote;
mod secret;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use remote::Engine;

pub use clear::{is_in_the_clear, is_on_this_machine};
pub use remote::{Host, Parameters, Remote};
pub use secret::{Password, Secret, redact};

/// A store, as configurations and command lines name it. Parsing opens nothing.
///
/// ```
/// use greenroom_store::url::StoreUrl;
///
/// assert_eq!("memory:".parse(), Ok(StoreUrl::Memory));
/// assert_eq!("sqlite:///tmp/a.db".parse(), Ok(StoreUrl::Sqlite { path: "/tmp/a.db".into() }));
/// let error = "sqlight:/tmp/a.db".parse::<StoreUrl>().unwrap_err();
/// assert!(error.to_string().contains("did you mean \"sqlite\""));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum StoreUrl {
    /// `memory:`: in this process, gone with it.
    Memory,
    /// `sqlite:PATH` or `sqlite://PATH`: a file on this machine, which several processes may share.
    Sqlite {
        /// The file, as written: no escapes; a relative one is relative to the working directory.
        path: PathBuf,
    },
    /// `postgres://user@host,host/database` or `postgresql://…`.
    Postgres(Remote),
    /// `redis://user@host/number`, or `rediss://…` with TLS. Valkey too.
    Redis(Remote),
    /// `etcd://user@host,host,host/prefix`.
    Etcd(Remote),
    /// `kafka://host,host/prefix?partitions=16&replicas=3`.
    Kafka(Remote),
    /// `s3://bucket/prefix?endpoint=https://host&region=…`: the bucket is the one host.
    S3(Remote),
    /// `kube:namespace?name=value&…`: the API server of a Kubernetes cluster.
    Kube {
        /// Where the objects are.
        namespace: String,
        /// What stands behind the `?`.
        parameters: Parameters,
    },
}

impl FromStr for StoreUrl {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let Some((scheme, rest)) = text.split_once(':') else {
            return Err(match example(text) {
                Some(example) => Error::Incomplete { text: text.to_owned(), example },
                None => Error::NoScheme { text: text.to_owned() },
            });
        };
        let incomplete = |example| Error::Incomplete { text: redact(text), example };
        let path = rest.strip_prefix("//").unwrap_or(rest);
        match scheme {
            "memory" if path.is_empty() => Ok(Self::Memory),
            "memory" => Err(Error::Excess { text: text.to_owned() }),
            "sqlite" if path.is_empty() => Err(incomplete(SQLITE)),
            "sqlite" => Ok(Self::Sqlite { path: path.into() }),
            "postgres" | "postgresql" => Remote::parse(&POSTGRES, "postgres", text, rest).map(Self::Postgres),
            "redis" => Remote::parse(&REDIS, "redis", text, rest).map(Self::Redis),
            "rediss" => Remote::parse(&REDIS, "rediss", text, rest).map(Self::Redis),
            "etcd" => Remote::parse(&ETCD, "etcd", text, rest).map(Self::Etcd),
            "kafka" => Remote::parse(&KAFKA, "kafka", text, rest).map(Self::Kafka),
            "s3" => Remote::parse(&S3, "s3", text, rest).map(Self::S3),
            "kube" => {
                let (namespace, query) = path.split_once('?').unwrap_or((path, ""));
                let malformed = |reason| Error::Malformed { text: redact(text), reason };
                let parameters = Parameters::parse(query).map_err(malformed)?;
                if namespace.is_empty() {
                    return Err(incomplete(KUBE));
                }
                Ok(Self::Kube { namespace: namespace.to_owned(), parameters })
            }
            _ => Err(Error::UnknownScheme { scheme: scheme.to_owned(), nearest: nearest(scheme) }),
        }
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory:"),
            Self::Sqlite { path } => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(remote)
            | Self::Redis(remote)
            | Self::Etcd(remote)
            | Self::Kafka(remote)
            | Self::S3(remote) => remote.fmt(f),
            Self::Kube { namespace, parameters } => write!(f, "kube:{namespace}{parameters}"),
        }
    }
}

/// A text that names no store; the caller's configuration is at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It does not start with a scheme; most likely a bare path.
    #[error("store {text:?} does not say which engine; for a file write \"sqlite:{text}\"")]
    NoScheme {
        /// The text.
        text: String,
    },
    /// The scheme is right, the rest is missing.
    #[error("store {text:?} is incomplete; write {example:?}")]
    Incomplete {
        /// The text.
        text: String,
        /// What it may look like.
        example: &'static str,
    },
    /// The scheme is right, the rest is not.
    #[error("store {text:?} cannot be understood: {reason}")]
    Malformed {
        /// The text, without what may be a password.
        text: String,
        /// What is wrong and what helps.
        reason: String,
    },
    /// The in-memory store has no name or path.
    #[error("store {text:?} says more than \"memory:\", which is all there is to say: it is never shared or kept")]
    Excess {
        /// The text.
        text: String,
    },
    /// No provider has this scheme.
    #[error("no store provider is called {scheme:?}{}; there are: {}", Hint(*.nearest), SCHEMES.join(", "))]
    UnknownScheme {
        /// The scheme.
        scheme: String,
        /// The scheme that it resembles, if any.
        nearest: Option<&'static str>,
    },
}

struct Hint(Option<&'static str>);

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |nearest| write!(f, "; did you mean {nearest:?}"))
    }
}

/// What a URL of this scheme may look like.
fn example(scheme: &str) -> Option<&'static str> {
    match scheme {
        "memory" => Some("memory:"),
        "sqlite" => Some(SQLITE),
        "kube" => Some(KUBE),
        _ => [POSTGRES, REDIS, ETCD, KAFKA, S3]
            .iter()
            .find(|engine| engine.schemes.contains(&scheme))
            .map(|known| known.example),
    }
}

fn nearest(scheme: &str) -> Option<&'static str> {
    let lower = scheme.to_lowercase();
    let best = SCHEMES.into_iter().min_by_key(|known| distance(&lower, known))?;
    let alike = best.get(..3).is_some_and(|start| lower.starts_with(start));
    let near = distance(&lower, best) <= NEAR_MAX || alike;
    near.then_some(best)
}

/// Edit distance (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

const SCHEMES: [&str; 10] =
    ["memory", "sqlite", "postgres", "postgresql", "redis", "rediss", "etcd", "kafka", "s3", "kube"];

const SQLITE: &str = "sqlite:/var/lib/greenroom/cluster.db";
const KUBE: &str = "kube:default";

const POSTGRES: Engine = Engine {
    schemes: &["postgres", "postgresql"],
    port: 5432,
    several_hosts: true,
    example: "postgres://user@host/database?password_file=/path",
};

const REDIS: Engine =
    Engine { schemes: &["redis", "rediss"], port: 6379, several_hosts: false, example: "redis://host/0" };

const ETCD: Engine =
    Engine { schemes: &["etcd"], port: 2379, several_hosts: true, example: "etcd://host1,host2,host3/greenroom" };

const KAFKA: Engine =
    Engine { schemes: &["kafka"], port: 9092, several_hosts: true, example: "kafka://host1,host2,host3/greenroom" };

const S3: Engine =
    Engine { schemes: &["s3"], port: 0, several_hosts: false, example: "s3://bucket/prefix?region=eu-central-1" };

/// Edits within which an unknown scheme is taken for a slip.
const NEAR_MAX: usize = 2;

#[cfg(test)]
mod tests;

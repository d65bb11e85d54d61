//! Which store a configuration names: `memory:`, `sqlite:/var/lib/greenroom/cluster.db`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

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
}

impl FromStr for StoreUrl {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let Some((scheme, rest)) = text.split_once(':') else {
            return Err(match text {
                "memory" | "sqlite" => Error::Incomplete { text: text.to_owned(), example: example(text) },
                _ => Error::NoScheme { text: text.to_owned() },
            });
        };
        let rest = rest.strip_prefix("//").unwrap_or(rest);
        match scheme {
            "memory" if rest.is_empty() => Ok(Self::Memory),
            "memory" => Err(Error::Excess { text: text.to_owned() }),
            "sqlite" if rest.is_empty() => Err(Error::Incomplete { text: text.to_owned(), example: example(scheme) }),
            "sqlite" => Ok(Self::Sqlite { path: rest.into() }),
            _ => Err(Error::UnknownScheme { scheme: scheme.to_owned(), nearest: nearest(scheme) }),
        }
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory:"),
            Self::Sqlite { path } => write!(f, "sqlite:{}", path.display()),
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

fn example(scheme: &str) -> &'static str {
    if scheme == "memory" { "memory:" } else { "sqlite:/var/lib/greenroom/cluster.db" }
}

fn nearest(scheme: &str) -> Option<&'static str> {
    let lower = scheme.to_lowercase();
    let best = SCHEMES.into_iter().min_by_key(|known| distance(&lower, known))?;
    let near = distance(&lower, best) <= NEAR_MAX || (lower.len() >= 3 && lower.starts_with(&best[..3]));
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

const SCHEMES: [&str; 2] = ["memory", "sqlite"];

/// Edits within which an unknown scheme is taken for a slip.
const NEAR_MAX: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        text.parse::<StoreUrl>().unwrap_err().to_string()
    }

    #[test]
    fn a_url_is_parsed_and_shown() {
        let sqlite = |path: &str| Ok(StoreUrl::Sqlite { path: path.into() });
        assert_eq!("memory://".parse(), Ok(StoreUrl::Memory));
        assert_eq!("sqlite:/a/b.db".parse(), sqlite("/a/b.db"));
        assert_eq!("sqlite:///a/b c%20.db".parse(), sqlite("/a/b c%20.db"));
        assert_eq!("sqlite:b.db".parse(), sqlite("b.db"));
        assert_eq!("sqlite://b.db".parse(), sqlite("b.db"));
        for text in ["memory:", "sqlite:/a/b.db", "sqlite:b.db"] {
            assert_eq!(text.parse::<StoreUrl>().map(|url| url.to_string()).as_deref(), Ok(text));
        }
    }

    #[test]
    fn an_unknown_scheme_is_answered_with_the_near_name_and_all_names() {
        assert!(message("sqlit:/a").contains("did you mean \"sqlite\"; there are: memory, sqlite"));
        assert!(message("SQLite3:/a").contains("did you mean \"sqlite\""));
        assert!(message("mem:").contains("did you mean \"memory\""));
        assert!(!message("postgres://host/db").contains("did you mean"));
    }

    #[test]
    fn what_is_missing_or_too_much_is_named_with_the_remedy() {
        assert!(message("/var/a.db").contains("write \"sqlite:/var/a.db\""));
        assert!(message("sqlite:").contains("incomplete"));
        assert!(message("memory").contains("write \"memory:\""));
        assert!(message("memory:shared").contains("never shared"));
    }
}

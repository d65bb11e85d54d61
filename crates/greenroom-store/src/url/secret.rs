//! Passwords: where they come from, and that nobody sees them.

use std::fmt;
use std::path::PathBuf;

/// Where a password comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Password {
    /// The URL names none.
    #[default]
    None,
    /// It stands in the URL itself, `user:password@host`: for tests, as command lines and files are read by others.
    Inline(Secret),
    /// `?password_file=PATH`: the file's first line.
    File(PathBuf),
    /// `?password_env=NAME`: the environment variable.
    Env(String),
}

impl Password {
    /// The password as it is now: a file is read again each time, so that a new one is used by the next connection.
    /// The error says which source failed and what helps.
    pub(super) fn read(&self) -> Result<Option<Secret>, String> {
        match self {
            Self::None => Ok(None),
            Self::Inline(secret) => Ok(Some(secret.clone())),
            Self::File(path) => {
                let text = std::fs::read_to_string(path).map_err(|error| {
                    format!("its password file {} cannot be read ({error}); let this user read it", path.display())
                })?;
                match text.lines().next().filter(|line| !line.is_empty()) {
                    Some(line) => Ok(Some(Secret::new(line))),
                    None => Err(format!("the first line of its password file {} is empty", path.display())),
                }
            }
            Self::Env(name) => match std::env::var(name) {
                Ok(text) => Ok(Some(Secret::new(text))),
                Err(_) => Err(format!("the environment variable {name} for its password is not set; set it")),
            },
        }
    }
}

/// A text that is neither displayed nor debugged.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Secret(String);

impl Secret {
    /// Hides `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the engine's client alone.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

/// `text`, which may be no URL at all, without what may be a password: for errors about it.
///
/// ```
/// use greenroom_store::url::redact;
///
/// assert_eq!(redact("postgres://ada:lace@db/x?password=y&a=b"), "postgres://ada:***@db/x?password=***&a=b");
/// ```
pub fn redact(text: &str) -> String {
    let mut shown = text.to_owned();
    let from = shown.find("://").map_or(0, |at| at + 3);
    // The last `@`: a password whose slashes nobody has escaped is hidden too.
    if let Some(end) = shown.rfind('@').filter(|end| *end >= from)
        && let Some(colon) = shown[from..end].find(':')
    {
        shown.replace_range(from + colon + 1..end, HIDDEN);
    }
    let Some((before, query)) = shown.split_once('?') else { return shown };
    let hidden = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, _)) if is_secret(name) => format!("{name}={HIDDEN}"),
        _ => pair.to_owned(),
    });
    format!("{before}?{}", hidden.collect::<Vec<_>>().join("&"))
}

/// Whether a parameter of this name would hold a secret, rather than say where it is.
pub(super) fn is_secret(name: &str) -> bool {
    let name = name.to_lowercase();
    let elsewhere = ["_file", "_env"].iter().any(|end| name.ends_with(end));
    !elsewhere && ["password", "passwd", "secret", "token"].iter().any(|part| name.contains(part))
}

const HIDDEN: &str = "***";

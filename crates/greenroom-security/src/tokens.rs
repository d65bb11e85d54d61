//! Static bearer tokens, from a file.
//!
//! ```toml
//! [[token]]
//! name = "ada"
//! roles = ["user"]
//! sha256 = "…64 hexadecimal digits…"     # or, for trying things out, token = "…"
//! ```
//!
//! Only digests are kept, and a token is compared with each of them in constant time.

use std::path::Path;

use greenroom_store::url::Secret;
use ring::digest;
use serde::Deserialize;
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

use crate::error::Error;
use crate::principal::{NAME_LEN_MAX, Principal};

/// The tokens of a file.
#[derive(Default)]
pub struct Tokens(Vec<([u8; 32], Principal)>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    token: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    #[serde(default)]
    roles: Vec<String>,
    sha256: Option<String>,
    token: Option<String>,
}

impl Tokens {
    /// Makes sense of the file at `path`. Errors name an entry's number and name, never what is in it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(path: &Path, content: &[u8]) -> Result<Self, Error> {
        let unusable = |reason: String| Error::Unusable { what: WHAT, path: path.to_owned(), reason };
        let text = std::str::from_utf8(content).map_err(|_| unusable("it is not UTF-8".to_owned()))?;
        // The parser's own error would show the line, and so a token.
        let file: File = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
            unusable(format!("line {line} does not fit; entries are [[token]] with name, roles, and sha256 or token"))
        })?;
        if file.token.len() > TOKENS_MAX {
            return Err(unusable(format!("it has more than {TOKENS_MAX} tokens; use JWTs for so many")));
        }
        let mut tokens = Vec::new();
        for (index, Entry { name, roles, sha256, token }) in file.token.into_iter().enumerate() {
            let wrong = |reason: &str| unusable(format!("token {} ({name:?}): {reason}", index + 1));
            if name.len() > NAME_LEN_MAX {
                return Err(wrong("its name is longer than 256 bytes"));
            }
            let digest = match (sha256, token.map(Secret::new)) {
                (Some(hex), None) => unhex(&hex).ok_or_else(|| wrong("sha256 is not 64 hexadecimal digits"))?,
                (None, Some(token)) if token.expose().len() < TOKEN_LEN_MIN => {
                    return Err(wrong(
                        "it is shorter than 16 bytes, and could be guessed; `greenroom token` makes good ones",
                    ));
                }
                (None, Some(token)) => digest_of(&token),
                _ => return Err(wrong("one of sha256 and token is wanted")),
            };
            tokens.push((digest, Principal::new(&name, roles.iter().map(String::as_str))));
        }
        Ok(Self(tokens))
    }

    /// Whose token this is.
    pub fn find(&self, token: &Secret) -> Option<&Principal> {
        let presented = digest_of(token);
        // All are looked at, whichever it is: time tells nothing.
        let mut found = u32::MAX;
        for (index, (digest, _)) in self.0.iter().enumerate() {
            let same: Choice = digest.ct_eq(&presented);
            found = u32::conditional_select(&found, &(index as u32), same);
        }
        self.0.get(found as usize).map(|(_, principal)| principal)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// What a file keeps of a token: its SHA-256. Tokens are random, so that nothing slower is called for.
pub fn digest_of(token: &Secret) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest::digest(&digest::SHA256, token.expose().as_bytes()).as_ref());
    bytes
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    let digits = digits.filter(|digits| digits.len() == 64)?;
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = (pair[0] * 16 + pair[1]) as u8;
    }
    Some(bytes)
}

/// What the file is, for errors about it.
pub(crate) const WHAT: &str = "the file of tokens (auth.tokens)";
/// Tokens in one file: each request looks at all of them.
const TOKENS_MAX: usize = 1024;
/// Shortest plain token, in bytes.
const TOKEN_LEN_MIN: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Tokens, Error> {
        Tokens::read(Path::new("tokens.toml"), text.as_bytes())
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn a_token_is_its_owners_and_nobody_elses() {
        let digest = hex(&digest_of(&Secret::new("0123456789abcdef")));
        let tokens = read(&format!(
            "[[token]]\nname = \"ada\"\nroles = [\"user\"]\nsha256 = \"{digest}\"\n[[token]]\nname = \"bob\"\ntoken = \"fedcba9876543210\"\n"
        ))
        .unwrap();
        let name = |token: &str| tokens.find(&Secret::new(token)).map(|who| who.name().to_owned());
        assert_eq!(name("0123456789abcdef").as_deref(), Some("ada"));
        assert_eq!(name("fedcba9876543210").as_deref(), Some("bob"));
        for wrong in ["", "0123456789abcde", "0123456789abcdef ", &digest] {
            assert_eq!(name(wrong), None, "{wrong}");
        }
        assert!(read("").unwrap().find(&Secret::new("")).is_none());
    }

    #[test]
    fn an_error_names_the_entry_and_shows_no_token() {
        for (text, said) in [
            ("[[token]]\nname = \"ada\"\ntoken = \"hunter2\"\n", "token 1 (\"ada\"): it is shorter"),
            ("[[token]]\nname = \"ada\"\nsha256 = \"hunter2\"\n", "64 hexadecimal digits"),
            ("[[token]]\nname = \"ada\"\n", "one of sha256 and token"),
            (
                "[[token]]\nname = \"ada\"\ntoken = \"hunter2hunter2hunter2\"\nsha256 = \"aa\"\n",
                "one of sha256 and token",
            ),
            ("[[token]]\nname = \"ada\"\ntokn = \"hunter2\"\n", "line 3"),
            ("\n\ntoken = \"hunter2\n", "line 3"),
            ("hunter2", "line 1"),
        ] {
            let error = read(text).err().unwrap();
            assert!(error.to_string().contains(said), "{error}");
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
        }
    }

    #[test]
    fn whatever_is_in_the_file_it_is_an_error_or_tokens() {
        for noise in
            [&b"\xff\xfe"[..], b"[[token]]\nname = 1", b"[[[", b"token = 3", b"[[token]]\nname=\"\xc3\xa9\"\ntoken=3"]
        {
            assert!(Tokens::read(Path::new("x"), noise).is_err());
        }
    }
}

//! Files of certificates: keys for their owner alone, and nothing overwritten unasked.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use greenroom_security::issue::Issued;

/// A folder of certificates.
#[derive(Clone)]
pub(super) struct Folder(PathBuf);

/// What to do about files that are there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Keep,
    Replace,
}

impl Mode {
    pub(super) fn of(force: bool) -> Self {
        if force { Self::Replace } else { Self::Keep }
    }
}

impl From<&PathBuf> for Folder {
    fn from(path: &PathBuf) -> Self {
        Self(path.clone())
    }
}

impl Folder {
    /// How a file in it is shown, ready for a command line.
    pub(super) fn shown(&self, file: &str) -> String {
        let path = if file.is_empty() { self.0.clone() } else { self.0.join(file) };
        let path = path.display().to_string();
        if path.contains(|c: char| c.is_whitespace() || "'\"$&;|<>()*".contains(c)) {
            format!("'{}'", path.replace('\'', r"'\''"))
        } else {
            path
        }
    }

    /// The folder called `name` inside of this one.
    pub(super) fn inside(&self, name: &str) -> Result<Self, String> {
        let plain = !name.is_empty() && !name.contains(['/', '\0']) && ![".", ".."].contains(&name);
        if plain { Ok(Self(self.0.join(name))) } else { Err(format!("{name:?} cannot be the name of a folder")) }
    }

    pub(super) fn create(&self) -> Result<(), String> {
        fs::create_dir_all(&self.0).map_err(|error| format!("cannot make the folder {}: {error}", self.shown("")))
    }

    pub(super) fn path(&self) -> &PathBuf {
        &self.0
    }

    pub(super) fn has(&self, file: &str) -> bool {
        self.0.join(file).exists()
    }

    pub(super) fn read(&self, file: &str) -> Result<String, String> {
        fs::read_to_string(self.0.join(file)).map_err(|error| format!("cannot read {}: {error}", self.shown(file)))
    }

    /// Writes a certificate and its key: the key first, so that whoever watches the certificate finds both.
    pub(super) fn write_pair(&self, stem: &str, issued: &Issued, mode: Mode) -> Result<(), String> {
        let (cert, key) = (format!("{stem}.pem"), format!("{stem}.key"));
        for file in [&cert, &key] {
            if mode == Mode::Keep && self.has(file) {
                return Err(format!("{} is there already; --force replaces it", self.shown(file)));
            }
        }
        self.write(&key, &issued.key, mode, 0o600)?;
        self.write(&cert, &issued.cert, mode, 0o644)
    }

    /// Writes a file beside its place and moves it there: nobody reads half of it, and it never is more open than
    /// `permissions`.
    pub(super) fn write(&self, file: &str, text: &str, mode: Mode, permissions: u32) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("cannot write {}: {error}", self.shown(file));
        if mode == Mode::Keep && self.has(file) {
            return Err(format!("{} is there already; --force replaces it", self.shown(file)));
        }
        let new = self.0.join(format!(".{file}.new"));
        match fs::remove_file(&new) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let mut opened =
            OpenOptions::new().write(true).create_new(true).mode(permissions).open(&new).map_err(failed)?;
        opened.write_all(text.as_bytes()).and_then(|()| opened.sync_all()).map_err(failed)?;
        fs::rename(&new, self.0.join(file)).map_err(failed)
    }
}

//! Files that are read again when they change.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use ring::digest;

use crate::error::Error;

/// What was made of some files, as they last were when they could be used.
pub struct Watched<T> {
    sources: Vec<Source>,
    make: Make<T>,
    /// The digest of the files that were last looked at, usable or not.
    seen: Mutex<[u8; 32]>,
    current: RwLock<Arc<T>>,
}

type Make<T> = Box<dyn Fn(&[Vec<u8>]) -> Result<T, Error> + Send + Sync>;

/// A file, and what it should hold.
#[derive(Clone, Debug)]
pub struct Source {
    /// What it should hold, for people: `the node's certificate`.
    pub what: &'static str,
    /// The file.
    pub path: PathBuf,
}

/// What a look at the files has shown.
#[derive(Debug)]
pub enum Look {
    /// Nothing new.
    Unchanged,
    /// They have changed, and what was made of them is in force.
    Renewed,
    /// They have changed and cannot be used: what was in force stays. Said once a change.
    Kept(Error),
}

impl<T> Watched<T> {
    /// Reads the files, and lets `make` make something of their contents, in the order of `sources`.
    ///
    /// # Errors
    /// Why a file cannot be used.
    pub fn open(
        sources: Vec<Source>,
        make: impl Fn(&[Vec<u8>]) -> Result<T, Error> + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let (seen, contents) = read(&sources);
        let current = make(&contents?)?;
        Ok(Self { sources, make: Box::new(make), seen: Mutex::new(seen), current: RwLock::new(Arc::new(current)) })
    }

    /// What is in force.
    pub fn current(&self) -> Arc<T> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Looks at the files, and uses them if they have changed.
    pub fn look(&self) -> Look {
        let (digest, contents) = read(&self.sources);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if *seen == digest {
            return Look::Unchanged;
        }
        *seen = digest;
        match contents.and_then(|contents| (self.make)(&contents)) {
            Ok(new) => {
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(new);
                Look::Renewed
            }
            Err(error) => Look::Kept(error),
        }
    }
}

/// The files' contents, and a digest of them, or of why they cannot be read.
fn read(sources: &[Source]) -> ([u8; 32], Result<Vec<Vec<u8>>, Error>) {
    let contents: Result<Vec<Vec<u8>>, Error> = sources.iter().map(read_one).collect();
    let mut context = digest::Context::new(&digest::SHA256);
    match &contents {
        Ok(contents) => {
            for content in contents {
                context.update(&(content.len() as u64).to_le_bytes());
                context.update(content);
            }
        }
        Err(error) => context.update(error.to_string().as_bytes()),
    }
    let mut digest = [0; 32];
    digest.copy_from_slice(context.finish().as_ref());
    (digest, contents)
}

fn read_one(source: &Source) -> Result<Vec<u8>, Error> {
    let unreadable = |reason: String| Error::Unreadable { what: source.what, path: source.path.clone(), reason };
    let file = File::open(&source.path).map_err(|error| {
        unreadable(match error.kind() {
            ErrorKind::NotFound => {
                format!("{error}; a path is looked for from the folder in which the node was started")
            }
            ErrorKind::PermissionDenied => format!("{error}; let the user whom the node runs as read it"),
            _ => error.to_string(),
        })
    })?;
    let mut content = Vec::new();
    file.take(FILE_LEN_MAX + 1).read_to_end(&mut content).map_err(|error| unreadable(error.to_string()))?;
    if content.len() as u64 > FILE_LEN_MAX {
        return Err(unreadable(format!("it is longer than {FILE_LEN_MAX} bytes")));
    }
    Ok(content)
}

/// Longest file that is read, in bytes.
const FILE_LEN_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn number(contents: &[Vec<u8>]) -> Result<u32, Error> {
        let text = String::from_utf8_lossy(&contents[0]);
        let wrong = |_| Error::Setting { setting: "number".into(), reason: text.to_string() };
        text.parse().map_err(wrong)
    }

    #[test]
    fn a_broken_new_file_keeps_the_old_and_is_told_once() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let write = |text: &str| std::fs::write(file.path(), text).unwrap();
        write("1");
        let source = Source { what: "a number", path: file.path().to_owned() };
        let watched = Watched::open(vec![source], number).unwrap();
        assert!(matches!(watched.look(), Look::Unchanged));
        write("two");
        assert!(matches!(watched.look(), Look::Kept(_)));
        assert!(matches!(watched.look(), Look::Unchanged));
        assert_eq!(*watched.current(), 1);
        write("3");
        assert!(matches!(watched.look(), Look::Renewed));
        assert_eq!(*watched.current(), 3);
        std::fs::remove_file(file.path()).unwrap();
        assert!(matches!(watched.look(), Look::Kept(_)));
        assert_eq!(*watched.current(), 3);
        write("3");
        assert!(matches!(watched.look(), Look::Renewed));
    }

    #[test]
    fn a_file_that_is_not_there_is_refused_with_where_it_is_looked_for() {
        let source = Source { what: "a number", path: "no-such-folder/number".into() };
        let error = Watched::open(vec![source], number).err().unwrap();
        assert!(error.to_string().contains("the folder in which the node was started"), "{error}");
    }

    #[test]
    fn a_file_without_end_is_refused() {
        let source = Source { what: "a number", path: "/dev/zero".into() };
        let error = Watched::open(vec![source], number).err().unwrap();
        assert!(error.to_string().contains("longer than"), "{error}");
    }
}

//! The smallest engine behind a network: a memory store that answers a line for a line, and its client.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use greenroom_store::memory::MemoryStore;
use greenroom_store::{
    Commit, Committed, Entry, Found, Item, Journal, Page, Result, Store, StoreError, Version, Versioned,
};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;

/// Serves an empty store on a port of loopback, on this runtime.
pub(crate) async fn serve() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let store = MemoryStore::new();
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            let store = store.clone();
            tokio::spawn(async move {
                let mut connection = BufReader::new(connection);
                let mut line = String::new();
                while let Ok(1..) = connection.read_line(&mut line).await {
                    let answer = carry_out(&store, &line).await;
                    line.clear();
                    if connection.write_all(format!("{answer}\n").as_bytes()).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    addr
}

/// The words of a line are in hexadecimal, so that they hold anything.
fn line(words: &[&[u8]]) -> String {
    let hex = |word: &&[u8]| word.iter().fold("-".to_owned(), |text, byte| text + &format!("{byte:02x}"));
    words.iter().map(hex).collect::<Vec<_>>().join(" ")
}

fn words(line: &str) -> Vec<Vec<u8>> {
    let word = |word: &str| {
        let digits = &word[1..];
        (0..digits.len() / 2).map(|n| u8::from_str_radix(&digits[2 * n..2 * n + 2], 16).unwrap()).collect()
    };
    line.split_whitespace().map(word).collect()
}

fn text(word: &[u8]) -> String {
    String::from_utf8(word.to_vec()).unwrap()
}

fn number(word: &[u8]) -> u64 {
    text(word).parse().unwrap()
}

async fn carry_out(store: &MemoryStore, request: &str) -> String {
    let request = words(request);
    let arguments: Vec<&[u8]> = request[1..].iter().map(|word| &word[..]).collect();
    let by = Duration::ZERO;
    let versioned = |found: &Versioned| [found.value.to_vec(), found.version.as_str().into()];
    let done: Result<Vec<Vec<u8>>> = match (&*text(&request[0]), &arguments[..]) {
        ("read", [key]) => store.read(&text(key), by).await.map(|found| found.iter().flat_map(versioned).collect()),
        ("scan", [prefix, after, limit]) => {
            let after = Some(text(after)).filter(|after| !after.is_empty());
            let page = store.scan(&text(prefix), after.as_deref(), number(limit) as usize, by).await;
            page.map(|page| {
                let items = page
                    .items
                    .iter()
                    .flat_map(|item| [vec![item.key.clone().into()], versioned(&item.versioned).into()]);
                std::iter::once(page.next.clone().unwrap_or_default().into()).chain(items.flatten()).collect()
            })
        }
        ("commit", rest) => store.commit(commit_of(rest), by).await.map(|committed| {
            let version = |version: Option<Version>| version.map_or(Vec::new(), |version| version.as_str().into());
            let positions = committed.positions.iter().map(|position| position.to_string().into());
            committed.versions.into_iter().map(version).chain(positions).collect()
        }),
        ("entries", [log, from, limit]) => {
            let entries = store.entries(&text(log), number(from), number(limit) as usize, by).await;
            let words = |entry: Entry| [entry.position.to_string().into(), entry.value.into()];
            entries.map(|entries| entries.into_iter().flat_map(words).collect())
        }
        ("end", [log]) => store.end(&text(log), by).await.map(|end| vec![end.to_string().into()]),
        ("trim", [log, through]) => store.trim(&text(log), number(through), by).await.map(|()| Vec::new()),
        other => panic!("no such request: {other:?}"),
    };
    let answer = match done {
        Ok(answer) => [vec![b"ok".to_vec()], answer].concat(),
        Err(StoreError::Conflict { key, .. }) => vec![b"conflict".to_vec(), key.into()],
        Err(error) => panic!("{error}"),
    };
    line(&answer.iter().map(|word| &word[..]).collect::<Vec<_>>())
}

/// Four words for each write or append: what, where, value, version.
fn commit_of(mut words: &[&[u8]]) -> Commit {
    let mut commit = Commit::new();
    while let [what, key, value, version, rest @ ..] = words {
        let (key, value, version) = (text(key), Bytes::copy_from_slice(value), Version::new(text(version)));
        commit = match *what {
            b"create" => commit.create(key, value),
            b"replace" => commit.replace(key, value, &version),
            b"delete" => commit.delete(key, &version),
            b"put" => commit.put(key, value),
            b"remove" => commit.remove(key),
            b"hold" => commit.hold(key, &version),
            _ => commit.append(key, value),
        };
        words = rest;
    }
    commit
}

/// What a client does when no answer comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Says what it knows.
    Honest,
    /// Says that nothing has happened.
    Denying,
    /// Asks again, although the first may have been heard.
    Insistent,
    /// Waits for ever.
    Patient,
}

pub(crate) struct Client {
    addr: SocketAddr,
    manner: Manner,
    /// Where its connections live: callers come from other runtimes, which may have no sockets.
    runtime: Handle,
}

impl Client {
    pub(crate) fn open(addr: SocketAddr, manner: Manner) -> Self {
        Self { addr, manner, runtime: Handle::current() }
    }

    async fn ask(&self, words: &[&[u8]], key: &str, writes: bool, timeout: Duration) -> Result<Vec<Vec<u8>>> {
        let attempt = self.attempt(words);
        let timeout = if self.manner == Manner::Patient { Duration::from_secs(3600) } else { timeout };
        let answered = match tokio::time::timeout(timeout, attempt).await {
            Ok(Some(answer)) => answer,
            Ok(None) if self.manner == Manner::Insistent => self.attempt(words).await.unwrap_or(Err("twice")),
            Ok(None) => Err("the connection broke"),
            Err(_) => Err("no answer came in time"),
        };
        let (key, store) = (key.to_owned(), format!("{self:?}"));
        let answer = answered.map_err(|reason| match (writes, self.manner) {
            (true, Manner::Denying) => StoreError::NotApplied { key: key.clone(), reason: reason.to_owned() },
            (true, _) => StoreError::Unknown { key: key.clone(), reason: reason.to_owned() },
            (false, _) => StoreError::Unavailable { store, reason: reason.to_owned() },
        })?;
        match &answer[0][..] {
            b"ok" => Ok(answer[1..].to_vec()),
            _ => Err(StoreError::Conflict { key: text(&answer[1]), found: Found::Untold }),
        }
    }

    /// `None` if the connection breaks.
    async fn attempt(&self, words: &[&[u8]]) -> Option<Result<Vec<Vec<u8>>, &'static str>> {
        let (addr, request) = (self.addr, format!("{}\n", line(words)));
        let asking = self.runtime.spawn(async move {
            let mut connection = BufReader::new(TcpStream::connect(addr).await.ok()?);
            connection.write_all(request.as_bytes()).await.ok()?;
            let mut answer = String::new();
            connection.read_line(&mut answer).await.ok().filter(|read| *read > 0)?;
            Some(answer)
        });
        Some(Ok(self::words(&asking.await.ok()??)))
    }

    async fn one(&self, what: &[u8], key: &str, value: &[u8], version: &str, timeout: Duration) -> Result<Version> {
        let request = [b"commit", what, key.as_bytes(), value, version.as_bytes()];
        Ok(Version::new(text(&self.ask(&request, key, true, timeout).await?[0])))
    }
}

impl Store for Client {
    fn read<'a>(&'a self, key: &'a str, timeout: Duration) -> BoxFuture<'a, Result<Option<Versioned>>> {
        async move {
            let answer = self.ask(&[b"read", key.as_bytes()], key, false, timeout).await?;
            let [value, version] = &answer[..] else { return Ok(None) };
            Ok(Some(Versioned { value: value.clone().into(), version: Version::new(text(version)) }))
        }
        .boxed()
    }

    fn create<'a>(&'a self, key: &'a str, value: Bytes, timeout: Duration) -> BoxFuture<'a, Result<Version>> {
        async move { self.one(b"create", key, &value, "", timeout).await }.boxed()
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        value: Bytes,
        expected: &'a Version,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Version>> {
        async move { self.one(b"replace", key, &value, expected.as_str(), timeout).await }.boxed()
    }

    fn delete<'a>(&'a self, key: &'a str, expected: &'a Version, timeout: Duration) -> BoxFuture<'a, Result<()>> {
        async move { self.one(b"delete", key, b"", expected.as_str(), timeout).await.map(drop) }.boxed()
    }

    fn scan<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Page>> {
        async move {
            let (after, limit) = (after.unwrap_or_default(), limit.to_string());
            let request = [b"scan", prefix.as_bytes(), after.as_bytes(), limit.as_bytes()];
            let answer = self.ask(&request, prefix, false, timeout).await?;
            let item = |words: &[Vec<u8>]| Item {
                key: text(&words[0]),
                versioned: Versioned { value: words[1].clone().into(), version: Version::new(text(&words[2])) },
            };
            let next = Some(text(&answer[0])).filter(|next| !next.is_empty());
            Ok(Page { items: answer[1..].chunks(3).map(item).collect(), next })
        }
        .boxed()
    }
}

impl Journal for Client {
    fn commit(&self, commit: Commit, timeout: Duration) -> BoxFuture<'_, Result<Committed>> {
        use greenroom_store::journal::Write;
        async move {
            let mut request: Vec<&[u8]> = vec![b"commit"];
            for write in &commit.writes {
                let what: &[u8] = match write {
                    Write::Create { .. } => b"create",
                    Write::Replace { .. } => b"replace",
                    Write::Delete { .. } => b"delete",
                    Write::Put { .. } => b"put",
                    Write::Remove { .. } => b"remove",
                    Write::Holds { .. } => b"hold",
                };
                let (value, version) = (write.value(), write.expected());
                request.extend([what, write.key().as_bytes(), value.map_or(b"", |value| value)]);
                request.push(version.map_or(b"", |version| version.as_str().as_bytes()));
            }
            for append in &commit.appends {
                request.extend([b"append", append.log.as_bytes(), &append.entry, b""]);
            }
            let answer = self.ask(&request, commit.name(), true, timeout).await?;
            let (versions, positions) = answer.split_at(commit.writes.len());
            let version = |word: &Vec<u8>| (!word.is_empty()).then(|| Version::new(text(word)));
            Ok(Committed {
                versions: versions.iter().map(version).collect(),
                positions: positions.iter().map(|word| number(word)).collect(),
            })
        }
        .boxed()
    }

    fn entries<'a>(
        &'a self,
        log: &'a str,
        from: u64,
        limit: usize,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Vec<Entry>>> {
        async move {
            let (from, limit) = (from.to_string(), limit.to_string());
            let request = [b"entries", log.as_bytes(), from.as_bytes(), limit.as_bytes()];
            let answer = self.ask(&request, log, false, timeout).await?;
            let entry = |words: &[Vec<u8>]| Entry { position: number(&words[0]), value: words[1].clone().into() };
            Ok(answer.chunks(2).map(entry).collect())
        }
        .boxed()
    }

    fn end<'a>(&'a self, log: &'a str, timeout: Duration) -> BoxFuture<'a, Result<u64>> {
        async move { Ok(number(&self.ask(&[b"end", log.as_bytes()], log, false, timeout).await?[0])) }.boxed()
    }

    fn trim<'a>(&'a self, log: &'a str, through: u64, timeout: Duration) -> BoxFuture<'a, Result<()>> {
        async move {
            let through = through.to_string();
            self.ask(&[b"trim", log.as_bytes(), through.as_bytes()], log, true, timeout).await.map(drop)
        }
        .boxed()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tiny://{}", self.addr)
    }
}

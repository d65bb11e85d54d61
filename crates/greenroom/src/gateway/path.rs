//! What a request's path names.

use super::admin::Asked;
use super::reliable::Reliable;
use super::state;
use crate::geo::ClusterChange;
use crate::here::built_in::TOPICS;

/// A path's meaning. The documentation's page of paths is made from what is said of each here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Path {
    /// The kinds that can be called, with the methods of those that the node hosts, and the members; a browser is sent to the console:
    /// `GET /`.
    Root,
    /// 200 while the process lives: `GET /healthz`.
    Health,
    /// 200 while the node is in its cluster and its lease holds, 503 if not: `GET /readyz`.
    Ready,
    /// Metrics in Prometheus' text format: `GET /metrics`.
    Metrics,
    /// The state of the node and its cluster: `GET /-/status`.
    Status,
    /// Becomes a lane of a host, with `Upgrade: greenroom-host/1`: `GET /-/host`.
    Host,
    /// What can be called here, as OpenAPI 3.1: `GET /openapi.json`.
    OpenApi,
    /// The kinds of the cluster: `GET /-/kinds`.
    Kinds,
    /// What one kind is, its methods and their arguments: `GET /-/kinds/{kind}`.
    Kind(String),
    /// The pages for a browser: `GET /-/console/{path}`.
    Console(String),
    /// Who asks, in which roles, and what they may: `GET /-/whoami`.
    Whoami,
    /// Pages told again each second, as server-sent events of their names: `GET /-/live?views=`.
    Live,
    /// Actors that are active, page by page: `GET /-/actors?kind=&node=&order=&prefix=&after=&limit=`.
    Actors,
    /// All that the cluster says of itself, without keys and values, for bug reports: `GET /-/support`.
    Support,
    /// Topics that are active: `GET /-/topics?prefix=&after=&limit=`.
    Topics,
    /// What actors have stored, by its names: `GET /-/state?prefix=&store=&after=&limit=`.
    State,
    /// One state of an actor, which the role `admin` also replaces or removes, by PUT and DELETE with `If-Match`:
    /// `GET /-/state/{kind}/{field}/{key}`.
    StateOf(state::Of),
    /// Turns as they end, as server-sent events, at most 200 a second: `GET /-/tail?kind=&key=&method=&outcome=&over=`.
    Tail,
    /// The cluster at a glance, with what it did in the last seconds: `GET /-/overview?seconds=`.
    Overview,
    /// Where actors are, which of them are hot, who talks with whom, and who has moved: `GET /-/stage?top=`.
    Stage,
    /// How often methods are called, how long they take, how they fail: `GET /-/methods?kind=`.
    Methods,
    /// The last turns that failed, or the slowest of the last minute: `GET /-/turns?outcome=&kind=&method=&seconds=`.
    Turns,
    /// What has happened at the nodes: `GET /-/events?since=&until=&level=&subject=&limit=`.
    Events,
    /// What the nodes find wrong, since when, and what to do: `GET /-/findings`.
    Findings,
    /// Turns that have run for long, who waits for them, and deadlocks: `GET /-/waits?over=`.
    Waits,
    /// The node's spawned actors: `GET /-/pids`.
    Pids,
    /// Which actors talk with each other, and who would do better elsewhere: `GET /-/optimiser?top=`.
    Optimiser,
    /// The actors that the optimiser moved last, and why: `GET /-/optimiser/moves`.
    Moves,
    /// Why an actor is where it is: `GET /-/optimiser/explain/{kind}/{key}`.
    Explain { kind: String, key: String },
    /// An actor's running turns, what waits for it, and its last turns: `GET /-/inspect/{kind}/{key}`.
    Inspect { kind: String, key: String },
    /// What a type of problem means: `GET /-/problems/{name}`.
    Problem(String),
    /// What operators ask.
    Admin(Asked),
    /// Calls a method, with a JSON object of its arguments; `GET` with `Accept: text/event-stream` for one that answers with a stream:
    /// `POST /{kind}/{key}/{method}`.
    Call { kind: String, key: String, method: String },
    /// Publishes to a topic: `POST /topics/{name}`. Its events as they come, as server-sent events or over a WebSocket:
    /// `GET /topics/{name}`, `GET /topics/{name}/ws`.
    Topic(String),
    /// Anything else.
    Other,
}

impl Path {
    /// Reads a path as it came, still percent-encoded.
    ///
    /// # Errors
    /// What is wrong with its encoding.
    pub(super) fn read(path: &str) -> Result<Path, String> {
        let segments: Vec<&str> = path.strip_prefix('/').unwrap_or(path).split('/').collect();
        Ok(match segments[..] {
            [""] => Path::Root,
            ["healthz"] => Path::Health,
            ["readyz"] => Path::Ready,
            ["metrics"] => Path::Metrics,
            ["openapi.json"] => Path::OpenApi,
            ["-", "kinds"] => Path::Kinds,
            ["-", "kinds", kind] => Path::Kind(decode(kind)?),
            ["-", "console", ref path @ ..] => Path::Console(decode(&path.join("/"))?),
            ["-", "status"] => Path::Status,
            ["-", "host"] => Path::Host,
            ["-", "drain", node] => Path::Admin(Asked::Drain { node: decode(node)? }),
            ["-", "whoami"] => Path::Whoami,
            ["-", "live"] => Path::Live,
            ["-", "actors"] => Path::Actors,
            ["-", "actors", kind, key, "deactivate"] => {
                Path::Admin(Asked::Deactivate { kind: decode(kind)?, key: decode(key)? })
            }
            ["-", "support"] => Path::Support,
            ["-", "topics"] => Path::Topics,
            ["-", "state"] => Path::State,
            ["-", "state", kind, field, key] => {
                Path::StateOf(state::Of { kind: decode(kind)?, field: decode(field)?, key: decode(key)? })
            }
            ["-", "tail"] => Path::Tail,
            ["-", "overview"] => Path::Overview,
            ["-", "stage"] => Path::Stage,
            ["-", "methods"] => Path::Methods,
            ["-", "turns"] => Path::Turns,
            ["-", "events"] => Path::Events,
            ["-", "findings"] => Path::Findings,
            ["-", "waits"] => Path::Waits,
            ["-", "pids"] => Path::Pids,
            ["-", "optimiser"] => Path::Optimiser,
            ["-", "optimiser", "moves"] => Path::Moves,
            ["-", "optimiser", "pause"] => Path::Admin(Asked::PauseOptimiser(true)),
            ["-", "optimiser", "resume"] => Path::Admin(Asked::PauseOptimiser(false)),
            ["-", "optimiser", "explain", kind, key] => Path::Explain { kind: decode(kind)?, key: decode(key)? },
            ["-", "clusters"] => Path::Admin(Asked::Clusters),
            ["-", "clusters", "add", name, gateways] => {
                let gateways = decode(gateways)?.split(',').map(str::to_owned).collect();
                Path::Admin(Asked::ChangeClusters(ClusterChange::Add(decode(name)?, gateways)))
            }
            ["-", "clusters", "drain", name] => Path::Admin(Asked::ChangeClusters(ClusterChange::Drain(decode(name)?))),
            ["-", "clusters", "remove", name] => {
                Path::Admin(Asked::ChangeClusters(ClusterChange::Remove(decode(name)?)))
            }
            ["-", "clusters", how @ ("remove-lost" | "remove-vouched"), first, ref others @ ..] => {
                let names = [first].into_iter().chain(others.iter().copied());
                let clusters = names.map(decode).collect::<Result<_, _>>()?;
                let vouch = how == "remove-vouched";
                Path::Admin(Asked::ChangeClusters(ClusterChange::RemoveLost { clusters, vouch }))
            }
            ["-", "reminders"] => Path::Admin(Asked::Reminders { of: None }),
            ["-", "reminders", kind, key] => Path::Admin(Asked::Reminders { of: Some((decode(kind)?, decode(key)?)) }),
            ["-", "reminders", kind, key, name] => {
                let (kind, key, name) = (decode(kind)?, decode(key)?, decode(name)?);
                Path::Admin(Asked::CancelReminder { kind, key, name })
            }
            ["-", "reminders", kind, key, name, "retry"] => {
                let (kind, key, name) = (decode(kind)?, decode(key)?, decode(name)?);
                Path::Admin(Asked::RetryReminder { kind, key, name })
            }
            ["-", "inspect", kind, key] => Path::Inspect { kind: decode(kind)?, key: decode(key)? },
            ["-", "migrate", kind, key, node] => {
                let [kind, key, node] = [decode(kind)?, decode(key)?, decode(node)?];
                Path::Admin(Asked::Migrate { kind, key, node })
            }
            ["-", "reliable", ref rest @ ..] => match Reliable::read(rest)? {
                Some(asked) => Path::Admin(Asked::Reliable(asked)),
                None => Path::Other,
            },
            ["-", "problems", name] => Path::Problem(decode(name)?),
            ["-", ..] => Path::Other,
            ["topics", ref name @ .., "ws"] if !name.is_empty() => Path::Topic(decode(&name.join("/"))?),
            ["topics", ref name @ ..] if !name.is_empty() => Path::Topic(decode(&name.join("/"))?),
            // Topics have paths of their own, however their name is encoded.
            [kind, ..] if decode(kind)? == TOPICS => Path::Other,
            [kind, key, method] => Path::Call { kind: decode(kind)?, key: decode(key)?, method: decode(method)? },
            _ => Path::Other,
        })
    }
}

/// Undoes percent-encoding.
pub(super) fn decode(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        if first != b'%' {
            bytes.push(first);
            rest = tail;
            continue;
        }
        let digit = |at: usize| tail.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        let (Some(high), Some(low)) = (digit(0), digit(1)) else {
            return Err(
                "a % in the path is not followed by two hexadecimal digits; write %25 for a percent sign".into()
            );
        };
        bytes.push((high * 16 + low) as u8);
        rest = &tail[2..];
    }
    String::from_utf8(bytes).map_err(|_| "a part of the path is not UTF-8 once its percent-encoding is undone".into())
}

/// A part of a path, percent-encoded.
pub(super) fn encode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(kind: &str, key: &str, method: &str) -> Result<Path, String> {
        Ok(Path::Call { kind: kind.into(), key: key.into(), method: method.into() })
    }

    #[test]
    fn a_key_may_hold_any_text() {
        assert_eq!(Path::read("/chat_room/lobby/post"), call("chat_room", "lobby", "post"));
        assert_eq!(Path::read("/chat_room/a%2Fb%20%C3%A9+/post"), call("chat_room", "a/b é+", "post"));
        assert_eq!(Path::read("/chat_room//post"), call("chat_room", "", "post"));
    }

    #[test]
    fn a_broken_encoding_is_an_error() {
        for path in ["/a/%/c", "/a/%4/c", "/a/%zz/c", "/a/%ff/c", "/%+1/b/c", "/a/b/%é"] {
            assert!(Path::read(path).is_err(), "{path}");
        }
    }

    #[test]
    fn a_topics_name_may_have_parts() {
        for (path, name) in [
            ("/topics/news", "news"),
            ("/topics/prices/eu", "prices/eu"),
            ("/topics/prices/eu/ws", "prices/eu"),
            ("/topics/prices/eu%2Fws", "prices/eu/ws"),
            ("/topics/ws", "ws"),
            ("/topics/a%20b/ws", "a b"),
        ] {
            assert_eq!(Path::read(path), Ok(Path::Topic(name.to_owned())), "{path}");
        }
        for path in ["/topics", "/%74opics/news/subscribe"] {
            assert_eq!(Path::read(path), Ok(Path::Other), "{path}");
        }
    }

    #[test]
    fn only_three_parts_are_a_call() {
        for path in ["/a", "/a/b", "/a/b/c/d", "//", "/-/x", "/-/x/y", "*", "a/b"] {
            assert_eq!(Path::read(path), Ok(Path::Other), "{path}");
        }
        assert_eq!(Path::read("/"), Ok(Path::Root));
        assert_eq!(Path::read("/-/status"), Ok(Path::Status));
        assert_eq!(Path::read("/-/console/"), Ok(Path::Console(String::new())));
        assert_eq!(Path::read("/-/console/a1/main.js"), Ok(Path::Console("a1/main.js".to_owned())));
        assert_eq!(Path::read("/-/pids"), Ok(Path::Pids));
        assert_eq!(Path::read("/-/optimiser"), Ok(Path::Optimiser));
        assert_eq!(Path::read("/-/optimiser/moves"), Ok(Path::Moves));
        assert_eq!(Path::read("/-/optimiser/pause"), Ok(Path::Admin(Asked::PauseOptimiser(true))));
        let (kind, key) = ("room".into(), "a b".into());
        assert_eq!(Path::read("/-/optimiser/explain/room/a%20b"), Ok(Path::Explain { kind, key }));
        let (kind, key) = ("file".to_owned(), "a/b".to_owned());
        assert_eq!(Path::read("/-/inspect/file/a%2Fb"), Ok(Path::Inspect { kind, key }));
    }
}

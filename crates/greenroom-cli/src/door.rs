//! A client of a node's HTTP door.

mod failures;

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use greenroom_store::url::{Secret, is_in_the_clear, is_on_this_machine};
use serde_json::Value;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig};

use crate::call::reason;

/// Which node to ask.
#[derive(Args, Clone)]
pub(crate) struct NodeAddress {
    /// A node's HTTP door
    #[arg(long = "node", value_name = "URL", env = "GREENROOM_NODE", default_value = "http://127.0.0.1:7070")]
    url: String,
    #[command(flatten)]
    credentials: Credentials,
}

/// What the node may want to see, and whom to trust.
#[derive(Args, Clone, Default)]
pub(crate) struct Credentials {
    /// PEM file of the authority that the door's certificate comes from [default: the system's]
    #[arg(long, value_name = "FILE", env = "GREENROOM_CA")]
    ca: Option<PathBuf>,
    /// File whose first line is a bearer token; or the token itself in the variable GREENROOM_TOKEN
    #[arg(long, value_name = "FILE", env = "GREENROOM_TOKEN_FILE")]
    token_file: Option<PathBuf>,
    /// PEM file of a client's certificate
    #[arg(long, value_name = "FILE", env = "GREENROOM_CERT", requires = "key")]
    cert: Option<PathBuf>,
    /// PEM file of its private key
    #[arg(long, value_name = "FILE", env = "GREENROOM_KEY", requires = "cert")]
    key: Option<PathBuf>,
}

/// A node's HTTP door.
#[derive(Clone)]
pub(crate) struct Door {
    url: String,
    agent: ureq::Agent,
    token: Option<Secret>,
}

/// As what something was seen that is changed.
pub(crate) enum Condition<'a> {
    /// It was not there.
    Missing,
    Version(&'a str),
}

/// What a door answered.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl NodeAddress {
    /// The door, with the credentials at hand.
    pub(crate) fn door(&self, timeout: Duration) -> Result<Door, String> {
        let url = with_scheme(&self.url);
        let agent = http_client(&url, Some(timeout), self.credentials.tls()?);
        let door = Door { url, agent, token: self.credentials.token()? };
        door.keep_secrets()?;
        Ok(door)
    }
}

impl Door {
    /// The door at `url`, whose scheme may be left out.
    pub(crate) fn new(url: &str, timeout: Duration) -> Self {
        let url = with_scheme(url);
        let agent = http_client(&url, Some(timeout), TlsConfig::default());
        Self { url, agent, token: None }
    }

    /// The door of another node of the cluster, which wants the same credentials.
    pub(crate) fn at(&self, url: &str) -> Result<Self, String> {
        let url = with_scheme(url);
        let config = self.agent.config();
        let agent = http_client(&url, config.timeouts().global, config.tls_config().clone());
        let other = Self { url, agent, token: self.token.clone() };
        other.keep_secrets()?;
        Ok(other)
    }

    /// Refuses to send a token where others can read it.
    fn keep_secrets(&self) -> Result<(), String> {
        match self.token.is_some() && is_in_the_clear(&self.url) {
            true => Err(format!("{} is plain HTTP, where others could read the token; use https://", self.url)),
            false => Ok(()),
        }
    }

    /// The token as the console takes it from its address.
    pub(crate) fn token_in_address(&self) -> Option<String> {
        self.token.as_ref().map(|token| format!("#token={}", encoded(token.expose())))
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Asks for a page.
    pub(crate) fn get(&self, path: &str) -> Result<Answer, String> {
        self.read(self.signed(self.agent.get(format!("{}{path}", self.url))).call())
    }

    /// Asks whether there is a page that this program does not read, as it may be compressed. Returns the answer if it is a refusal.
    pub(crate) fn refusal(&self, path: &str) -> Result<Option<Answer>, String> {
        let answer = self.signed(self.agent.get(format!("{}{path}", self.url))).call();
        match answer {
            Ok(answer) if answer.status() == 200 => Ok(None),
            answer => self.read(answer).map(Some),
        }
    }

    /// Asks for a page in JSON.
    pub(crate) fn get_json(&self, path: &str) -> Result<Value, String> {
        let answer = self.get(path)?;
        if answer.status != 200 {
            return Err(self.refused(path, &answer));
        }
        serde_json::from_str(&answer.body).map_err(|error| format!("{} is no Greenroom node: {error}", self.url))
    }

    /// Why there is no page at `path`, as the door says it, and what helps.
    fn refused(&self, path: &str, Answer { status, body }: &Answer) -> String {
        let hint = match status {
            401 => "; say who you are: --token-file FILE or GREENROOM_TOKEN, or --cert and --key",
            421 => "; it does not know this name as its own: name it in the node's `http_hosts`",
            _ => "",
        };
        match reason(body) {
            Some(reason) => format!("{}: {reason}{hint}", self.url),
            None => format!("{} answers {status} to {path}{hint}", self.url),
        }
    }

    /// Asks for a page in JSON whose path has these parts.
    pub(crate) fn get_json_at(&self, path: &[&str]) -> Result<Value, String> {
        let path: Vec<String> = path.iter().map(|part| encoded(part)).collect();
        self.get_json(&format!("/{}", path.join("/")))
    }

    /// Calls a method with the JSON object of its arguments.
    pub(crate) fn call(&self, kind: &str, key: &str, method: &str, arguments: &str) -> Result<Answer, String> {
        self.call_with(kind, key, method, arguments, &[])
    }

    /// As [`call`](Self::call), with a request context.
    pub(crate) fn call_with(
        &self,
        kind: &str,
        key: &str,
        method: &str,
        arguments: &str,
        context: &[(String, String)],
    ) -> Result<Answer, String> {
        let path = [kind, key, method].map(encoded).join("/");
        let mut request = self.agent.post(format!("{}/{path}", self.url)).header("content-type", "application/json");
        if !context.is_empty() {
            let members: Vec<_> = context.iter().map(|(key, value)| format!("{key}={}", encoded(value))).collect();
            request = request.header("baggage", members.join(","));
        }
        self.read(self.signed(request).send(arguments))
    }

    fn signed<B>(&self, request: ureq::RequestBuilder<B>) -> ureq::RequestBuilder<B> {
        match &self.token {
            Some(token) => request.header("authorization", format!("Bearer {}", token.expose())),
            None => request,
        }
    }

    /// Asks for something to be done, with a JSON object.
    pub(crate) fn post(&self, path: &[&str], body: &str) -> Result<Answer, String> {
        let path: Vec<String> = path.iter().map(|part| encoded(part)).collect();
        let request = self.agent.post(format!("{}/{}", self.url, path.join("/")));
        self.read(self.signed(request).header("content-type", "application/json").send(body))
    }

    /// Publishes an event to a topic.
    pub(crate) fn publish(&self, topic: &str, event: &str) -> Result<Answer, String> {
        let request = self.agent.post(format!("{}/topics/{}", self.url, encoded(topic)));
        self.read(self.signed(request).header("content-type", "application/json").send(event))
    }

    /// A topic's events, as they come: no time limit holds.
    pub(crate) fn watch(&self, topic: &str) -> Result<impl Read + use<>, String> {
        self.listen(&format!("/topics/{}", encoded(topic)))
    }

    /// Events as they come: no time limit holds.
    pub(crate) fn listen(&self, path: &str) -> Result<impl Read + use<>, String> {
        let request = self.agent.get(format!("{}{path}", self.url));
        let request = request.config().timeout_global(None).build().header("accept", "text/event-stream");
        let answer = self.signed(request).call();
        match answer {
            Ok(answer) if answer.status().as_u16() == 200 => Ok(answer.into_body().into_reader()),
            other => {
                let Answer { status, body } = self.read(other)?;
                Err(crate::call::described(status, &body))
            }
        }
    }

    /// Asks for a page by the parts of its path.
    pub(crate) fn get_at(&self, path: &[&str]) -> Result<Answer, String> {
        let path: Vec<String> = path.iter().map(|part| encoded(part)).collect();
        self.get(&format!("/{}", path.join("/")))
    }

    /// Asks for something to be removed.
    pub(crate) fn delete(&self, path: &[&str]) -> Result<Answer, String> {
        let path: Vec<String> = path.iter().map(|part| encoded(part)).collect();
        self.read(self.signed(self.agent.delete(format!("{}/{}", self.url, path.join("/")))).call())
    }

    /// Asks for something to be replaced by a JSON value, or removed without one, if it is as it was seen.
    pub(crate) fn change(&self, path: &str, seen: &Condition<'_>, value: Option<&str>) -> Result<Answer, String> {
        let url = format!("{}{path}", self.url);
        let (name, version) = match seen {
            Condition::Missing => ("if-none-match", "*"),
            Condition::Version(version) => ("if-match", *version),
        };
        let answer = match value {
            Some(value) => {
                let request = self.signed(self.agent.put(url)).header(name, version);
                request.header("content-type", "application/json").send(value)
            }
            None => self.signed(self.agent.delete(url)).header(name, version).call(),
        };
        self.read(answer)
    }

    fn read(&self, answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Result<Answer, String> {
        let failed = |error: ureq::Error| failures::described(&self.url, &error);
        let mut answer = answer.map_err(failed)?;
        let status = answer.status().as_u16();
        let body = answer.body_mut().with_config().limit(BODY_LEN_MAX).read_to_string().map_err(failed)?;
        Ok(Answer { status, body })
    }
}

/// The URL of a door, whose scheme may be left out.
fn with_scheme(url: &str) -> String {
    let url = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
    url.trim_end_matches('/').to_owned()
}

/// The one HTTP client of this program, for the door at `url`. A proxy that the environment names is asked for other machines
/// only: a request to this machine would show it the token, and it would ask its own loopback.
fn http_client(url: &str, timeout: Option<Duration>, tls: TlsConfig) -> ureq::Agent {
    let config = ureq::Agent::config_builder().timeout_global(timeout).http_status_as_error(false).tls_config(tls);
    let config = if is_on_this_machine(url) { config.proxy(None) } else { config };
    config.build().into()
}

impl Credentials {
    fn tls(&self) -> Result<TlsConfig, String> {
        let read =
            |path: &PathBuf| std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = TlsConfig::builder().unversioned_rustls_crypto_provider(provider);
        let roots = match &self.ca {
            Some(path) => {
                let pem = read(path)?;
                let found: Vec<_> = ureq::tls::parse_pem(&pem)
                    .filter_map(|item| match item {
                        Ok(PemItem::Certificate(certificate)) => Some(certificate),
                        _ => None,
                    })
                    .collect();
                if found.is_empty() {
                    return Err(format!("{} holds no certificate", path.display()));
                }
                found
            }
            None => {
                let system = rustls_native_certs::load_native_certs().certs;
                system.iter().map(|der| Certificate::from_der(der).to_owned()).collect()
            }
        };
        config = config.root_certs(RootCerts::new_with_certs(&roots));
        if let (Some(cert), Some(key)) = (&self.cert, &self.key) {
            let wrong = |path: &PathBuf| format!("{} is not the PEM file that is wanted", path.display());
            let chain = Certificate::from_pem(&read(cert)?).map_err(|_| wrong(cert))?;
            let private = PrivateKey::from_pem(&read(key)?).map_err(|_| wrong(key))?;
            config = config.client_cert(Some(ClientCert::new_with_certs(&[chain], private)));
        }
        Ok(config.build())
    }

    fn token(&self) -> Result<Option<Secret>, String> {
        let (text, source) = match &self.token_file {
            Some(path) => {
                let text = std::fs::read_to_string(path);
                let text = text.map_err(|error| format!("cannot read {}: {error}", path.display()))?;
                (text, path.display().to_string())
            }
            // Not a flag: everybody on the machine can read those.
            None => match std::env::var("GREENROOM_TOKEN") {
                Ok(text) if !text.is_empty() => (text, "GREENROOM_TOKEN".to_owned()),
                _ => return Ok(None),
            },
        };
        token_in(&text).map(Some).map_err(|wrong| format!("the first line of {source} {wrong}"))
    }
}

/// The token on the first line of `text`: editors put a byte order mark in front of it, and secrets end in a newline.
///
/// # Errors
/// The fault of the line, which is not quoted.
fn token_in(text: &str) -> Result<Secret, &'static str> {
    let line = text.trim_start_matches('\u{feff}').lines().next().unwrap_or_default().trim();
    match line {
        "" => Err("is empty"),
        // A header carries these.
        line if line.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(Secret::new(line)),
        _ => Err("is no token: it has spaces, or characters that no token has"),
    }
}

/// A part of a path, percent-encoded.
pub(crate) fn encoded(part: &str) -> String {
    let mut text = String::with_capacity(part.len());
    for byte in part.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => text.push(char::from(byte)),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// Longest answer that is read.
const BODY_LEN_MAX: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_token_is_not_sent_where_others_can_read_it() {
        let with_token = |url| Door { token: Some(Secret::new("t")), ..Door::new(url, Duration::from_secs(1)) };
        for (url, kept) in [
            ("https://db.example.org:7070", true),
            ("http://127.0.0.1:7070", true),
            ("localhost:7070/", true),
            ("http://[::1]:7070", true),
            ("http://db.example.org:7070", false),
            ("http://127.0.0.1.example.org", false),
            ("10.0.0.1:7070", false),
        ] {
            assert_eq!(with_token(url).keep_secrets().is_ok(), kept, "{url}");
        }
    }

    /// A door that answers the first request with `answer`, or with nothing at all, and what is made of it.
    fn asked(answer: Option<&'static str>, timeout: Duration) -> String {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let door = Door::new(&listener.local_addr().expect("it is bound").to_string(), timeout);
        let serving = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("it is asked");
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(answer.unwrap_or_default().as_bytes());
            // Who is told nothing waits until he gives up.
            while answer.is_none() && stream.read(&mut request).is_ok_and(|read| read > 0) {}
        });
        let said = door.get_json("/-/status").expect_err("it is no page").replace(door.url(), "DOOR");
        serving.join().expect("it has answered");
        said
    }

    #[test]
    fn a_door_that_refuses_is_quoted_and_one_that_says_nothing_is_no_door_that_was_never_started() {
        let patience = Duration::from_secs(30);
        let problem = concat!(
            "HTTP/1.1 403 Forbidden\r\ncontent-length: 62\r\nconnection: close\r\n\r\n",
            r#"{"title": "Not allowed", "detail": "it takes the role viewer"}"#
        );
        assert_eq!(asked(Some(problem), patience), "DOOR: Not allowed: it takes the role viewer");
        let plain = "HTTP/1.1 400 Bad Request\r\ncontent-length: 22\r\nconnection: close\r\n\r\nask with https:// here";
        assert_eq!(asked(Some(plain), patience), "DOOR: ask with https:// here");
        let other = "HTTP/1.1 404 Not Found\r\ncontent-length: 6\r\nconnection: close\r\n\r\n<html>";
        assert_eq!(asked(Some(other), patience), "DOOR answers 404 to /-/status");
        let silent = asked(None, Duration::from_millis(100));
        assert!(
            silent.starts_with("no answer from DOOR in time: its node hangs") && !silent.contains("demo"),
            "{silent}"
        );
    }

    #[test]
    fn a_key_is_one_part_of_the_path_whatever_it_holds() {
        assert_eq!(encoded("a/b c%é"), "a%2Fb%20c%25%C3%A9");
    }
}

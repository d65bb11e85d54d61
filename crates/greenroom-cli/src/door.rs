//! A client of a node's HTTP door.

use std::time::Duration;

use clap::Args;
use serde_json::Value;

/// Which node to ask.
#[derive(Args, Clone)]
pub(crate) struct NodeAddress {
    /// A node's HTTP door
    #[arg(long = "node", value_name = "URL", env = "GREENROOM_NODE", default_value = "http://127.0.0.1:7070")]
    url: String,
}

/// A node's HTTP door.
#[derive(Clone)]
pub(crate) struct Door {
    url: String,
    agent: ureq::Agent,
}

/// What a door answered.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl NodeAddress {
    pub(crate) fn door(&self, timeout: Duration) -> Door {
        Door::new(&self.url, timeout)
    }
}

impl Door {
    /// The door at `url`, whose scheme may be left out.
    pub(crate) fn new(url: &str, timeout: Duration) -> Self {
        let url = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
        let config = ureq::Agent::config_builder().timeout_global(Some(timeout)).http_status_as_error(false).build();
        Self { url: url.trim_end_matches('/').to_owned(), agent: config.into() }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Asks for a page.
    pub(crate) fn get(&self, path: &str) -> Result<Answer, String> {
        self.read(self.agent.get(format!("{}{path}", self.url)).call())
    }

    /// Asks for a page in JSON.
    pub(crate) fn get_json(&self, path: &str) -> Result<Value, String> {
        let answer = self.get(path)?;
        if answer.status != 200 {
            return Err(format!("{} answers {} to {path}", self.url, answer.status));
        }
        serde_json::from_str(&answer.body).map_err(|error| format!("{} is no Greenroom node: {error}", self.url))
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
        self.read(request.send(arguments))
    }

    /// Asks for something to be done, with a JSON object.
    pub(crate) fn post(&self, path: &[&str], body: &str) -> Result<Answer, String> {
        let path: Vec<String> = path.iter().map(|part| encoded(part)).collect();
        let request = self.agent.post(format!("{}/{}", self.url, path.join("/")));
        self.read(request.header("content-type", "application/json").send(body))
    }

    fn read(&self, answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Result<Answer, String> {
        let failed = |error: ureq::Error| {
            format!(
                "no answer from {}: {error}; start nodes with `greenroom demo` or `greenroom node --http 127.0.0.1:7070`, \
                 or say with --node where one is",
                self.url
            )
        };
        let mut answer = answer.map_err(failed)?;
        let status = answer.status().as_u16();
        let body = answer.body_mut().with_config().limit(BODY_LEN_MAX).read_to_string().map_err(failed)?;
        Ok(Answer { status, body })
    }
}

/// A part of a path, percent-encoded.
fn encoded(part: &str) -> String {
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
    use super::*;

    #[test]
    fn a_key_is_one_part_of_the_path_whatever_it_holds() {
        assert_eq!(encoded("a/b c%é"), "a%2Fb%20c%25%C3%A9");
    }
}

//! Requests that got no answer: what each failure of the HTTP client means, and what helps.

use std::io::ErrorKind;

/// Describes why the node at `url` gave no answer.
pub(super) fn described(url: &str, error: &ureq::Error) -> String {
    match error {
        ureq::Error::Timeout(_) => format!(
            "no answer from {url} in time: its node hangs, is stopped or has too much to do, or cannot be reached from here"
        ),
        ureq::Error::BadUri(_) => no_address(url),
        ureq::Error::Http(error) if error.is::<ureq::http::uri::InvalidUri>() => no_address(url),
        // Nothing was sent: what stands in the request cannot be.
        ureq::Error::Http(error) => {
            format!("the request to {url} cannot be made: {error}; see the address, the token and the key")
        }
        ureq::Error::HostNotFound => host_unknown(url),
        ureq::Error::Io(io) if is_unknown_host(io) => host_unknown(url),
        ureq::Error::InvalidProxyUrl | ureq::Error::ConnectProxyFailed(_) => {
            format!(
                "no answer from {url}: its proxy does not serve ({error}); see HTTPS_PROXY, or name the host in NO_PROXY"
            )
        }
        ureq::Error::BodyExceedsLimit(bytes) => {
            format!("the answer from {url} is longer than {bytes} bytes; ask for less")
        }
        ureq::Error::Io(io) if is_unheard(io.kind()) => {
            format!("{url} closed the connection before its answer ({error}); see the node's log, and ask again")
        }
        _ => match remedy(&error.to_string()) {
            Some(remedy) => format!("no answer from {url}: {error}; {remedy}"),
            None => format!(
                "no answer from {url}: {error}; start nodes with `greenroom demo` or `greenroom node --http 127.0.0.1:7070`, \
                 or say with --node where one is"
            ),
        },
    }
}

fn no_address(url: &str) -> String {
    format!("{url} is no address of a node; write http://HOST:PORT or https://HOST:PORT")
}

fn host_unknown(url: &str) -> String {
    format!("no answer from {url}: its host is not known here; see its name in --node")
}

/// Returns true for a failure of the resolver, which has no kind of its own.
fn is_unknown_host(error: &std::io::Error) -> bool {
    error.to_string().contains("failed to lookup address")
}

fn is_unheard(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::UnexpectedEof)
}

/// Returns the remedy where a door answers that is another one than was thought.
fn remedy(error: &str) -> Option<&'static str> {
    let known = [
        ("UnknownIssuer", "name the authority that the door's certificate comes from with --ca"),
        ("InvalidContentType", "the door is one without TLS: write http:// in --node"),
    ];
    known.into_iter().find(|(what, _)| error.contains(what)).map(|(_, remedy)| remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_has_a_remedy_of_its_own() {
        let io = |kind: ErrorKind| ureq::Error::Io(kind.into());
        for (error, said) in [
            (ureq::Error::HostNotFound, "its host is not known"),
            (ureq::Error::Io(std::io::Error::other("failed to lookup address information")), "its host is not known"),
            (ureq::Error::BadUri("x".to_owned()), "is no address of a node"),
            (ureq::Error::InvalidProxyUrl, "HTTPS_PROXY"),
            (ureq::Error::BodyExceedsLimit(7), "longer than 7 bytes"),
            (io(ErrorKind::ConnectionReset), "closed the connection"),
            (io(ErrorKind::ConnectionRefused), "greenroom demo"),
        ] {
            let described = described("http://a:1", &error);
            assert!(described.contains(said) && described.contains("http://a:1"), "{described}");
        }
    }
}

//! The console's pages, as the door gives them.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use greenroom::ConsoleMode;

use crate::client::{get, raw};
use crate::kinds::{node, open};

/// The head of an answer, whose body may be no text.
async fn head(door: &str, path: &str, headers: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(door).await.expect("the door listens");
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{headers}connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    let text = String::from_utf8_lossy(&bytes);
    text.split_once("\r\n\r\n").map_or("", |(head, _)| head).to_ascii_lowercase()
}

#[tokio::test]
async fn a_browser_is_sent_to_the_console_which_may_load_nothing_from_elsewhere() {
    let (node, door) = open(node()).await;
    let sent = head(&door, "/", "accept: text/html,*/*;q=0.8\r\n").await;
    assert!(sent.starts_with("http/1.1 303") && sent.contains("\r\nlocation: /-/console/"), "{sent}");
    let asked = head(&door, "/", "accept: */*\r\n").await;
    assert!(asked.starts_with("http/1.1 200") && asked.contains("application/json"), "{asked}");
    for path in ["/-/console/", "/-/console"] {
        let page = head(&door, path, "").await;
        assert!(page.starts_with("http/1.1 200") && page.contains("content-type: text/html"), "{page}");
        for rule in [
            "default-src 'none'",
            "script-src 'self'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
            "cross-origin-opener-policy: same-origin",
            "cross-origin-resource-policy: same-origin",
            "content-encoding: gzip",
        ] {
            assert!(page.contains(rule), "{rule} is missing: {page}");
        }
        assert!(!page.contains("set-cookie") && !page.contains("unsafe-inline"), "{page}");
    }
    for path in ["/-/console/main.js", "/-/console/..%2fstatus", "/-/console/000000000000/main.js"] {
        assert!(head(&door, path, "").await.starts_with("http/1.1 404"), "{path}");
    }
    node.stop().await;
}

#[tokio::test]
async fn a_browser_changes_something_only_for_a_page_that_says_what_for() {
    let (node, door) = open(node()).await;
    let pause = |headers: &str| {
        format!("POST /-/optimiser/pause HTTP/1.1\r\nhost: localhost\r\n{headers}content-length: 0\r\n\r\n")
    };
    for browser in ["origin: http://localhost\r\n", "sec-fetch-site: same-origin\r\n"] {
        raw(&door, pause(browser).as_bytes()).await.problem(403, "unnamed-change");
        let named = format!("{browser}greenroom-change: a test\r\n");
        assert_eq!(raw(&door, pause(&named).as_bytes()).await.status, 200);
    }
    raw(&door, pause("sec-fetch-site: cross-site\r\ngreenroom-change: x\r\n").as_bytes())
        .await
        .problem(403, "other-site");
    assert_eq!(raw(&door, pause("").as_bytes()).await.status, 200, "a program is no browser");
    node.stop().await;
}

#[tokio::test]
async fn what_pages_may_do_is_what_the_node_says() {
    let pause = |headers: &str| {
        format!("POST /-/optimiser/pause HTTP/1.1\r\nhost: localhost\r\n{headers}content-length: 0\r\n\r\n")
    };
    let page = "origin: http://localhost\r\ngreenroom-change: a test\r\n";
    for (mode, told, pages) in [(ConsoleMode::Look, "look", true), (ConsoleMode::Off, "off", false)] {
        let (node, door) = open(node().configure(|config| config.console = Some(mode))).await;
        raw(&door, pause(page).as_bytes()).await.problem(403, "only-looks");
        assert_eq!(raw(&door, pause("").as_bytes()).await.status, 200, "a program may what its role allows");
        assert_eq!(get(&door, "/-/whoami").await.json()["console"], told);
        let found = head(&door, "/-/console/", "").await;
        assert_eq!(found.starts_with("http/1.1 200"), pages, "{found}");
        let sent = head(&door, "/", "accept: text/html\r\n").await;
        assert_eq!(sent.starts_with("http/1.1 303"), pages, "{sent}");
        node.stop().await;
    }
    let (node, door) = open(node()).await;
    assert_eq!(get(&door, "/-/whoami").await.json()["console"], "change", "this machine alone comes to the door");
    node.stop().await;
}

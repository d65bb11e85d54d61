//! Certificates and tokens made by the program, a node that runs with them, and what nobody may ever read.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use greenroom_engines::free_port;
use tempfile::TempDir;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

const PROGRAM: &str = env!("CARGO_BIN_EXE_greenroom");

/// A folder to work in, as a user would.
struct Site(TempDir);

impl Site {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(line.split(' ')).current_dir(self.0.path()).stdin(Stdio::null());
        command
    }

    fn run(&self, line: &str) -> Output {
        self.command(line).output().expect("the program starts")
    }

    /// What it prints, if it succeeds.
    fn done(&self, line: &str) -> String {
        let output = self.run(line);
        assert!(output.status.success(), "{line}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// What it complains of, if it fails.
    fn fails(&self, line: &str) -> String {
        let output = self.run(line);
        assert!(!output.status.success(), "{line}: {}", text(&output.stdout));
        text(&output.stderr)
    }

    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.0.path().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
    }

    fn write(&self, file: &str, text: &str) {
        std::fs::write(self.0.path().join(file), text).unwrap();
    }

    fn mode(&self, file: &str) -> u32 {
        std::fs::metadata(self.0.path().join(file)).unwrap().permissions().mode() & 0o777
    }
}

/// A proxy that counts the connections that come to it, and answers none.
fn proxy() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, seen) = (format!("http://{}", listener.local_addr().unwrap()), Arc::new(AtomicUsize::new(0)));
    let count = seen.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            count.fetch_add(1, Ordering::SeqCst);
            drop(stream);
        }
    });
    (address, seen)
}

#[test]
fn a_proxy_of_the_environment_is_not_asked_for_this_machine() {
    let site = Site::new();
    let token = site.done("token ada --role admin --file tokens.toml");
    // Secrets end in a newline, and some editors put a mark in front.
    site.write("ada.token", &format!("\u{feff}{token}"));
    let node = Node::start(&site, " --tokens tokens.toml");
    let (address, seen) = proxy();
    for variable in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"] {
        for (line, said) in [("ready", "ready"), ("call chat_room/a read", "[]")] {
            let mut command = site.command(&format!("{line} --node {} --token-file ada.token", node.url));
            let output = command.env(variable, &address).output().unwrap();
            assert_eq!((text(&output.stdout).trim(), text(&output.stderr).as_str()), (said, ""), "{variable}");
        }
    }
    assert_eq!(seen.load(Ordering::SeqCst), 0, "the proxy was asked");
    let mut command = site.command(&format!("call chat_room/a read --node {}", node.url));
    assert_eq!(text(&command.env("GREENROOM_TOKEN", &token).output().unwrap().stdout).trim(), "[]");
    let mut command = site.command(&format!("call chat_room/a read --node {}", node.url));
    let refused = text(&command.env("GREENROOM_TOKEN", "two words").output().unwrap().stderr);
    assert!(refused.contains("GREENROOM_TOKEN is no token") && !refused.contains("two words"), "{refused}");
    // Another machine is asked by way of the proxy.
    let mut command = site.command("ready --node http://node.invalid:7070");
    let output = command.env("HTTP_PROXY", &address).env_remove("NO_PROXY").output().unwrap();
    assert!(!output.status.success());
    assert!(seen.load(Ordering::SeqCst) > 0, "{output:?}");
    node.stop(&site);
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn certificates_are_made_checked_and_not_overwritten() {
    let site = Site::new();
    assert!(site.fails("certs node d").contains("greenroom certs ca d"));
    assert!(site.done("certs ca d --cluster music").contains("greenroom certs node d"));
    let key = site.read("d/ca.key");
    assert!(site.fails("certs ca d").contains("--force"));
    let next = site.done("certs node d --name a --host a.example.org --days 9");
    assert!(next.contains("greenroom node --tls-dir d/a --cluster music --name a"), "{next}");
    site.done("certs node d");
    site.done("certs client d --name ada");
    for file in ["d/ca.key", "d/node.key", "d/a/node.key", "d/ada/client.key"] {
        assert_eq!(site.mode(file), 0o600, "{file}");
    }
    assert!(site.fails("certs node d").contains("is there already"));
    site.done("certs node d --force");
    assert_eq!(site.read("d/ca.key"), key);
    let said = site.done("certs check d/a");
    assert!(said.contains("node \"a\" of cluster \"music\"") && said.contains(" days more"), "{said}");
    // A certificate of another authority is told from a good one.
    site.done("certs ca e --cluster music");
    std::fs::copy(site.0.path().join("e/ca.pem"), site.0.path().join("d/a/ca.pem")).unwrap();
    assert!(site.fails("certs check d/a").contains("authority"));
    std::fs::set_permissions(site.0.path().join("d/node.key"), PermissionsExt::from_mode(0o644)).unwrap();
    assert!(site.done("certs check d").contains("chmod 600 d/node.key"));
}

/// A node with everything on, which logs all that it can.
struct Node {
    child: Child,
    url: String,
    said: BufReader<std::process::ChildStdout>,
}

impl Node {
    fn start(site: &Site, more: &str) -> Self {
        let line = format!("node --listen 127.0.0.1:0 --http 127.0.0.1:0 --shards 1{more}");
        let mut command = site.command(&line);
        command.env("RUST_LOG", "trace").stdout(Stdio::piped());
        let log = std::fs::File::create(site.0.path().join("log")).unwrap();
        let mut child = command.stderr(log).spawn().expect("the program starts");
        let mut said = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut line = String::new();
        while !line.contains("its HTTP door is at ") {
            line.clear();
            assert_ne!(said.read_line(&mut line).unwrap(), 0, "it ended: {}", site.read("log"));
        }
        let url = line.trim_end().rsplit(' ').next().unwrap().replace("127.0.0.1", "localhost");
        Self { child, url, said }
    }

    /// Stops it; all that it has said.
    fn stop(mut self, site: &Site) -> String {
        // SAFETY: the child has not been waited for, so that its id is still its own.
        unsafe { libc::kill(self.child.id() as i32, libc::SIGTERM) };
        let mut said = String::new();
        self.said.read_to_string(&mut said).unwrap();
        self.child.wait().unwrap();
        said + &site.read("log")
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn page(node: &Node, ca: &Path, path: &str, authorization: &str) -> (u16, String) {
    let ca = Certificate::from_pem(&std::fs::read(ca).unwrap()).unwrap();
    let tls = TlsConfig::builder()
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .root_certs(RootCerts::new_with_certs(&[ca]))
        .build();
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).tls_config(tls).build().into();
    let mut answer = agent.get(format!("{}{path}", node.url)).header("authorization", authorization).call().unwrap();
    (answer.status().as_u16(), answer.body_mut().read_to_string().unwrap())
}

#[test]
fn what_is_secret_is_in_no_log_error_metric_or_status() {
    let site = Site::new();
    site.done("certs ca d");
    site.done("certs node d");
    let ada = site.done("token ada --role chatter --file tokens.toml");
    let ops = site.done("token ops --role admin --file tokens.toml");
    let plain = "plain-0123456789abcdef";
    let entry = format!("\n[[token]]\nname = \"plain\"\ntoken = \"{plain}\"\n");
    site.write("tokens.toml", &(site.read("tokens.toml") + &entry));
    site.write("ada.token", &ada);
    site.write("ops.token", &ops);
    site.write("wrong.token", "wrong-0123456789abcdef\n");
    site.write(
        "node.toml",
        "reload_every = 0.05\nallow = [{ roles = [\"chatter\"], kind = \"chat_room\", methods = [\"*\"] }]\n",
    );
    let node = Node::start(&site, " --config node.toml --tls-dir d --tokens tokens.toml");
    assert!(node.url.starts_with("https://"), "{}", node.url);

    // Good ones and bad ones, by the program and by hand.
    let mut said = String::new();
    let call =
        format!("call chat_room/lobby post {{\"user\":\"ada\",\"text\":\"hi\"}} --node {} --ca d/ca.pem", node.url);
    said += &site.done(&format!("{call} --token-file ada.token"));
    said += &site.done(&format!("status --node {} --ca d/ca.pem --token-file ops.token", node.url));
    for (token, complaint) in [("wrong.token", "not known here"), ("ada.token", "nothing allows \"ada\"")] {
        let call = call.replace("chat_room", "counter");
        let refused = site.fails(&format!("{call} --token-file {token}"));
        assert!(refused.contains(complaint), "{refused}");
        said += &refused;
    }
    let refused = site.fails(&call);
    assert!(refused.contains("takes credentials"), "{refused}");
    let ca = site.0.path().join("d/ca.pem");
    let jwt = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJyb290In0.c2VjcmV0LXNpZ25hdHVyZQ";
    for token in [ops.trim(), ada.trim(), plain, "wrong-0123456789abcdef", jwt] {
        for path in ["/", "/metrics", "/-/status", "/chat_room/lobby/post"] {
            let (status, body) = page(&node, &ca, path, &format!("Bearer {token}"));
            assert!((200..500).contains(&status), "{status} {body}");
            said += &body;
        }
    }
    let (_, body) = page(&node, &ca, "/", "Basic d3JvbmctMDEyMzQ1Njc4OWFiY2RlZg==");
    said += &body;
    // A token that is sent in plain by mistake, to a door that speaks HTTPS.
    let address = node.url.trim_start_matches("https://").replace("localhost", "127.0.0.1");
    let mut mistaken = std::net::TcpStream::connect(address).unwrap();
    write!(mistaken, "GET / HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\r\n", ops.trim()).unwrap();
    let mut answer = String::new();
    mistaken.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("https://"), "{answer}");
    said += &answer;
    drop(mistaken);
    // Files that cannot be used are complained of.
    site.write("tokens.toml", &format!("[[token]]\nname = \"x\"\ntoken = {plain}\n"));
    site.write("d/node.key", &site.read("d/node.key").replace("BEGIN", "BEGUN"));
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !(site.read("log").contains("the tokens") && site.read("log").contains("the node's private key")) {
        assert!(std::time::Instant::now() < until, "nothing is complained of: {}", site.read("log"));
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    said += &node.stop(&site);
    assert!(said.contains("TRACE") || said.contains("DEBUG"), "the node logged nothing");

    let key_lines = |file: &str| -> Vec<String> {
        site.read(file).lines().filter(|line| !line.starts_with("-----")).map(str::to_owned).collect()
    };
    let mut secrets = [key_lines("d/node.key"), key_lines("d/ca.key")].concat();
    secrets.extend([ada.trim(), ops.trim(), plain, "wrong-0123456789abcdef", jwt].map(str::to_owned));
    secrets.extend(["c2VjcmV0LXNpZ25hdHVyZQ", "d3JvbmctMDEyMzQ1Njc4OWFiY2RlZg"].map(str::to_owned));
    for secret in secrets {
        assert!(secret.len() >= 16 && !said.contains(&secret), "it tells {secret:?}");
    }
}

/// A cluster's folder: its authority, a node's certificate, and how it joins the other one.
fn cluster(name: &str, gateways: &[(&str, u16)]) -> Site {
    let site = Site::new();
    site.done(&format!("certs ca d --cluster {name}"));
    site.done("certs node d");
    let mut config = format!("cluster = {name:?}\n[geo]\nepoch = 1\n");
    for (cluster, port) in gateways.iter().filter(|(cluster, _)| *cluster == name) {
        config += &format!("gateway = \"127.0.0.1:{port}\" # {cluster}\n");
    }
    for (cluster, port) in gateways {
        config += &format!("[geo.clusters.{cluster}]\ngateways = [\"127.0.0.1:{port}\"]\n");
    }
    site.write("node.toml", &config);
    site
}

/// What `greenroom clusters status` says of `other`, once it says that.
fn status(site: &Site, node: &Node, wanted: impl Fn(&str) -> bool) -> String {
    let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
    loop {
        let said = site.done(&format!("clusters status --node {} --ca d/ca.pem --token-file ops.token", node.url));
        if wanted(&said) {
            return said;
        }
        assert!(std::time::Instant::now() < until, "{said}\n{}", site.read("log"));
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
}

#[test]
fn clusters_trust_the_authorities_that_they_are_told_and_each_for_its_own_cluster() {
    let gateways = [("eu", free_port()), ("us", free_port())];
    let (eu, us) = (cluster("eu", &gateways), cluster("us", &gateways));
    for (site, other) in [(&eu, &us), (&us, &eu)] {
        site.write("other.pem", &other.read("d/ca.pem"));
        assert!(site.fails("certs trust d d/ca.key").contains("private key"));
        assert!(site.fails("certs trust d node.toml").contains("no certificate"));
        assert!(site.fails("certs trust d missing.pem").contains("cannot read missing.pem"));
        assert!(site.done("certs trust d other.pem").contains("2 authorities"));
        let token = site.done("token ops --role admin --file tokens.toml");
        site.write("ops.token", &token);
    }
    let start = |site: &Site| Node::start(site, " --config node.toml --tls-dir d --tokens tokens.toml");
    let (a, b) = (start(&eu), start(&us));
    for (site, node) in [(&eu, &a), (&us, &b)] {
        let said = status(site, node, |said| said.contains(" ms away"));
        assert!(said.contains("this one") && !said.contains("does not answer"), "{said}");
    }
    drop(b);

    // Another us, whose authority nobody has told eu to trust.
    let stranger = cluster("us", &gateways);
    stranger.write("other.pem", &eu.read("d/ca.pem"));
    stranger.done("certs trust d other.pem");
    let token = stranger.done("token ops --role admin --file tokens.toml");
    stranger.write("ops.token", &token);
    let _c = start(&stranger);
    let said = status(&eu, &a, |said| said.contains("does not answer") && said.contains("authorit"));
    assert!(said.contains("us"), "{said}");
}

#[test]
fn a_program_that_would_send_a_token_in_the_open_does_not() {
    let site = Site::new();
    site.write("ada.token", "ada-0123456789abcdef\n");
    let refused = site.fails("status --node http://203.0.113.1:7070 --token-file ada.token");
    assert!(refused.contains("use https://") && !refused.contains("ada-0123"), "{refused}");
}

#[test]
fn a_page_whose_own_name_leads_to_a_node_does_not_drain_it() {
    let site = Site::new();
    let mut node = Node::start(&site, " --name a --http-host games.example.org");
    let address = node.url.trim_start_matches("http://").replace("localhost", "127.0.0.1");
    let drain = |host: &str| {
        let mut stream = std::net::TcpStream::connect(&address).unwrap();
        let head = format!("POST /-/drain/a HTTP/1.1\r\nhost: {host}\r\norigin: http://{host}\r\n");
        write!(stream, "{head}greenroom-change: a new disk\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let refused = drain("evil.example");
    assert!(refused.starts_with("HTTP/1.1 421 ") && refused.contains("http_hosts"), "{refused}");
    assert!(site.done(&format!("status --node {}", node.url)).contains("active"), "it is as it was");
    let drained = drain("games.example.org");
    assert!(drained.starts_with("HTTP/1.1 202 "), "{drained}");
    assert!(node.child.wait().unwrap().success(), "{}", site.read("log"));
}

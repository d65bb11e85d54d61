//! Credentials and rules at the HTTP door.

use greenroom::{Auth, ConsoleMode, Rule};

use super::client::{Answer, ask, get, get_secure, post, post_secure};
use super::*;

/// Says on whose behalf it was called.
#[derive(Default, Actor)]
struct Mirror;

#[actor]
impl Mirror {
    pub async fn who(&self, cx: &Cx) -> Option<String> {
        let who = cx.principal()?;
        Some(format!("{}: {}", who.name(), who.roles().collect::<Vec<_>>().join(", ")))
    }

    /// Fails, and says so.
    pub async fn crack(&self) -> Result<(), String> {
        Err("the secret is 42".to_owned())
    }

    /// Asks another mirror, which may be on another node.
    pub async fn ask(&self, cx: &Cx, key: String) -> Option<String> {
        MirrorRef::of(cx, key).who().await.unwrap_or_else(|error| panic!("{error}"))
    }
}

/// Has something stored.
#[derive(Default, serde::Serialize, serde::Deserialize, Actor)]
struct Purse {
    coins: u32,
}

#[actor(persistent)]
impl Purse {
    pub async fn fill(&mut self, cx: &Cx, coins: u32) -> Result<(), StateError> {
        self.coins = coins;
        cx.save(self).await
    }
}

pub(super) const ADA: &str = "authorization: Bearer ada-0123456789abcdef";
pub(super) const BOB: &str = "Authorization: bearer bob-0123456789abcdef";
pub(super) const OPS: &str = "authorization: Bearer ops-0123456789abcdef";
pub(super) const OPERATOR: &str = "authorization: Bearer opr-0123456789abcdef";
pub(super) const VIEWER: &str = "authorization: Bearer vie-0123456789abcdef";
const SCRAPER: &str = "authorization: Bearer scr-0123456789abcdef";

pub(super) fn tokens(names: &[(&str, &str, &str)]) -> String {
    names
        .iter()
        .map(|(name, role, token)| format!("[[token]]\nname = {name:?}\nroles = [{role:?}]\ntoken = {token:?}\n"))
        .collect()
}

fn all_tokens() -> String {
    tokens(&[
        ("ada", "user", "ada-0123456789abcdef"),
        ("bob", "guest", "bob-0123456789abcdef"),
        ("ops", "admin", "ops-0123456789abcdef"),
        ("eve", "operator", "opr-0123456789abcdef"),
        ("vic", "viewer", "vie-0123456789abcdef"),
        ("scraper", "metrics", "scr-0123456789abcdef"),
    ])
}

pub(super) fn rule(roles: &[&str], kind: &str, methods: &[&str], keys: &str) -> Rule {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    Rule { roles: owned(roles), kind: kind.into(), methods: owned(methods), keys: keys.into(), issuer: None }
}

fn rules() -> Vec<Rule> {
    vec![
        rule(&["user"], "mirror", &["*"], "*"),
        rule(&["guest"], "mirror", &["who"], "{name}"),
        rule(&["anonymous"], "mirror", &["who"], "public"),
    ]
}

impl Site {
    /// A node with a plain door and tokens.
    pub(super) async fn guarded(&self, name: &str) -> (Node, String) {
        self.guarded_by(name, rules(), |builder| builder).await
    }

    /// The same with other rules and kinds.
    pub(super) async fn guarded_by(
        &self,
        name: &str,
        rules: Vec<Rule>,
        more: impl FnOnce(Builder) -> Builder,
    ) -> (Node, String) {
        let tokens = self.folder.path().join("tokens.toml");
        write(&tokens, &all_tokens());
        let auth = Auth { tokens: Some(tokens), ..Auth::default() };
        let node = more(self.builder(name, None))
            .http("127.0.0.1:0")
            .configure(|config| (config.auth, config.allow) = (auth, rules))
            .register::<Mirror>()
            .start()
            .await
            .unwrap_or_else(|error| panic!("{error}"));
        let door = node.http_address().unwrap();
        (node, door)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_may_do_what_a_rule_allows_and_nothing_else() {
    let site = Site::new("music");
    let (node, door) = site.guarded("a").await;
    for (header, path, status) in [
        (ADA, "/mirror/x/who", 200),
        (ADA, "/mirror/x/ask", 400),
        (BOB, "/mirror/bob/who", 200),
        (BOB, "/mirror/x/who", 403),
        (BOB, "/mirror/bob/ask", 403),
        (BOB, "/counter/bob/add", 403),
        (ADA, "/counter/x/add", 403),
        (ADA, "/no_such_kind/x/add", 403),
        (OPS, "/counter/x/place", 200),
        (OPS, "/no_such_kind/x/add", 404),
        ("x: y", "/mirror/public/who", 200),
        ("x: y", "/mirror/x/who", 401),
        ("x: y", "/no_such_kind/x/y", 401),
    ] {
        let answer = post(&door, path, &[header], "{}").await;
        assert_eq!(answer.status, status, "{header} {path}: {answer:?}");
    }
    let refused = post(&door, "/mirror/x/who", &[BOB], "").await;
    assert!(refused.body.contains(r#"roles = [\"guest\"], kind = \"mirror\", methods = [\"who\"]"#), "{refused:?}");
    assert_eq!(node.activations(), 4, "who was refused has activated nothing");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_for_those_whose_role_they_are_for() {
    let site = Site::new("music");
    let (node, door) = site.guarded("a").await;
    for (path, anybody, known, scraper, viewer, operator, ops) in [
        ("/healthz", 200, 200, 200, 200, 200, 200),
        ("/readyz", 200, 200, 200, 200, 200, 200),
        ("/", 401, 200, 200, 200, 200, 200),
        ("/-/whoami", 401, 200, 200, 200, 200, 200),
        ("/metrics", 401, 403, 200, 403, 403, 200),
        ("/-/status", 401, 403, 403, 200, 200, 200),
        ("/-/overview", 401, 403, 403, 200, 200, 200),
        ("/-/events", 401, 403, 403, 200, 200, 200),
        ("/-/actors", 401, 403, 403, 200, 200, 200),
        // Who takes no events is told so who may look.
        ("/-/tail", 401, 403, 403, 406, 406, 406),
        ("/-/state", 401, 403, 403, 200, 200, 200),
        ("/-/state/counter/self/x", 401, 403, 403, 404, 404, 404),
        ("/-/inspect/mirror/x", 401, 403, 403, 200, 200, 200),
        ("/-/reminders", 401, 403, 403, 200, 200, 200),
        ("/-/reminders/mirror/x", 401, 403, 403, 200, 200, 200),
        // This node has neither a journal nor other clusters, which those are told who may ask.
        ("/-/clusters", 401, 403, 403, 400, 400, 400),
        ("/-/reliable/parked", 401, 403, 403, 400, 400, 400),
        ("/-/reliable/actor/mirror/x", 401, 403, 403, 403, 400, 400),
    ] {
        let operate = [(VIEWER, viewer), (OPERATOR, operator), (OPS, ops)];
        let wanted = [("x: y", anybody), (ADA, known), (SCRAPER, scraper)].into_iter().chain(operate);
        for (header, status) in wanted {
            assert_eq!(get(&door, path, &[header]).await.status, status, "{header} {path}");
        }
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_sees_no_error_and_changes_nothing_and_an_operator_no_list_of_clusters() {
    let site = Site::new("music");
    let (node, door) = site.guarded("a").await;
    assert_eq!(post(&door, "/mirror/x/crack", &[ADA], "{}").await.status, 422);
    for (who, sees) in [(VIEWER, false), (OPERATOR, true), (OPS, true)] {
        let failed = get(&door, "/-/turns?outcome=failed", &[who]).await;
        assert!(failed.body.contains("mirror/x"), "{who}: {failed:?}");
        assert_eq!(failed.body.contains("the secret is 42"), sees, "{who}: {failed:?}");
    }
    for (path, viewer, operator, ops) in [
        ("/-/optimiser/pause", 403, 200, 200),
        // Actors of this kind do not say what they carry, which those are told who may ask.
        ("/-/migrate/mirror/x/a", 403, 400, 400),
        ("/-/drain/nobody", 403, 404, 404),
        ("/-/actors/mirror/nobody/deactivate", 403, 202, 202),
        ("/-/clusters/drain/other", 403, 403, 400),
    ] {
        for (who, status) in [(VIEWER, viewer), (OPERATOR, operator), (OPS, ops)] {
            let answer = post(&door, path, &[who], "").await;
            assert_eq!(answer.status, status, "{who} {path}: {answer:?}");
        }
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_stored_is_shown_to_no_viewer_and_changed_for_admins_alone() {
    let site = Site::new("music");
    let rules = vec![rule(&["user"], "purse", &["*"], "*")];
    let (node, door) = site.guarded_by("a", rules, |builder| builder.register::<Purse>()).await;
    assert_eq!(post(&door, "/purse/p/fill", &[ADA], r#"{"coins":4711}"#).await.status, 200);
    assert_eq!(post(&door, "/-/actors/purse/p/deactivate", &[OPERATOR], "").await.status, 202);
    let path = "/-/state/purse/self/p";
    let mut version = String::new();
    for (who, sees) in [(VIEWER, false), (OPERATOR, true), (OPS, true)] {
        let told = get(&door, path, &[who]).await;
        let json: serde_json::Value = serde_json::from_str(&told.body).unwrap();
        let shown = (json.get("value").is_some(), json.get("raw").is_some(), told.body.contains("4711"));
        assert_eq!(shown, (sees, sees, sees), "{who}: {told:?}");
        version = json["version"].as_str().unwrap().to_owned();
    }
    let matches = format!("if-match: {version}");
    let ends = format!("{path}?deactivate=true");
    for who in [VIEWER, OPERATOR, ADA, SCRAPER, "x: y"] {
        for (method, body) in [("PUT", r#"{"coins":1}"#), ("DELETE", "")] {
            let refused = ask(method, &door, &ends, &[who, &matches], body).await.status;
            assert_eq!(refused, if who == "x: y" { 401 } else { 403 }, "{who} {method}");
        }
    }
    let cancelled = "/-/reminders/purse/p/rent";
    assert_eq!(ask("DELETE", &door, cancelled, &[VIEWER], "").await.status, 403);
    assert_ne!(ask("DELETE", &door, cancelled, &[OPERATOR], "").await.status, 403);
    let retried = "/-/reminders/purse/p/rent/retry";
    assert_eq!(ask("POST", &door, retried, &[VIEWER], "").await.status, 403);
    assert_ne!(ask("POST", &door, retried, &[OPERATOR], "").await.status, 403);
    let still = get(&door, path, &[OPS]).await;
    assert!(still.body.contains("4711") && still.body.contains(&version), "{still:?}");
    assert_eq!(ask("PUT", &door, &ends, &[OPS, &matches], r#"{"coins":1}"#).await.status, 200);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_a_door_with_credentials_only_look_unless_the_node_says_more() {
    let site = Site::new("music");
    let page = [OPERATOR, "origin: http://localhost", "greenroom-change: a test"];
    for (mode, told, status) in [(None, "look", 403), (Some(ConsoleMode::Change), "change", 200)] {
        let (node, door) =
            site.guarded_by("a", rules(), |builder| builder.configure(|config| config.console = mode)).await;
        let who: serde_json::Value = serde_json::from_str(&get(&door, "/-/whoami", &[VIEWER]).await.body).unwrap();
        assert_eq!(who["console"], told);
        let changed = post(&door, "/-/optimiser/pause", &page, "").await;
        assert_eq!(changed.status, status, "{changed:?}");
        assert_eq!(changed.body.contains("only-looks"), status == 403, "{changed:?}");
        assert_eq!(post(&door, "/-/optimiser/resume", &[OPERATOR], "").await.status, 200, "a program is no page");
        node.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_are_hidden_are_shown_to_no_viewer_on_any_page() {
    let site = Site::new("music");
    let hide = |builder: Builder| builder.configure(|config| config.hide_keys = vec!["mirror".to_owned()]);
    let (node, door) = site.guarded_by("a", rules(), hide).await;
    let key = "ada-lovelace-1815";
    for method in ["crack", "who"] {
        post(&door, &format!("/mirror/{key}/{method}"), &[ADA], "{}").await;
    }
    assert_eq!(post(&door, &format!("/-/actors/mirror/{key}/deactivate"), &[OPERATOR], "").await.status, 202);
    post(&door, &format!("/mirror/{key}/who"), &[ADA], "{}").await;
    assert_eq!(post(&door, "/counter/plain-key/place", &[OPS], "{}").await.status, 200);
    // Where the key stands for who may see it.
    for path in ["/-/actors", "/-/turns?outcome=failed", "/-/events"] {
        let (viewer, operator) = (get(&door, path, &[VIEWER]).await, get(&door, path, &[OPERATOR]).await);
        assert!(operator.body.contains(key), "{path}: {operator:?}");
        assert!(!viewer.body.contains(key), "{path}: {viewer:?}");
    }
    let listed = get(&door, "/-/actors", &[VIEWER]).await;
    assert!(listed.body.contains("\"mirror/#") && listed.body.contains("counter/plain-key"), "{listed:?}");
    for path in [
        "/-/overview",
        "/-/findings",
        "/-/waits",
        "/-/pids",
        "/-/optimiser",
        "/-/optimiser/moves",
        "/-/reminders",
        "/-/state",
        "/-/status",
    ] {
        let viewer = get(&door, path, &[VIEWER]).await;
        assert!(viewer.status == 200 && !viewer.body.contains(key), "{path}: {viewer:?}");
    }
    for path in [
        format!("/-/inspect/mirror/{key}"),
        format!("/-/optimiser/explain/mirror/{key}"),
        format!("/-/reminders/mirror/{key}"),
        format!("/-/state/mirror/self/{key}"),
        "/-/actors?prefix=ada".to_owned(),
        "/-/actors?kind=mirror&order=key".to_owned(),
        format!("/-/events?subject=mirror%2F{key}"),
        "/-/state?prefix=mirror%2Fself%2Fada".to_owned(),
    ] {
        let viewer = get(&door, &path, &[VIEWER]).await;
        assert!(viewer.status == 403 && viewer.body.contains("hide_keys"), "{path}: {viewer:?}");
        let operator = get(&door, &path, &[OPERATOR]).await;
        assert!(operator.status != 403, "{path}: {operator:?}");
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_for_a_bug_report_has_no_keys_and_nothing_that_errors_say() {
    let site = Site::new("music");
    let (node, door) = site.guarded("a").await;
    let key = "ada-lovelace-1815";
    assert_eq!(post(&door, &format!("/mirror/{key}/crack"), &[ADA], "{}").await.status, 422);
    assert_eq!(post(&door, &format!("/-/actors/mirror/{key}/deactivate"), &[OPERATOR], "").await.status, 202);
    for who in [VIEWER, OPERATOR, OPS] {
        let file = get(&door, "/-/support", &[who]).await;
        assert!(file.status == 200 && file.body.contains("mirror/#") && file.body.contains("crack"), "{who}: {file:?}");
        assert!(!file.body.contains(key) && !file.body.contains("the secret is 42"), "{who}: {file:?}");
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_is_told_who_they_are_and_what_they_may_do() {
    let site = Site::new("music");
    let (node, door) = site.guarded("a").await;
    for (who, name, may) in [
        (ADA, "ada", [false; 4]),
        (VIEWER, "vic", [true, false, false, false]),
        (OPERATOR, "eve", [true, true, true, false]),
        (OPS, "ops", [true; 4]),
    ] {
        let told: serde_json::Value = serde_json::from_str(&get(&door, "/-/whoami", &[who]).await.body).unwrap();
        assert_eq!((&told["name"], &told["open"]), (&name.into(), &false.into()), "{told}");
        assert_eq!(["look", "values", "operate", "change"].map(|what| told["may"][what] == true), may, "{told}");
    }
    node.stop().await;
}

fn assert_unauthenticated(answer: &Answer, why: &str) {
    assert_eq!(answer.status, 401, "{answer:?}");
    assert!(answer.head.contains("www-authenticate: bearer realm=\"greenroom\""), "{answer:?}");
    assert!(answer.body.contains(why), "{why}: {answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_credentials_are_refused_even_where_none_are_wanted() {
    let site = Site::new("music");
    let (node, door) = site.guarded("a").await;
    let path = "/mirror/public/who";
    for (headers, why) in [
        (&["authorization: Bearer ada-0123456789abcdee"][..], "not known here"),
        (&["authorization: Bearer "], "not `Bearer` and a token"),
        (&["authorization: Basic YWRhOmFkYQ=="], "not `Bearer` and a token"),
        (&[ADA, BOB], "several headers"),
    ] {
        let answer = post(&door, path, headers, "{}").await;
        assert_unauthenticated(&answer, why);
        assert!(answer.head.contains("error=\"invalid_token\""), "{answer:?}");
    }
    assert_unauthenticated(&post(&door, "/mirror/x/who", &[], "{}").await, "takes credentials");
    let long = format!("authorization: Bearer {}", "x".repeat(9000));
    assert_unauthenticated(&post(&door, path, &[&long], "{}").await, "too long");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_taken_out_of_the_file_is_worth_nothing_soon_after() {
    let site = Site::new("music");
    let (node, door) = site.guarded("a").await;
    let ask = async || post(&door, "/mirror/x/who", &[ADA], "{}").await.status;
    assert_eq!(ask().await, 200);
    let file = site.folder.path().join("tokens.toml");
    write(&file, "[[token]\nname = broken");
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(ask().await, 200, "a broken file revokes nothing");
    write(&file, &tokens(&[("ops", "admin", "ops-0123456789abcdef")]));
    let until = std::time::Instant::now() + Duration::from_secs(10);
    while ask().await != 401 {
        assert!(std::time::Instant::now() < until, "the token is still taken");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(post(&door, "/mirror/x/who", &[OPS], "{}").await.status, 200);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_principal_travels_with_the_call_and_the_calls_that_it_leads_to() {
    let site = Site::new("music");
    let (a, door) = site.guarded("a").await;
    let b = site.builder("b", None).register::<Mirror>().start().await.unwrap();
    while a.members().len() < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for key in 0..32 {
        let answer = post(&door, "/mirror/x/ask", &[ADA], &format!("{{\"key\": \"{key}\"}}")).await;
        assert_eq!(answer.body, "\"ada: user\"", "{answer:?}");
    }
    assert!(b.activations() > 0, "all mirrors were on one node");
    assert_eq!(post(&door, "/mirror/public/who", &[], "{}").await.body, "null");
    let direct = MirrorRef::of(&a, "direct").who().await.unwrap();
    assert_eq!(direct, None, "a program's own calls are on nobody's behalf");
    a.stop().await;
    b.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_credentials_the_door_is_open_to_this_machine() {
    let node = Node::builder().http("127.0.0.1:0").register::<Counter>().start().await.unwrap();
    let door = node.http_address().unwrap();
    assert_eq!(post(&door, "/counter/x/place", &[], "{}").await.status, 200);
    assert_eq!(get(&door, "/-/status", &[]).await.status, 200);
    // Who shows credentials means them to count, and here none do.
    for header in [ADA, "authorization: Basic YWRhOmFkYQ=="] {
        for path in ["/counter/x/place", "/-/drain/a"] {
            assert_unauthenticated(&post(&door, path, &[header], "{}").await, "no `auth`");
        }
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_by_a_proxy_is_not_on_this_machine() {
    let start = async |proxied: bool| {
        let configured = Node::builder().http("127.0.0.1:0").configure(|config| config.http_proxied = proxied);
        let node = configured.register::<Counter>().start().await.unwrap();
        let door = node.http_address().unwrap();
        (node, door)
    };
    let (node, door) = start(false).await;
    for header in ["x-forwarded-for: 203.0.113.7", "Forwarded: for=203.0.113.7", "x-real-ip: 203.0.113.7", "via: 1.1 a"]
    {
        assert_eq!(get(&door, "/-/status", &[header]).await.status, 403, "{header}");
        assert_eq!(post(&door, "/counter/x/place", &[header], "{}").await.status, 200, "{header}");
    }
    assert_eq!(get(&door, "/-/status", &[]).await.status, 200);
    node.stop().await;
    // Many proxies say nothing of whom they serve.
    let (node, door) = start(true).await;
    for path in ["/-/status", "/-/reminders", "/-/pids"] {
        let refused = get(&door, path, &[]).await;
        assert!(refused.status == 403 && refused.body.contains("by no proxy"), "{path}: {refused:?}");
    }
    assert_eq!(post(&door, "/counter/x/place", &[], "{}").await.status, 200);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_door_speaks_https_and_knows_clients_by_their_certificates() {
    let site = Site::new("music");
    let files = site.files("a", &site.authority, Who::AnyNode);
    let auth = Auth { certificates: [("ada".to_owned(), vec!["user".to_owned()])].into(), ..Auth::default() };
    let node = site
        .builder("a", Some(files))
        .http("127.0.0.1:0")
        .configure(|config| (config.auth, config.allow) = (auth, rules()))
        .register::<Mirror>()
        .start()
        .await
        .unwrap();
    assert_eq!(node.http_scheme(), "https");
    let door = node.http_address().unwrap();
    let client = |name: &str, authority: &Authority, ca: &Authority| {
        let folder = tempfile::tempdir().unwrap();
        let issued = authority.issue(Who::Client(name.into()), &[], (-1, 1)).unwrap();
        write(&folder.path().join("ca.pem"), &ca.pem().cert);
        write(&folder.path().join("client.pem"), &issued.cert);
        write(&folder.path().join("client.key"), &issued.key);
        folder
    };
    let ada = client("ada", &site.authority, &site.authority);
    assert_eq!(get_secure(&door, ada.path(), "/", &[]).await.unwrap().status, 200);
    let bob = client("bob", &site.authority, &site.authority);
    let refused = get_secure(&door, bob.path(), "/", &[]).await.unwrap();
    assert_unauthenticated(&refused, "auth.certificates");
    // A certificate of somebody else ends the connection; without any, the door answers what is for everybody.
    let strange = client("ada", &Authority::new("music").unwrap(), &site.authority);
    assert!(get_secure(&door, strange.path(), "/", &[]).await.is_ok_and(|answer| answer.status == 0));
    std::fs::remove_file(ada.path().join("client.pem")).unwrap();
    assert_eq!(get_secure(&door, ada.path(), "/healthz", &[]).await.unwrap().status, 200);
    assert_eq!(get_secure(&door, ada.path(), "/", &[]).await.unwrap().status, 401);
    // Nodes' certificates are no clients'.
    for (from, to) in [("node.pem", "client.pem"), ("node.key", "client.key")] {
        std::fs::copy(site.folder.path().join("a").join(from), ada.path().join(to)).unwrap();
    }
    assert_eq!(get_secure(&door, ada.path(), "/", &[]).await.unwrap().status, 401);
    for len in [100_000, 1_200_000, 4_000_000] {
        let refused = post_secure(&door, ada.path(), "/mirror/a/who", &[ADA], &"x".repeat(len)).await;
        assert_eq!(refused.status, 401, "{len} bytes: {refused:?}");
    }
    let plain = get(&door, "/", &[]).await;
    assert!(plain.status == 400 && plain.body.contains("https://"), "{plain:?}");
    node.stop().await;
}

#[tokio::test]
async fn beyond_loopback_the_door_wants_tls_and_credentials() {
    let site = Site::new("music");
    let files = site.files("a", &site.authority, Who::AnyNode);
    let start = async |tls: bool, auth: bool| {
        let (files, folder) = (files.clone(), site.folder.path().join("tokens.toml"));
        write(&folder, &all_tokens());
        let change = move |config: &mut Config| {
            config.tls = tls.then_some(files);
            config.auth.tokens = auth.then_some(folder);
        };
        let started = site.builder("a", None).configure(change).http("0.0.0.0:0").start().await;
        started.map(drop).err().map(|error| error.to_string())
    };
    for (tls, auth, missing) in [
        (false, false, "without TLS and credentials"),
        (true, false, "without credentials"),
        (false, true, "without TLS"),
    ] {
        let error = start(tls, auth).await.expect("it is refused");
        assert!(error.contains(missing) && error.contains("insecure_listen"), "{error}");
    }
    assert_eq!(start(true, true).await, None);
}

//! Real processes of several clusters, which a cut parts in two sides while operators remove what they cannot reach.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use greenroom_engines::{Process, free_address};
use greenroom_relay::{Gates, Relay};

use crate::alone;

/// Clusters of one node each, on two sides of a link that can be cut.
struct Sides {
    sites: Vec<Site>,
    gates: Arc<Gates<bool>>,
    _directory: tempfile::TempDir,
}

struct Site {
    door: String,
    process: Process,
}

impl Sides {
    /// Clusters of these names, each near or far, once all hear each other. Their counters are pessimistic.
    fn start(clusters: &[(&str, bool)]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let gates = Arc::new(Gates::default());
        let gateways = clusters.iter().map(|(name, near)| {
            let own = free_address();
            let relay = Relay::new(own.clone(), gates.clone()).between(!near, *near);
            let far = relay.start(TcpListener::bind("127.0.0.1:0").expect("a free port")).expect("it listens");
            (*name, *near, own, far.to_string())
        });
        let gateways: Vec<_> = gateways.collect();
        let sites = gateways.iter().map(|(name, near, own, _)| {
            let mut file = format!("cluster = \"{name}\"\n[geo]\ngateway = \"{own}\"\nlost_after = 10\n");
            for (other, side, own, far) in &gateways {
                let gateway = if side == near { own } else { far };
                file += &format!("[geo.clusters.{other}]\ngateways = [\"{gateway}\"]\n");
            }
            Site::start(name, &(file + "[geo.kinds.counter]\nactivation = \"pessimistic\"\n"), directory.path())
        });
        let sides = Self { sites: sites.collect(), gates, _directory: directory };
        for site in &sides.sites {
            site.until(|said| said.contains(&format!("confirmed by {0} of {0} clusters", clusters.len())));
        }
        sides
    }
}

impl Site {
    fn start(name: &str, file: &str, directory: &Path) -> Self {
        let path = directory.join(format!("{name}.toml"));
        std::fs::write(&path, file).expect("the folder takes a file");
        let door = free_address();
        let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom"));
        command.args(["node", "--name", name, "--http", &door, "--shards", "1", "--kinds", "counter"]);
        command.arg("--table").arg(format!("sqlite:{}", directory.join(format!("{name}.db")).display()));
        command.arg("--config").arg(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { door, process: Process::start("a node", command).expect("the program starts") }
    }

    /// True if a counter answers.
    fn counts(&self, key: &str) -> bool {
        let config = ureq::Agent::config_builder().timeout_global(Some(Duration::from_secs(3)));
        let agent: ureq::Agent = config.http_status_as_error(false).build().into();
        let asked = agent.post(format!("http://{}/counter/{key}/add", self.door)).send(r#"{"amount": 1}"#);
        asked.is_ok_and(|answer| answer.status() == 200)
    }

    fn clusters(&self, action: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom"));
        let said = command.arg("clusters").args(action).args(["--node", &self.door]).output().expect("it runs");
        format!("{}{}", String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr))
    }

    /// Waits until `greenroom clusters status` shows it.
    fn until(&self, shown: impl Fn(&str) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !shown(&self.clusters(&["status"])) {
            assert!(Instant::now() < until, "it does not show it: {}", self.clusters(&["status"]));
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn counts_at_last(&self, key: &str) {
        let until = Instant::now() + PATIENCE;
        while !self.counts(key) {
            assert!(Instant::now() < until, "no counter answers: {}", self.clusters(&["status"]));
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

/// Both sides remove the other one; none of them owns what the other one may own.
fn removed_by_both(near: &[&str], far: &[&str]) {
    let clusters: Vec<_> = near.iter().map(|name| (*name, true)).chain(far.iter().map(|name| (*name, false))).collect();
    let mut sides = Sides::start(&clusters);
    let (one, other) = (&sides.sites[0], &sides.sites[near.len()]);
    other.counts_at_last("x");
    sides.gates.cut(&true, &false);
    for (site, all) in [(one, far), (other, near)] {
        site.until(|said| said.matches("does not answer").count() == all.len());
        let refused = site.clusters(&[&["remove", "--lost"], all].concat());
        assert!(refused.contains(&format!("{} of {} clusters would", near.len(), clusters.len())), "{refused}");
        assert!(refused.contains("--vouch"), "{refused}");
    }
    // Longer than `lost_after`, by the clock of each of them.
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(13) {
        assert!(!(one.counts("x") && other.counts("x")), "it has two owners");
        std::thread::sleep(Duration::from_millis(500));
    }
    one.until(|said| said.contains("not confirmed"));
    other.until(|said| said.contains("not confirmed"));
    sides.gates.heal(&true, &false);
    one.counts_at_last("x");
    other.counts_at_last("x");

    // Once the far ones do not run, the operator says so.
    sides.sites[near.len()..].iter_mut().for_each(|site| site.process.kill());
    let one = &sides.sites[0];
    one.until(|said| said.matches("does not answer").count() == far.len());
    let made = one.clusters(&[&["remove", "--lost", "--vouch"], far].concat());
    assert!(made.contains("list 2 is"), "{made}");
    one.counts_at_last("x");
    one.until(|said| said.contains("list 2, in force"));
}

#[test]
fn two_clusters_that_a_cut_parts_do_not_remove_each_other() {
    let _alone = alone();
    removed_by_both(&["eu"], &["us"]);
}

#[test]
fn two_pairs_of_clusters_that_a_cut_parts_never_own_one_actor_twice() {
    let _alone = alone();
    removed_by_both(&["a", "b"], &["l1", "l2"]);
}

/// Time for what comes by itself.
const PATIENCE: Duration = Duration::from_secs(90);

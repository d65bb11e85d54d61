//! Users whose hosts come in by the socket.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::*;

/// Users that nobody is.
const NAMED: u32 = 65_533;
const OTHER: u32 = 65_532;

/// A folder below one that all users reach, which the node makes, removed at the end.
struct Shared(PathBuf);

impl Shared {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("greenroom-users-{}-{name}", std::process::id())))
    }

    fn socket(&self) -> PathBuf {
        self.0.join("a.sock")
    }

    async fn node(&self, uids: Vec<u32>) -> Node {
        let listen = format!("unix:{}", self.socket().display());
        let builder = node().configure(|config| (config.hosts.listen, config.hosts.uids) = (listen, uids));
        open(builder).await.0
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

/// Returns true if a client of this user is welcomed.
async fn is_let_in(path: &Path, uid: u32) -> bool {
    let Ok(mut line) = Line::of_user(path, uid).await else { return false };
    line.say(&FromHost::Hello(Hello::new(HelloMap::new("client")))).await;
    line.hear(|frame| matches!(frame, FromNode::Welcome(_))).await.unwrap_or_default()
}

#[tokio::test]
async fn the_users_that_are_named_come_in_by_the_socket_and_no_others() {
    let (own, shared) = (Shared::new("own"), Shared::new("shared"));
    let (alone, open_to_some) = (own.node(Vec::new()).await, shared.node(vec![NAMED]).await);
    assert_eq!((mode(&own.0), mode(&own.socket())), (0o700, 0o600));
    assert_eq!((mode(&shared.0), mode(&shared.socket())), (0o711, 0o666));
    // SAFETY: it has no preconditions and cannot fail.
    if unsafe { libc::geteuid() } == 0 {
        assert!(is_let_in(&shared.socket(), NAMED).await);
        assert!(!is_let_in(&shared.socket(), OTHER).await);
        assert!(!is_let_in(&own.socket(), NAMED).await);
    } else {
        eprintln!("NOT TESTED: only root can act as another user");
    }
    alone.stop().await;
    open_to_some.stop().await;
}

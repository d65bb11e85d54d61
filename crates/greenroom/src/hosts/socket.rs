//! The socket by which hosts on the same machine come in.

use std::fs;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream as Probe;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};

use greenroom_world::Stream;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{UnixListener, UnixStream};

use crate::net::Lingering;

/// A connection on it.
pub(super) struct UnixLane(Lingering<UnixStream>);

impl UnixLane {
    pub(super) fn new(stream: UnixStream) -> Self {
        Self(Lingering::new(stream))
    }
}

/// A socket that goes with its listener.
pub(super) struct Bound {
    pub(super) listener: UnixListener,
    pub(super) path: PathBuf,
}

/// Where the node called `name` has its socket unless it is told otherwise.
pub(super) fn path_of(name: &str) -> PathBuf {
    // SAFETY: it has no preconditions and cannot fail.
    let uid = unsafe { libc::geteuid() };
    let folder = match std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty()) {
        Some(runtime) => PathBuf::from(runtime).join("greenroom"),
        None => PathBuf::from(format!("/tmp/greenroom-{uid}")),
    };
    folder.join(format!("{}.sock", name.replace('/', "_")))
}

/// Users that may connect to a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SocketUsers {
    Own,
    /// Others too: the system lets everybody connect, and the node asks it who has.
    Others,
}

/// Takes a socket for `users`.
///
/// # Errors
/// Why it cannot be had: somebody listens there, or the folder is another user's.
pub(super) fn bind(path: &Path, users: SocketUsers) -> io::Result<Bound> {
    let (folder_mode, mode) = match users {
        SocketUsers::Own => (0o700, 0o600),
        SocketUsers::Others => (0o711, 0o666),
    };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        own(folder, folder_mode)?;
        if users == SocketUsers::Others && fs::metadata(folder)?.mode() & 0o001 == 0 {
            let folder = folder.display();
            tracing::warn!(%folder, "the users in `hosts.uids` cannot reach the socket in this folder; run `chmod o+x` on it");
        }
    }
    if path.exists() {
        if Probe::connect(path).is_ok() {
            return Err(io::Error::new(
                io::ErrorKind::AddrInUse,
                "a node listens there; give this one another name or path",
            ));
        }
        // Its node was killed.
        fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    Ok(Bound { listener, path: path.to_owned() })
}

/// Makes a folder in which this user alone writes, unless it is there: then it must be nobody else's, and keeps its mode.
fn own(folder: &Path, mode: u32) -> io::Result<()> {
    if !folder.exists() {
        match fs::DirBuilder::new().recursive(true).mode(mode).create(folder) {
            // Whatever the process masks.
            Ok(()) => fs::set_permissions(folder, fs::Permissions::from_mode(mode))?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    let found = fs::symlink_metadata(folder)?;
    // SAFETY: it has no preconditions and cannot fail.
    let ours = found.uid() == unsafe { libc::geteuid() };
    let shared = found.mode() & 0o022 != 0 && found.mode() & 0o1000 == 0;
    if found.is_dir() && ours && !shared || found.uid() == 0 && !shared {
        return Ok(());
    }
    let why = format!("{} is another user's, or others may write there; use a folder of your own", folder.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

impl Drop for Bound {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The end of a host's process, if the system tells it.
pub(super) struct Process {
    handle: AsyncFd<OwnedFd>,
}

impl Process {
    /// The process with this number.
    pub(super) fn watch(pid: i32) -> Option<Self> {
        // SAFETY: the call takes two numbers, and gives a descriptor that nobody else has, or an error.
        let handle = unsafe {
            let opened = libc::syscall(libc::SYS_pidfd_open, pid, 0);
            (opened >= 0).then(|| OwnedFd::from_raw_fd(opened as i32))?
        };
        // SAFETY: the handle owns its descriptor, which nobody else closes.
        let registered = unsafe { AsyncFd::register_with_interest(handle, Interest::READABLE) };
        registered.ok().map(|handle| Self { handle })
    }

    /// Resolves once the process is no more.
    pub(super) async fn ended(&self) {
        if self.handle.readable().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Stream for UnixLane {
    fn rebind(self: Box<Self>) -> io::Result<Box<dyn Stream>> {
        let stream = UnixStream::from_std(self.0.into_inner().into_std()?)?;
        Ok(Box::new(UnixLane::new(stream)))
    }
}

impl AsyncRead for UnixLane {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for UnixLane {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

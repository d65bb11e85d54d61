//! Connections between nodes inside TLS, over pipes in memory.

mod refused;
mod stream;

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use greenroom_security::files::NodeTls;
use greenroom_security::identity::Who;
use greenroom_security::issue::{Authority, Issued};
use greenroom_security::link::{Links, Peer};
use greenroom_world::Stream;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};

/// One end of a pipe, as a stream of a world.
struct Pipe(DuplexStream);

impl Stream for Pipe {
    fn rebind(self: Box<Self>) -> io::Result<Box<dyn Stream>> {
        Ok(self)
    }
}

impl AsyncRead for Pipe {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Pipe {
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

/// A pipe that holds `len` bytes each way.
fn pipe(len: usize) -> (Box<dyn Stream>, Box<dyn Stream>) {
    let (a, b) = tokio::io::duplex(len);
    (Box::new(Pipe(a)), Box::new(Pipe(b)))
}

/// A folder with the files of a node.
fn folder(authority: &Authority, node: &Issued) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path(), authority, node);
    folder
}

fn fill(folder: &Path, authority: &Authority, node: &Issued) {
    std::fs::write(folder.join("ca.pem"), &authority.pem().cert).unwrap();
    std::fs::write(folder.join("node.pem"), &node.cert).unwrap();
    std::fs::write(folder.join("node.key"), &node.key).unwrap();
}

fn issue(authority: &Authority, who: Who) -> Issued {
    authority.issue(who, &["localhost".to_owned()], (-1, 1)).unwrap()
}

fn links(folder: &TempDir, cluster: &str) -> Links {
    Links::secure(&NodeTls::in_folder(folder.path()), cluster).unwrap()
}

/// The links of the node called `name` of `authority`'s cluster.
fn node(authority: &Authority, name: &str) -> Links {
    links(&folder(authority, &issue(authority, Who::Node(name.to_owned()))), authority.cluster())
}

type Made = io::Result<(Box<dyn Stream>, Peer)>;

/// Connects `dialling` to `answering`; what each of them has of it.
async fn connect(dialling: &Links, answering: &Links) -> (Made, Made) {
    let (ours, theirs) = pipe(1 << 16);
    tokio::join!(dialling.dialled(ours), async { answering.accepted(theirs).await.map_err(|refused| refused.why) })
}

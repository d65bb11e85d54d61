//! Bytes through TLS, as shards send them: written when there is something, never flushed.

use std::future::poll_fn;

use tokio::io::AsyncReadExt;

use super::*;

/// Writes `bytes` as a shard's lane does: until TLS has taken them, and not a poll more; then only reads.
async fn write_and_wait(stream: &mut Box<dyn Stream>, mut bytes: &[u8]) -> Vec<u8> {
    let mut answer = [0; 16];
    poll_fn(|cx| {
        while !bytes.is_empty() {
            match Pin::new(&mut *stream).poll_write(cx, bytes) {
                Poll::Ready(written) => bytes = &bytes[written.unwrap()..],
                Poll::Pending => break,
            }
        }
        let mut buffer = ReadBuf::new(&mut answer);
        match Pin::new(&mut *stream).poll_read(cx, &mut buffer) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(read) => {
                read.unwrap();
                Poll::Ready(buffer.filled().to_vec())
            }
        }
    })
    .await
}

#[tokio::test]
async fn what_tls_holds_back_leaves_without_a_flush() {
    let authority = Authority::new("music").unwrap();
    let (a, b) = (node(&authority, "a"), node(&authority, "b"));
    // A socket that takes little at a time.
    let (ours, theirs) = pipe(1000);
    let (dialled, accepted) = tokio::join!(a.dialled(ours), async { b.accepted(theirs).await.ok() });
    let (mut ours, mut theirs) = (dialled.unwrap().0.rebind().unwrap(), accepted.unwrap().0.rebind().unwrap());
    for len in [1, 999, 16_384, 16_385, 300_000] {
        let bytes: Vec<u8> = (0..len).map(|at| at as u8).collect();
        let reading = async {
            let mut read = vec![0; len];
            theirs.read_exact(&mut read).await.unwrap();
            assert_eq!(read, bytes);
            write_and_wait_for_nothing(&mut theirs, b"thanks").await;
        };
        let (answer, ()) = tokio::join!(write_and_wait(&mut ours, &bytes), reading);
        assert_eq!(answer, b"thanks");
    }
}

async fn write_and_wait_for_nothing(stream: &mut Box<dyn Stream>, bytes: &[u8]) {
    let written = poll_fn(|cx| Pin::new(&mut *stream).poll_write(cx, bytes)).await;
    assert_eq!(written.unwrap(), bytes.len());
}

#[tokio::test]
async fn a_peer_that_goes_is_the_end_of_the_stream() {
    let authority = Authority::new("music").unwrap();
    let (dialled, accepted) = connect(&node(&authority, "a"), &node(&authority, "b")).await;
    drop(dialled.unwrap());
    let mut read = Vec::new();
    assert_eq!(accepted.unwrap().0.read_to_end(&mut read).await.unwrap(), 0);
}

//! What leaves on one lane: frames gather while earlier ones are written.

use std::sync::{Mutex, MutexGuard};

use bytes::BytesMut;
use greenroom_wire::EncodeError;
use greenroom_wire::host::FromHost;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;

/// A lane's frames that have not left, and its credit.
pub(crate) struct Outbox {
    state: Mutex<State>,
    /// Something is to be written, or the lane is closed.
    ready: Notify,
    /// Credit has come, or the lane is closed.
    credit: Notify,
    frame_len_max: u32,
}

#[derive(Default)]
struct State {
    batch: BytesMut,
    sent: u64,
    allowed: u64,
    window: u64,
    is_closed: bool,
}

impl Outbox {
    pub(crate) fn new(frame_len_max: u32, window: u64) -> Self {
        let state = State { allowed: window, window, ..State::default() };
        Self { state: Mutex::new(state), ready: Notify::new(), credit: Notify::new(), frame_len_max }
    }

    /// Sends a frame that costs no credit.
    pub(crate) fn send(&self, frame: &FromHost<'_>) -> Result<(), EncodeError> {
        let mut state = self.state();
        frame.write(&mut state.batch, self.frame_len_max)?;
        drop(state);
        self.ready.notify_one();
        Ok(())
    }

    /// Sends a call once there is credit for it. Nothing is sent on a closed lane.
    pub(crate) async fn send_paid(&self, frame: &FromHost<'_>) -> Result<(), EncodeError> {
        loop {
            let credited = self.credit.notified();
            {
                let mut state = self.state();
                if state.is_closed || state.sent < state.allowed {
                    let start = state.batch.len();
                    frame.write(&mut state.batch, self.frame_len_max)?;
                    state.sent += (state.batch.len() - start) as u64;
                    drop(state);
                    self.ready.notify_one();
                    return Ok(());
                }
            }
            credited.await;
        }
    }

    /// The node has granted so many bytes since the lane began.
    pub(crate) fn grant(&self, granted: u64) {
        let mut state = self.state();
        state.allowed = state.allowed.max(state.window.saturating_add(granted));
        drop(state);
        self.credit.notify_waiters();
    }

    /// What was sent before still leaves, if it can.
    pub(crate) fn close(&self) {
        self.state().is_closed = true;
        self.ready.notify_one();
        self.credit.notify_waiters();
    }

    /// Writes what is sent, until the lane is closed or the connection breaks.
    pub(crate) async fn drain(&self, mut out: impl AsyncWrite + Unpin) {
        loop {
            let (batch, is_closed) = {
                let mut state = self.state();
                (state.batch.split(), state.is_closed)
            };
            if !batch.is_empty() {
                if out.write_all(&batch).await.is_err() {
                    return;
                }
            } else if is_closed {
                let _ = out.shutdown().await;
                return;
            } else {
                self.ready.notified().await;
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no frame panics while it is written")
    }
}

//! The clients of a schedule, which are polled in steps.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use greenroom_world::LocalFuture;

use super::{Driver, Violated};
use crate::quiet::said;

pub(super) struct Client {
    pub(super) number: u32,
    /// `None` once it has ended.
    pub(super) future: Option<LocalFuture>,
    woken: Arc<Woken>,
    /// The step in which that was seen first.
    pub(super) woken_in: Option<u64>,
    polls: u32,
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Client {
    pub(super) fn new(number: u32, future: LocalFuture) -> Self {
        let woken = Arc::new(Woken(AtomicBool::new(true)));
        Self { number, future: Some(future), woken, woken_in: Some(0), polls: 0 }
    }

    /// Whether it is to be polled.
    pub(super) fn is_woken(&self) -> bool {
        self.future.is_some() && self.woken.0.load(Ordering::Relaxed)
    }

    /// Whether it waits for something.
    pub(super) fn waits(&self) -> bool {
        self.future.is_some() && !self.woken.0.load(Ordering::Relaxed)
    }

    /// The number of its next step.
    pub(super) fn step(&self) -> u64 {
        1 << 62 | u64::from(self.number) << 32 | u64::from(self.polls)
    }
}

impl Driver {
    pub(super) fn poll_client(&mut self, number: u32, step: u64) -> Result<(), Violated> {
        let Some(client) = self.clients.iter_mut().find(|client| client.number == number) else { return Ok(()) };
        let Some(mut future) = client.future.take() else { return Ok(()) };
        client.polls += 1;
        client.woken_in = None;
        client.woken.0.store(false, Ordering::Relaxed);
        let waker = Waker::from(client.woken.clone());
        let polled = self.stage.as_client(number, step, || {
            let poll = || self.watch.step(|| future.as_mut().poll(&mut Context::from_waker(&waker)));
            panic::catch_unwind(AssertUnwindSafe(poll))
        });
        match polled {
            Ok(Poll::Pending) => client.future = Some(future),
            Ok(Poll::Ready(())) => {}
            Err(_) if !self.may_not_panic() => {}
            Err(payload) => {
                let who = if number == 0 { String::new() } else { format!("client {number} panicked: ") };
                return Err(format!("{who}{}", said(&*payload)));
            }
        }
        Ok(())
    }
}

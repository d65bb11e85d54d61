//! A place for one connection, which is made anew when it has ended.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

use crate::{Result, StoreError};

/// How connections to an engine are made.
pub trait Connect: Send + Sync + 'static {
    /// A connection.
    type Session: Send + Sync + 'static;

    /// Makes one.
    fn connect(&self) -> impl Future<Output = Result<Self::Session>> + Send;

    /// Whether `session` may still be used.
    fn is_open(session: &Self::Session) -> bool;

    /// The store's name, for errors.
    fn name(&self) -> &str;
}

/// A place for a connection. Whoever asks for the session while there is none makes one, and the others wait for it.
pub struct Link<C: Connect> {
    home: Handle,
    target: Arc<C>,
    current: Mutex<Option<Arc<C::Session>>>,
    connecting: tokio::sync::Mutex<Option<(Instant, StoreError)>>,
}

impl<C: Connect> Link<C> {
    /// A place for connections whose tasks run in `home`, with one to begin with, if there is one.
    pub fn new(home: Handle, target: Arc<C>, first: Option<C::Session>) -> Arc<Self> {
        let current = Mutex::new(first.map(Arc::new));
        Arc::new(Self { home, target, current, connecting: tokio::sync::Mutex::new(None) })
    }

    /// An open session. It may be called from any runtime.
    ///
    /// # Errors
    ///
    /// Why none could be made, or that the runtime of its tasks has ended.
    pub async fn session(self: &Arc<Self>) -> Result<Arc<C::Session>> {
        if let Some(session) = self.open_session() {
            return Ok(session);
        }
        let link = self.clone();
        let connected = self.home.spawn(async move { link.connect().await }).await;
        connected.unwrap_or_else(|_| {
            let reason = "the runtime in which it was opened has ended; open it in one that lasts".to_owned();
            Err(StoreError::Unavailable { store: self.target.name().to_owned(), reason })
        })
    }

    /// Gives up `session`, which has failed, so that nobody is given it any more.
    pub fn retire(&self, session: &Arc<C::Session>) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.as_ref().is_some_and(|current| Arc::ptr_eq(current, session)) {
            *current = None;
        }
    }

    fn open_session(&self) -> Option<Arc<C::Session>> {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.as_ref().filter(|session| C::is_open(session)).cloned()
    }

    async fn connect(&self) -> Result<Arc<C::Session>> {
        let asked = Instant::now();
        let mut failure = self.connecting.lock().await;
        if let Some(session) = self.open_session() {
            return Ok(session);
        }
        if let Some((at, error)) = failure.as_ref() {
            // Those who have waited for an attempt are told of its failure. It says nothing to who has come since: the engine may be
            // back.
            if asked <= *at {
                return Err(error.clone());
            }
            tokio::time::sleep(PAUSE_AFTER_FAILURE.saturating_sub(at.elapsed())).await;
        }
        match self.target.connect().await {
            Ok(session) => {
                let session = Arc::new(session);
                *failure = None;
                *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Some(session.clone());
                Ok(session)
            }
            Err(error) => {
                *failure = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }
}

/// Between attempts to connect.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    use super::*;

    #[derive(Default)]
    struct Engine {
        up: AtomicBool,
        attempts: AtomicU32,
    }

    impl Connect for Engine {
        type Session = ();

        async fn connect(&self) -> Result<()> {
            self.attempts.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
            match self.up.load(Ordering::Relaxed) {
                true => Ok(()),
                false => Err(StoreError::Unavailable { store: "engine".into(), reason: "it is down".into() }),
            }
        }

        fn is_open((): &()) -> bool {
            true
        }

        fn name(&self) -> &str {
            "engine"
        }
    }

    #[tokio::test]
    async fn who_comes_after_a_failed_attempt_is_not_told_of_it() {
        let engine = Arc::new(Engine::default());
        let link = Link::new(Handle::current(), engine.clone(), None);
        assert!(link.session().await.is_err());
        engine.up.store(true, Ordering::Relaxed);
        assert!(link.session().await.is_ok(), "the engine is back");
    }

    #[tokio::test]
    async fn those_who_wait_for_an_attempt_are_told_of_its_failure_and_do_not_repeat_it() {
        let engine = Arc::new(Engine::default());
        let link = Link::new(Handle::current(), engine.clone(), None);
        let ask = || {
            let link = link.clone();
            tokio::spawn(async move { link.session().await.is_err() })
        };
        for asking in [ask(), ask(), ask()] {
            assert!(asking.await.expect("it does not panic"));
        }
        assert_eq!(engine.attempts.load(Ordering::Relaxed), 1);
    }
}

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
        let mut failure = self.connecting.lock().await;
        if let Some(session) = self.open_session() {
            return Ok(session);
        }
        // Those who have waited for an attempt that has failed just now are told of its failure, and do not try again.
        if let Some((at, error)) = failure.as_ref()
            && at.elapsed() < PAUSE_AFTER_FAILURE
        {
            return Err(error.clone());
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

//! A place for one connection, which is made anew when it has ended.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use greenroom_store::{Result, StoreError};
use tokio::runtime::Handle;

use crate::session::Session;
use crate::target::Target;

/// A place for a connection. Whoever asks for the session while there is none makes one, and the others wait for it.
pub(crate) struct Link {
    home: Handle,
    target: Arc<Target>,
    current: Mutex<Option<Arc<Session>>>,
    connecting: tokio::sync::Mutex<Option<(Instant, StoreError)>>,
}

impl Link {
    /// A place for connections whose tasks run in `home`, with one to begin with, if there is one.
    pub(crate) fn new(home: Handle, target: Arc<Target>, first: Option<Session>) -> Arc<Self> {
        let current = Mutex::new(first.map(Arc::new));
        Arc::new(Self { home, target, current, connecting: tokio::sync::Mutex::new(None) })
    }

    /// An open session. It may be called from any runtime.
    pub(crate) async fn session(self: &Arc<Self>) -> Result<Arc<Session>> {
        if let Some(session) = self.open_session() {
            return Ok(session);
        }
        let link = self.clone();
        let connected = self.home.spawn(async move { link.connect().await }).await;
        connected.unwrap_or_else(|_| {
            let reason = "the runtime in which it was opened has ended; open it in one that lasts".to_owned();
            Err(StoreError::Unavailable { store: self.target.name.clone(), reason })
        })
    }

    /// Gives up `session`, which has failed, so that nobody is given it any more.
    pub(crate) fn retire(&self, session: &Arc<Session>) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.as_ref().is_some_and(|current| Arc::ptr_eq(current, session)) {
            *current = None;
        }
    }

    fn open_session(&self) -> Option<Arc<Session>> {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.as_ref().filter(|session| session.is_open()).cloned()
    }

    async fn connect(&self) -> Result<Arc<Session>> {
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
        match Session::open(&self.target, false).await {
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

//! What a stream that the door gives lasts by: the credentials that it was opened with, and the door.

use std::sync::Arc;
use std::time::Duration;

use greenroom_security::principal::Principal;
use greenroom_security::rules::Target;
use hyper::header::{AUTHORIZATION, HeaderMap};

use super::Door;
use super::guard::Visitor;
use super::problem::Problem;
use crate::actor::error::Refusal;

/// Who opened a stream, and to what. It holds credentials, so it is never shown.
pub(super) struct Pass {
    door: Arc<Door>,
    /// What the request said of who makes it.
    headers: HeaderMap,
    visitor: Option<Visitor>,
    to: To,
}

/// What a pass is for.
enum To {
    Actor { kind: String, key: String },
    Pages { values: bool },
    Host { who: Principal },
}

impl Pass {
    /// The pass of a visitor who asks an actor with these headers.
    pub(super) fn new(door: &Arc<Door>, headers: &HeaderMap, visitor: Option<&Visitor>, kind: &str, key: &str) -> Self {
        Self::to(door, headers, visitor, To::Actor { kind: kind.to_owned(), key: key.to_owned() })
    }

    /// The pass of a visitor who looks at pages with these headers; at values and errors' texts if `values`.
    pub(super) fn to_pages(door: &Arc<Door>, headers: &HeaderMap, visitor: Option<&Visitor>, values: bool) -> Self {
        Self::to(door, headers, visitor, To::Pages { values })
    }

    /// The pass of a host that is `who` by these headers.
    pub(super) fn to_host(door: &Arc<Door>, headers: &HeaderMap, visitor: Option<&Visitor>, who: Principal) -> Self {
        Self::to(door, headers, visitor, To::Host { who })
    }

    fn to(door: &Arc<Door>, headers: &HeaderMap, visitor: Option<&Visitor>, to: To) -> Self {
        let said = headers.get_all(AUTHORIZATION).iter();
        let headers = said.map(|value| (AUTHORIZATION, value.clone())).collect();
        Self { door: door.clone(), headers, visitor: visitor.cloned(), to }
    }

    /// Whether its holder may call `method` now, or look at pages if it is for those.
    ///
    /// # Errors
    /// The problem that the client is told.
    pub(super) async fn check(&self, method: &str) -> Result<(), Problem> {
        let (guard, visitor) = (&self.door.guard, self.visitor.as_ref());
        match &self.to {
            To::Actor { kind, key } => {
                let target = Target { kind, key, method };
                guard.check(target, &self.headers, visitor).await.map(drop)
            }
            To::Pages { values } => guard.check_pages(*values, &self.headers, visitor).await,
            To::Host { who } => match guard.check_host(&self.headers, visitor).await? {
                Some(now) if now == *who => Ok(()),
                _ => Err(Problem::forbidden(
                    who.name(),
                    "its credentials have another name or other roles now; dial again",
                )),
            },
        }
    }

    /// Whether rules let `who`, its holder, make this call.
    ///
    /// # Errors
    /// The problem that the client is told.
    pub(super) fn permits(&self, who: &Principal, target: Target<'_>) -> Result<(), Problem> {
        self.door.guard.check_rules(who, target)
    }

    /// Resolves when a stream that `method` has opened must end: with why.
    pub(super) async fn over(&self, method: &str) -> Problem {
        let closed = async {
            let mut closed = self.door.closed.subscribe();
            // An error means that the door itself is gone.
            let _ = closed.wait_for(|closed| *closed).await;
        };
        tokio::select! {
            () = closed => Refusal::Stopping.into(),
            problem = self.withdrawn(method) => problem,
        }
    }

    /// Resolves when its holder may not call `method` any more, nor do what else it is for: with why.
    pub(super) async fn withdrawn(&self, method: &str) -> Problem {
        if self.door.guard.is_open() {
            return std::future::pending().await;
        }
        loop {
            tokio::time::sleep(self.door.node.config().reload_every.max(LOOK_MIN)).await;
            if let Err(problem) = self.check(method).await {
                return problem;
            }
        }
    }
}

/// Shortest time between two looks at a stream's credentials.
const LOOK_MIN: Duration = Duration::from_millis(10);

//! What a turn of a reliable actor may await. `#[actor(reliable)]` writes each `.await` of the block as
//! `Awaited(..).before_commit().await`; so what would act before the commit does not compile.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::again;
use super::takings::{Takings, takings};
use crate::actor::call::{Call, Calling};
use crate::actor::error::CallError;
use crate::actor::interface::{Method, ReadOnly};
use crate::time::Reminder;

/// Something that a turn awaits.
#[doc(hidden)]
#[derive(Debug)]
pub struct Awaited<F>(pub F);

// A method of the type itself is found before one of a trait; its bound is looked at only then.
impl<M: Method> Awaited<Call<M>> {
    /// A call of a read.
    pub fn before_commit(self) -> Reading<M>
    where
        M: ReadOnly,
    {
        Reading { calling: self.0.into_future(), noted: Noted::Unbegun }
    }
}

impl<M: Method> Awaited<Reminder<M>> {
    /// No reminder is.
    pub fn before_commit(self) -> Reminder<M>
    where
        Reminder<M>: Registered,
    {
        self.0
    }
}

/// A read under way. Where turns are run again, the second run gets the first one's answer.
///
/// # Cancel safety
/// As that of a call.
#[doc(hidden)]
pub struct Reading<M: Method> {
    calling: Calling<M>,
    noted: Noted,
}

/// Whether the answer is kept for a second run.
enum Noted {
    Unbegun,
    No,
    At(Arc<Takings>, usize),
}

impl<M: Method> Future for Reading<M> {
    type Output = Result<M::Reply, CallError<M::Error>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Noted::Unbegun = self.noted {
            self.noted = Noted::No;
            if let Some(takings) = takings()
                && let Some((at, answer)) = takings.begin_read()
            {
                if let Some(answer) = answer.as_ref().and_then(again::read::<Result<M::Reply, M::Error>>) {
                    return Poll::Ready(answer.map_err(CallError::Actor));
                }
                self.noted = Noted::At(takings, at);
            }
        }
        let answer = std::task::ready!(Pin::new(&mut self.calling).poll(context));
        if let Noted::At(takings, at) = &self.noted {
            let known = match &answer {
                Ok(reply) => Some(Ok(reply)),
                Err(CallError::Actor(error)) => Some(Err(error)),
                Err(_) => None,
            };
            if let Some(answer) = known.and_then(|known| again::write(&known)) {
                takings.end_read(*at, answer);
            }
        }
        Poll::Ready(answer)
    }
}

/// What is registered at once: nothing in a turn of a reliable actor.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a turn of a reliable actor awaits a reminder, which would be registered before the turn is committed",
    label = "this acts before the commit",
    note = "write `.after(delay).send()`: the timer is part of the commit; for what comes again, let the turn that it begins \
            send the next one"
)]
pub trait Registered {}

/// All other futures may be awaited; what of them acts on actors is refused when it runs.
#[doc(hidden)]
pub trait Anything {
    /// What it is.
    type Future;

    /// Itself.
    fn before_commit(self) -> Self::Future;
}

impl<F> Anything for Awaited<F> {
    type Future = F;

    fn before_commit(self) -> F {
        self.0
    }
}

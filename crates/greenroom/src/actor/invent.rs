//! Made-up calls, for tests that say nothing but which actors they are of.

mod inventor;

use std::future::IntoFuture;

use greenroom_world::LocalFuture;

pub use self::inventor::{Inventor, NotInvented};
use super::interface::Method;
use super::reference::Ref;

/// Makes up a call of one method, to be made once.
pub type Invent<I> = fn(&mut Inventor<'_>, &Ref<I>) -> Result<LocalFuture, NotInvented>;

/// Makes up a call of `M`.
///
/// # Errors
/// [`NotInvented`]: its arguments do not take what can be made up.
pub fn invent<M: Method>(inventor: &mut Inventor<'_>, target: &Ref<M::Interface>) -> Result<LocalFuture, NotInvented> {
    let arguments = M::deserialize(inventor)?;
    let call = target.call(arguments);
    // Whatever it is answered with: others judge that.
    Ok(Box::pin(async move { drop(call.into_future().await) }))
}

//! Time for actors: timers inside of an activation, and what a turn knows of the tick that began it.

mod tick;
mod timer;

pub use self::tick::Tick;
pub(crate) use self::tick::Ticked;
pub use self::timer::Timer;

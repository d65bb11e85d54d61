//! What one byte says. None is ever used again for something else.

use crate::frame::Status;

/// A turn was abandoned: its host was told to drop it, or has lost its right to run it.
pub const ABANDONED: Status = Status::Other(16);

/// Makes an enum of one byte, with a variant for the bytes of later versions.
macro_rules! byte {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $byte:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$doc])* $variant,)*
            /// One of a later version.
            Other(u8),
        }

        impl $name {
            /// The byte on the wire.
            pub fn to_byte(self) -> u8 {
                match self {
                    $(Self::$variant => $byte,)*
                    Self::Other(byte) => byte,
                }
            }

            /// What a byte on the wire says.
            pub fn from_byte(byte: u8) -> Self {
                match byte {
                    $($byte => Self::$variant,)*
                    other => Self::Other(other),
                }
            }
        }
    };
}

byte! {
    /// Why a lane or a session ends.
    Closing {
        /// All is done: the host has drained, or has nothing left to do.
        Done = 0,
        /// The sender's process is stopping: dial again, or another node.
        Stopping = 1,
        /// The node itself has lost its lease: all was abandoned. Dial again.
        Fenced = 2,
        /// The session's lease was over. Dial again.
        LeaseOver = 3,
        /// A frame was wrong, out of order or out of bounds; the reason says which. The sender of that frame is at fault.
        BadFrame = 4,
        /// The host may not in: its user, token, versions or offers. Do not dial again before that is changed.
        NotLetIn = 5,
    }
}

byte! {
    /// What became of an offer.
    OfferStatus {
        /// The node hosts the kind through this session.
        Taken = 0,
        /// The same, and it is newer than what other sessions offer: these get no new seats.
        TakenInPlace = 1,
        /// It is refused; the reason says why. The session's other offers stand.
        Refused = 2,
    }
}

byte! {
    /// Why a seat is to be left.
    Leave {
        /// No message came for the kind's idle time.
        Idle = 0,
        /// The node or the host stops.
        Stopping = 1,
        /// The actor asked for it.
        Asked = 2,
        /// A handler failed, or a save did: the actor is made anew from what is stored.
        Failed = 3,
        /// It goes to another node, with what it carries.
        Migrating = 4,
        /// Another activation of the actor has a higher epoch.
        Superseded = 5,
        /// A newer version of its kind is there.
        Upgraded = 6,
        /// Its state could not be saved.
        Unsaved = 7,
        /// Another cluster owns the actor, or takes it over.
        Duplicate = 8,
        /// Somebody stopped or killed it.
        Stopped = 9,
    }
}

byte! {
    /// What a turn asks of its node, beside calls.
    Operation {
        /// Saves: `state`, `fields` as in a TurnEnd, as bytes.
        Save = 1,
        /// Reads a state again: `state`; answered with its payload.
        Reload = 2,
        /// Clears a state: `state`.
        Clear = 3,
        /// Sets a timer: `name`, `method`, `after_us`, `every_us?`, `arguments?`.
        SetTimer = 4,
        /// Cancels a timer: `name`.
        CancelTimer = 5,
        /// Sets a reminder: `name`, `method`, `after_ms` from now or `due_ms` since 1970, `every_ms?`, `arguments?`.
        SetReminder = 6,
        /// Cancels a reminder: `name`.
        CancelReminder = 7,
        /// Lists the actor's reminders.
        ListReminders = 8,
        /// Subscribes the actor to a topic: `topic`, `method`.
        Subscribe = 9,
        /// Ends a subscription: `topic`.
        Unsubscribe = 10,
        /// Opens a stream that a reply named: `name`, `stream`, `window`. Its items come under the number `stream`.
        OpenStream = 11,
        /// Keeps the activation from ending of idleness: `for_ms`.
        KeepAlive = 12,
        /// Ends the activation after this turn.
        Deactivate = 13,
        /// Moves the actor to another node after this turn: `node`.
        Migrate = 14,
        /// Sends a message out of the cluster with the turn's commit: `outlet`, `message`.
        Output = 15,
        /// Creates a reliable actor: `kind`, `key`, `arguments`.
        Create = 16,
        /// What a reliable turn has chosen: `value`, a payload; answered with it, or where turns run twice, with what the first run chose.
        Chosen = 17,
    }
}

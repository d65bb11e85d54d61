//! TCP relays between processes of one machine, which make of loopback what networks are elsewhere: far, and at times cut.
//!
//! A [`Relay`] hands connections on to a target. It holds every byte for half of its round trip, either way, and lets nothing
//! pass where a [gate](Gates) is shut, as a network does that loses packets until it is mended: what was held back arrives
//! then. The processes at its ends do not know of it.
//!
//! ```
//! use std::io::{Read, Write};
//! use std::net::{TcpListener, TcpStream};
//! use std::sync::Arc;
//! use std::time::{Duration, Instant};
//!
//! use greenroom_relay::{Gates, Relay};
//!
//! # fn main() -> std::io::Result<()> {
//! let server = TcpListener::bind("127.0.0.1:0")?;
//! let gates = Arc::new(Gates::default());
//! let relay = Relay::new(server.local_addr()?.to_string(), gates.clone());
//! let far = relay.between("eu", "us").round_trip(Duration::from_millis(40)).start(TcpListener::bind("127.0.0.1:0")?)?;
//! std::thread::spawn(move || {
//!     let (mut connection, _) = server.accept()?;
//!     let mut byte = [0];
//!     connection.read_exact(&mut byte)?;
//!     connection.write_all(&byte)
//! });
//! let mut connection = TcpStream::connect(far)?;
//! let begun = Instant::now();
//! connection.write_all(&[7])?;
//! connection.read_exact(&mut [0])?;
//! assert!(begun.elapsed() >= Duration::from_millis(40));
//! gates.cut(&"eu", &"us"); // nothing passes any more, either way
//! gates.heal(&"eu", &"us");
//! # Ok(())
//! # }
//! ```

mod gates;
mod line;
mod relay;

pub use gates::Gates;
pub use relay::Relay;

//! Cutting a byte stream into the frames that faults happen to.
//!
//! A frame on the wire is `[u32 LE length][u8 type][body]`, where the length counts type and body. A stream whose next four
//! bytes cannot be such a length (HTTP, for one), or that begins as TLS does, is raw: its writes are delivered in order,
//! delayed and nothing worse.

use std::mem;

/// What may happen to a frame under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameClass {
    /// Delay only. No frame written after it is delivered before it.
    Essential,
    /// Delay, loss and reordering. Never duplicated: calls are not resent, and TCP does not duplicate.
    User,
    /// Delay, loss, duplication and reordering.
    Control,
}

/// Says what may happen to a whole frame, length prefix included.
pub type Classify = fn(&[u8]) -> FrameClass;

/// Makes the narrator of one simulation.
pub type Narrator = fn() -> Box<dyn Narrate>;

/// Says what frames are, for people: it is told all of them, in the order in which each direction of a connection sends.
pub trait Narrate: Send {
    /// What `sent` is; `None` for one that is worth no line among the last of a failure's report.
    fn tell(&mut self, sent: &Sent<'_>) -> Option<Told>;
}

/// A whole frame that a node gives to the network.
#[derive(Clone, Copy, Debug)]
pub struct Sent<'a> {
    /// Tells one direction of one connection from all others.
    pub lane: u64,
    /// The node that sends it.
    pub from: &'a str,
    /// The node that it goes to.
    pub to: &'a str,
    /// The frame, length prefix included.
    pub frame: &'a [u8],
}

/// What a frame is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Told {
    /// In words.
    pub text: String,
    /// Whether it is a message: what [`Sim::crash_at_message`](crate::Sim::crash_at_message) counts.
    pub is_message: bool,
}

/// Cuts what one end of a connection writes into frames.
#[derive(Default)]
pub(crate) struct Cutter {
    partial: Vec<u8>,
    raw: bool,
    /// Whether the stream has shown what it begins with.
    begun: bool,
}

impl Cutter {
    /// Bytes that complete what was begun, its prefix or the frame: they must be let in, or it would never be sent.
    pub(crate) fn missing(&self) -> usize {
        match prefix(&self.partial) {
            Some(Prefix::Frame(len)) => len - self.partial.len(),
            None if !self.partial.is_empty() => PREFIX_LEN - self.partial.len(),
            Some(Prefix::Raw) | None => 0,
        }
    }

    /// Takes in `bytes` and gives each completed piece to `send`, and whether it is a frame (else: raw bytes).
    pub(crate) fn push(&mut self, mut bytes: &[u8], mut send: impl FnMut(Vec<u8>, bool)) {
        while !bytes.is_empty() {
            if self.raw {
                send(bytes.to_vec(), false);
                return;
            }
            if !self.begun {
                // It may come byte by byte.
                self.partial.extend_from_slice(bytes);
                if self.partial.len() < PREFIX_LEN {
                    return;
                }
                let beginning = mem::take(&mut self.partial);
                (self.begun, self.raw) = (true, begins_tls(&beginning));
                return self.push(&beginning, send);
            }
            if self.partial.is_empty()
                && let Some(Prefix::Frame(len)) = prefix(bytes)
                && bytes.len() >= len
            {
                send(bytes[..len].to_vec(), true);
                bytes = &bytes[len..];
                continue;
            }
            bytes = self.fill(bytes);
            match prefix(&self.partial) {
                Some(Prefix::Frame(len)) if len == self.partial.len() => send(mem::take(&mut self.partial), true),
                Some(Prefix::Raw) => {
                    self.raw = true;
                    send(mem::take(&mut self.partial), false);
                }
                Some(Prefix::Frame(_)) | None => {}
            }
        }
    }

    /// Moves bytes into the partial frame: up to its prefix, then up to its end. Returns those that are left.
    fn fill<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let want = match prefix(&self.partial) {
            Some(Prefix::Frame(len)) => len,
            Some(Prefix::Raw) | None => PREFIX_LEN,
        };
        let (now, later) = bytes.split_at((want - self.partial.len()).min(bytes.len()));
        self.partial.extend_from_slice(now);
        later
    }

    /// What is left when the writer ends in the middle of a frame.
    pub(crate) fn rest(&mut self) -> Option<Vec<u8>> {
        (!self.partial.is_empty()).then(|| mem::take(&mut self.partial))
    }
}

enum Prefix {
    /// A frame of this many bytes in all.
    Frame(usize),
    Raw,
}

fn prefix(bytes: &[u8]) -> Option<Prefix> {
    let len = u32::from_le_bytes(*bytes.first_chunk::<PREFIX_LEN>()?) as usize;
    Some(if len == 0 || len > FRAME_LEN_MAX { Prefix::Raw } else { Prefix::Frame(PREFIX_LEN + len) })
}

/// Whether a stream that begins so is TLS: no first frame does, as it would be longer than a hello may be.
fn begins_tls(bytes: &[u8]) -> bool {
    matches!(bytes, [22, 3, 1..=4, ..])
}

const PREFIX_LEN: usize = 4;
/// A longer frame is no frame; four ASCII letters read as a length are far beyond it.
const FRAME_LEN_MAX: usize = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    /// A piece, and whether it is a frame.
    type Piece = (Vec<u8>, bool);

    /// The pieces of some writes, and what is left.
    fn cut(writes: &[&[u8]]) -> (Vec<Piece>, Option<Vec<u8>>) {
        let (mut cutter, mut out) = (Cutter::default(), Vec::new());
        for bytes in writes {
            cutter.push(bytes, |piece, framed| out.push((piece, framed)));
        }
        (out, cutter.rest())
    }

    #[test]
    fn frames_are_found_however_the_writes_are_cut() {
        let wire = [3, 0, 0, 0, 1, 2, 3, 1, 0, 0, 0, 9];
        let whole = vec![(vec![3, 0, 0, 0, 1, 2, 3], true), (vec![1, 0, 0, 0, 9], true)];
        for at in 0..=wire.len() {
            assert_eq!(cut(&[&wire[..at], &wire[at..]]), (whole.clone(), None), "cut at {at}");
        }
        let bytes: Vec<&[u8]> = wire.chunks(1).collect();
        assert_eq!(cut(&bytes), (whole, None));
    }

    #[test]
    fn http_is_raw_and_flows_at_once() {
        let (pieces, rest) = cut(&[b"GE", b"T / HTTP/1.1\r\n", b"\r\n"]);
        assert!(pieces.iter().all(|(_, framed)| !framed));
        let bytes: Vec<u8> = pieces.into_iter().flat_map(|(piece, _)| piece).collect();
        assert_eq!(bytes, b"GET / HTTP/1.1\r\n\r\n");
        assert_eq!(rest, None);
    }

    #[test]
    fn tls_is_raw_from_its_first_byte() {
        let hello = [22, 3, 1, 0, 200, 1, 0, 0];
        for at in 0..=hello.len() {
            let (pieces, rest) = cut(&[&hello[..at], &hello[at..], &[5, 0, 0, 0, 1]]);
            assert!(pieces.iter().all(|(_, framed)| !framed) && rest.is_none(), "cut at {at}");
            let bytes: Vec<u8> = pieces.into_iter().flat_map(|(piece, _)| piece).collect();
            assert_eq!(bytes, [&hello[..], &[5, 0, 0, 0, 1]].concat());
        }
    }

    #[test]
    fn a_frame_cut_short_by_the_end_is_left_over() {
        assert_eq!(cut(&[&[9, 0, 0, 0, 1]]), (vec![], Some(vec![9, 0, 0, 0, 1])));
    }
}

//! Batches of messages, cut to the size of frames.

use greenroom_protocols::delivery::Batch;

use super::name::Wire;
use super::takings::letter_size;

/// What is sent at once, in parts that fit into a frame: each names the number that it begins with, so they are batches
/// themselves.
pub(super) fn parts(wire: Wire) -> Vec<Wire> {
    let Wire::Batch(Batch { from, life, epoch, counted, round, floor, first, messages, sent_before }) = wire else {
        return vec![wire];
    };
    let mut parts: Vec<Wire> = Vec::new();
    let (mut part, mut bytes, mut begins) = (Vec::new(), 0, first);
    let batch =
        |first, messages| Wire::Batch(Batch { from, life, epoch, counted, round, floor, first, messages, sent_before });
    for (number, letter) in messages {
        let more = letter_size(&letter);
        if bytes + more > PART_BYTES_MAX && !part.is_empty() {
            parts.push(batch(begins, std::mem::take(&mut part)));
            (bytes, begins) = (0, number);
        }
        bytes += more;
        part.push((number, letter));
    }
    parts.push(batch(begins, part));
    parts
}

/// Most bytes of messages in one frame, unless one alone has more.
const PART_BYTES_MAX: usize = 1 << 20;

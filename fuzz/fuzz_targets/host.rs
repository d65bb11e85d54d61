//! Any bytes on a host's lanes, read in both directions: no panic, the same frames however the bytes are cut, and what was read
//! survives being written.
#![no_main]

use bytes::BytesMut;
use greenroom_wire::host::{Decoder, FRAME_LEN_MAX, Form, FromHost, FromNode, Hello, HelloMap};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&cut, data)) = data.split_first() else { return };
    strangers(data);
    let mut stream = BytesMut::new();
    FromHost::Hello(Hello::new(HelloMap::new("h"))).write(&mut stream, FRAME_LEN_MAX).unwrap();
    stream.extend_from_slice(data);
    let whole = from_host(&stream);
    let part = from_host(&stream[..usize::from(cut).min(stream.len())]);
    assert_eq!(whole[..part.len()], part[..]);
    from_node(data);
});

/// What comes first on a lane.
fn strangers(data: &[u8]) {
    let _ = Decoder::new(FRAME_LEN_MAX).next::<FromHost>(&mut &data[..]);
    let _ = Decoder::new(FRAME_LEN_MAX).next::<FromNode>(&mut &data[..]);
}

fn from_host(stream: &[u8]) -> Vec<FromHost<'_>> {
    let (mut decoder, mut rest, mut frames) = (Decoder::new(FRAME_LEN_MAX), stream, Vec::new());
    while let Ok(Some(frame)) = decoder.next::<FromHost>(&mut rest) {
        if let FromHost::TurnEnd(end) = &frame {
            end.changes.iter().flat_map(|changes| changes.iter()).for_each(|(_, form)| walk(form));
        }
        let mut written = BytesMut::new();
        let fits = frame.write(&mut written, FRAME_LEN_MAX).is_ok();
        if fits && !frames.is_empty() && !matches!(frame, FromHost::Unknown { .. }) {
            let mut again = Decoder::joined(FRAME_LEN_MAX);
            assert_eq!(again.next(&mut &written[..]).as_ref(), Ok(&Some(frame.clone())));
        }
        frames.push(frame);
    }
    frames
}

fn from_node(stream: &[u8]) {
    let (mut decoder, mut rest) = (Decoder::joined(FRAME_LEN_MAX), stream);
    while let Ok(Some(frame)) = decoder.next::<FromNode>(&mut rest) {
        if let FromNode::Activate(activate) = &frame {
            activate.fields.iter().for_each(|(_, form)| walk(form));
        }
        let mut written = BytesMut::new();
        if frame.write(&mut written, FRAME_LEN_MAX).is_ok() && !matches!(frame, FromNode::Unknown { .. }) {
            let mut again = Decoder::joined(FRAME_LEN_MAX);
            assert_eq!(again.next(&mut &written[..]).as_ref(), Ok(&Some(frame.clone())));
        }
    }
}

fn walk(form: Form<'_>) {
    if let Form::Entries(entries) = form {
        assert_eq!(entries.iter().count(), entries.len());
    }
}

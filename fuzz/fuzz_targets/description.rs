//! Any bytes as the description of a kind: no panic, and what is read is the same kind by its document and by its canonical bytes.
#![no_main]

use greenroom_describe::Description;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(read) = Description::read(data) else { return };
    let again = Description::of_document(read.document().clone()).expect("what was read is a description");
    let canonical = Description::read(&read.canonical()).expect("canonical bytes are a description");
    assert_eq!((again.digest(), canonical.digest()), (read.digest(), read.digest()));
    assert_eq!(read.canonical(), canonical.canonical());
    assert!(read.differences(&canonical).is_empty());
});

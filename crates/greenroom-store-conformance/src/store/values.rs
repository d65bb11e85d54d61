//! Which values come back, and that they do so whole.

use bytes::Bytes;
use greenroom_store::{Applied, Store, StoreError};

use crate::dice::Dice;
use crate::plain::read;
use crate::{BY, Harness, VALUE_BYTES_EVERYWHERE};

/// A value is bytes: none, any, or 1 MiB of them.
pub async fn large_and_empty_values_come_back_whole(store: &dyn Store) {
    let large: Bytes = Dice::new(1).bytes(VALUE_BYTES_EVERYWHERE).into();
    let not_text = Bytes::from_static(&[0, 0xff, 0, 0xfe, b'\'', b'\n']);
    for (key, value) in [("value/large", large), ("value/empty", Bytes::new()), ("value/raw", not_text)] {
        let version = store.create(key, value.clone(), BY).await.expect("it fits");
        assert!(read(store, key).await == Some((value.clone(), version.clone())), "{key} has changed");
        let version = store.replace(key, value.clone(), &version, BY).await.expect("the version is current");
        assert!(read(store, key).await == Some((value, version)), "{key} has changed");
    }
}

/// The provider's own limit is true: a value of that size comes back whole, also when it replaces another; one byte
/// more is refused with both sizes and changes nothing.
pub async fn values_up_to_the_limit_fit_and_larger_ones_are_refused(harness: &Harness) {
    let (store, bytes_max) = (harness.first(), harness.value_bytes_max);
    let largest: Bytes = Dice::new(2).bytes(bytes_max).into();
    let version = store.create("limit/a", largest.clone(), BY).await.expect("a value at the limit fits");
    assert!(read(store, "limit/a").await == Some((largest.clone(), version.clone())), "it has changed");
    let version = store.replace("limit/a", largest.clone(), &version, BY).await.expect("it fits again");
    let over = Bytes::from(vec![7; bytes_max + 1]);
    let create = store.create("limit/b", over.clone(), BY).await.map(drop);
    let replace = store.replace("limit/a", over, &version, BY).await.map(drop);
    for (key, refused) in [("limit/b", create), ("limit/a", replace)] {
        // A harness that says nothing of the limit claims none.
        let Err(error) = refused else {
            assert_eq!(bytes_max, VALUE_BYTES_EVERYWHERE, "{key} took {} bytes", bytes_max + 1);
            continue;
        };
        assert_eq!(error.applied(), Applied::No, "{error}");
        let StoreError::TooLarge { key: named, bytes, bytes_max: named_max, .. } = &error else { panic!("{error}") };
        assert_eq!((&**named, *bytes, *named_max), (key, bytes_max + 1, bytes_max), "{error}");
        assert!(read(store, "limit/a").await == Some((largest.clone(), version.clone())), "it has changed");
    }
}

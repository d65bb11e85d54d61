//! Pages of a prefix.

use greenroom_store::Store;
use greenroom_store::scan::PAGE_BYTES_MAX;

use crate::dice::Dice;
use crate::elsewhere::side_by_side;
use crate::plain::{create, scan};
use crate::{BY, Harness, VALUE_BYTES_EVERYWHERE};

/// Whatever the page size, the pages together are the items of the prefix, each once, in byte order.
pub async fn scans_page_in_key_order(store: &dyn Store) {
    let mut expected = Vec::new();
    for name in ["10", "9", "a", "B", "é", "a/b", "a b", "z", "\u{ffff}", "\u{10000}"] {
        let key = format!("scan/in/{name}");
        create(store, &key, name).await;
        expected.push(key);
    }
    for outside in ["scan/im", "scan/in", "scan/in0", "scan/io/a"] {
        create(store, outside, "outside").await;
    }
    expected.sort();
    for limit in [1, 3, expected.len(), usize::MAX] {
        assert_eq!(scan(store, "scan/in/", limit).await, expected, "with pages of {limit}");
    }
    assert_eq!(scan(store, "scan/in/a", 2).await, ["scan/in/a", "scan/in/a b", "scan/in/a/b"]);
    assert!(scan(store, "scan/none/", 5).await.is_empty());
    let all = store.scan("", None, usize::MAX, BY).await.expect("an empty prefix is every key");
    assert!(all.items.len() >= expected.len());
    let before = store.scan("scan/in/", Some("a"), 1, BY).await.expect("`after` may lie before the prefix");
    assert_eq!(before.items[0].key, expected[0]);
    let past = store.scan("scan/in/", Some("zzz"), 1, BY).await.expect("`after` may lie behind the prefix");
    assert_eq!((past.items.len(), past.next), (0, None));
}

/// The key that a page ended with need not exist when the next page is read.
pub async fn a_scan_goes_on_after_a_key_that_is_gone(store: &dyn Store) {
    let mut versions = Vec::new();
    for key in ["gone/a", "gone/b", "gone/c"] {
        versions.push(create(store, key, "x").await);
    }
    let first = store.scan("gone/", None, 2, BY).await.expect("a scan");
    assert_eq!(first.next.as_deref(), Some("gone/b"));
    store.delete("gone/b", &versions[1], BY).await.expect("the version is current");
    let second = store.scan("gone/", first.next.as_deref(), 2, BY).await.expect("a scan");
    let keys: Vec<_> = second.items.iter().map(|item| item.key.as_str()).collect();
    assert_eq!((keys, second.next), (vec!["gone/c"], None));
}

/// A page is bounded by bytes too; what does not fit comes on the next.
pub async fn a_scan_of_large_values_ends_its_pages_early_and_misses_none(store: &dyn Store) {
    let value = Dice::new(3).bytes(VALUE_BYTES_EVERYWHERE / 2);
    let keys: Vec<_> = (10..22).map(|n| format!("heavy/{n}")).collect();
    for key in &keys {
        store.create(key, value.clone().into(), BY).await.expect("it fits");
    }
    let page = store.scan("heavy/", None, 100, BY).await.expect("a scan");
    let bytes: usize = page.items.iter().map(|item| item.versioned.value.len()).sum();
    assert!(bytes <= PAGE_BYTES_MAX + value.len(), "a page of {bytes} bytes");
    assert_eq!(scan(store, "heavy/", 100).await, keys);
}

/// A key that is there from the first page to the last is met exactly once, while others come and go around it.
pub async fn a_scan_meets_what_stays_once_whatever_comes_and_goes(harness: &Harness) {
    let store = harness.first();
    let staying: Vec<_> = (100..140).map(|n| format!("stay/{n}")).collect();
    for key in &staying {
        create(store, key, "x").await;
    }
    let passing = harness.openings.iter().cloned().map(|store| {
        move || async move {
            let mut dice = Dice::new(4);
            for _ in 0..60 {
                let key = format!("stay/{}-passing", 100 + dice.below(40));
                if let Ok(version) = store.create(&key, "x".into(), BY).await {
                    // Another opening may have been faster.
                    drop(store.delete(&key, &version, BY).await);
                }
            }
        }
    });
    let scanning = async {
        for limit in [1, 3, 7, 50] {
            let mut met = scan(store, "stay/", limit).await;
            assert!(met.is_sorted_by(|a, b| a < b), "with pages of {limit}: {met:?}");
            met.retain(|key| !key.ends_with("-passing"));
            assert_eq!(met, staying, "with pages of {limit}");
        }
    };
    futures_util::future::join(side_by_side(passing), scanning).await;
}

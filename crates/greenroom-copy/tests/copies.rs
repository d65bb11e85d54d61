//! Copies of each length, apart and overlapping, beside the library's.

#![cfg(target_arch = "x86_64")]

/// Around each place where the way of copying changes.
fn lengths() -> impl Iterator<Item = usize> {
    (0..=300).chain(2000..2100).chain([4095, 4096, 10_000])
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + at / 251) as u8).collect()
}

#[test]
fn each_length_is_copied_and_nothing_beside_it() {
    for len in lengths() {
        for (to, from) in [(0, 0), (1, 0), (0, 7), (13, 5)] {
            let (source, mut target) = (bytes(from + len), vec![0xA5; to + len + 64]);
            // SAFETY: both have so many bytes.
            unsafe { greenroom_copy::copy(target.as_mut_ptr().add(to), source.as_ptr().add(from), len) };
            assert_eq!(target[to..to + len], source[from..], "{len} bytes");
            assert!(target[..to].iter().chain(&target[to + len..]).all(|byte| *byte == 0xA5), "beside {len} bytes");
        }
    }
}

#[test]
fn each_length_is_shifted_by_each_distance() {
    let distances = [0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 128, 129, 1000, 2048, 3000];
    for len in lengths() {
        for distance in distances {
            for (to, from) in [(distance, 0), (0, distance)] {
                let mut got = bytes(len + distance + 16);
                let mut expected = got.clone();
                expected.copy_within(from..from + len, to);
                let start = got.as_mut_ptr();
                // SAFETY: both ranges are within it.
                unsafe { greenroom_copy::shift(start.add(to), start.add(from), len) };
                assert_eq!(got, expected, "{len} bytes from {from} to {to}");
            }
        }
    }
}

#[test]
fn each_length_is_compared_at_each_place() {
    for len in (0..=100).chain([255, 256, 1000]) {
        for (left_at, right_at) in [(0, 0), (1, 0), (0, 7), (13, 5)] {
            // What is beside them differs.
            let mut left = [vec![1; left_at], bytes(len), vec![3; 32]].concat();
            let right = [vec![2; right_at], bytes(len), vec![4; 32]].concat();
            let compared = |left: &[u8]| {
                // SAFETY: both have so many bytes.
                unsafe { greenroom_copy::compare(left[left_at..].as_ptr(), right[right_at..].as_ptr(), len) }.cmp(&0)
            };
            assert!(compared(&left).is_eq(), "{len} bytes");
            for place in 0..len {
                let before = left[left_at + place];
                for other in [before ^ 0x80, before.wrapping_add(1), before.wrapping_sub(1)] {
                    left[left_at + place] = other;
                    let all = left_at..left_at + len;
                    assert_eq!(
                        compared(&left),
                        left[all].cmp(&right[right_at..right_at + len]),
                        "{len} bytes, at {place}"
                    );
                }
                // The first that differs decides.
                if let Some(last) = left[left_at..left_at + len].last_mut().filter(|_| place + 1 < len) {
                    *last ^= 0x80;
                    assert_eq!(compared(&left), left[left_at..left_at + len].cmp(&right[right_at..right_at + len]));
                    left[left_at + len - 1] ^= 0x80;
                }
                left[left_at + place] = before;
            }
        }
    }
}

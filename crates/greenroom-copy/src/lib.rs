//! How static programs copy and compare bytes on x86-64. The `memcpy` of musl moves words by one string instruction, which takes some
//! thirty cycles to begin: most copies of a node are shorter than that. Here up to 128 bytes are loads and stores of both ends, which
//! may overlap, and what is longer goes by 64. Its `memcmp` goes byte by byte; here it goes by 16.
//!
//! A program that links this crate for musl has its `memcpy`, `memmove` and `memcmp` instead of that library's; elsewhere nothing
//! changes.

#![cfg(target_arch = "x86_64")]
#![no_std]
// Or a loop that copies or compares would become a call of itself.
#![no_builtins]

use core::arch::asm;
use core::arch::x86_64::{__m128i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_storeu_si128};

/// Copies `len` bytes.
///
/// # Safety
///
/// `from` may be read and `to` written for `len` bytes, and neither range has a byte of the other.
#[inline]
pub unsafe fn copy(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: as the caller says; `by_string` wants ranges apart.
    unsafe {
        match len {
            0..=SHORT_MAX => short(to, from, len),
            STRING_MIN.. => by_string(to, from, len),
            _ => forward(to, from, len),
        }
    }
}

/// Copies `len` bytes, as if by way of a third place.
///
/// # Safety
///
/// `from` may be read and `to` written for `len` bytes.
#[inline]
pub unsafe fn shift(to: *mut u8, from: *const u8, len: usize) {
    let ahead = to.addr().wrapping_sub(from.addr());
    let is_apart = ahead >= len && ahead.wrapping_neg() >= len;
    // SAFETY: as the caller says. What begins within `from` is written from its end on.
    unsafe {
        match len {
            0..=SHORT_MAX => short(to, from, len),
            STRING_MIN.. if is_apart => by_string(to, from, len),
            _ if ahead >= len => forward(to, from, len),
            _ => backward(to, from, len),
        }
    }
}

/// Compares `len` bytes: below 0, 0 or above, as the first that differ are less, not there, or more on the left.
///
/// # Safety
///
/// `left` and `right` may be read for `len` bytes.
#[inline]
pub unsafe fn compare(left: *const u8, right: *const u8, len: usize) -> i32 {
    // SAFETY: as the caller says; each arm stays within `len`.
    unsafe {
        match len {
            0 => 0,
            1 => i32::from(left.read()) - i32::from(right.read()),
            2..=3 => by_ends(left, right, len, 2),
            4..=7 => by_ends(left, right, len, 4),
            8..=16 => by_ends(left, right, len, 8),
            _ => by_sixteens(left, right, len),
        }
    }
}

/// By the first and the last `size` bytes, which may overlap: where the first are equal, so is what is seen twice.
#[inline(always)]
unsafe fn by_ends(left: *const u8, right: *const u8, len: usize, size: usize) -> i32 {
    // SAFETY: there are at least `size` bytes.
    unsafe {
        match order(word(left, size), word(right, size)) {
            0 => order(word(left.add(len - size), size), word(right.add(len - size), size)),
            differs => differs,
        }
    }
}

fn order(left: u64, right: u64) -> i32 {
    i32::from(left > right) - i32::from(left < right)
}

/// So many bytes, 2, 4 or 8, as a number that is ordered as they are.
#[inline(always)]
unsafe fn word(from: *const u8, size: usize) -> u64 {
    // SAFETY: the caller has them there, of any alignment.
    unsafe {
        match size {
            2 => from.cast::<u16>().read_unaligned().to_be().into(),
            4 => from.cast::<u32>().read_unaligned().to_be().into(),
            _ => from.cast::<u64>().read_unaligned().to_be(),
        }
    }
}

/// By 16, the last of which may have been seen.
unsafe fn by_sixteens(left: *const u8, right: *const u8, len: usize) -> i32 {
    let (mut at, last) = (0, len - 16);
    loop {
        // SAFETY: there are more than 16 bytes, and none is looked at beyond the last 16.
        let (one, other) = unsafe { (load(left.add(at)), load(right.add(at))) };
        // SAFETY: x86-64 has these instructions.
        let differ = !unsafe { _mm_movemask_epi8(_mm_cmpeq_epi8(one, other)) } & 0xffff;
        if differ != 0 {
            let at = at + differ.trailing_zeros() as usize;
            // SAFETY: one of the 16.
            return unsafe { i32::from(left.add(at).read()) - i32::from(right.add(at).read()) };
        }
        if at == last {
            return 0;
        }
        at = last.min(at + 16);
    }
}

/// Reads all before it writes any.
#[inline(always)]
unsafe fn short(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: each arm stays within `len`, which is at least the size that it moves.
    unsafe {
        match len {
            0 => {}
            1 => to.write(from.read()),
            2..=3 => ends::<u16>(to, from, len),
            4..=7 => ends::<u32>(to, from, len),
            8..=15 => ends::<u64>(to, from, len),
            16..=32 => {
                let (head, tail) = (load(from), load(from.add(len - 16)));
                store(to, head);
                store(to.add(len - 16), tail);
            }
            33..=64 => {
                let (head, tail) = (load2(from), load2(from.add(len - 32)));
                store2(to, head);
                store2(to.add(len - 32), tail);
            }
            _ => {
                let (head, tail) = (load4(from), load4(from.add(len - 64)));
                store4(to, head);
                store4(to.add(len - 64), tail);
            }
        }
    }
}

#[inline(always)]
unsafe fn ends<T: Copy>(to: *mut u8, from: *const u8, len: usize) {
    let last = len - size_of::<T>();
    // SAFETY: a `T` fits at either end.
    unsafe {
        let (head, tail) = (from.cast::<T>().read_unaligned(), from.add(last).cast::<T>().read_unaligned());
        to.cast::<T>().write_unaligned(head);
        to.add(last).cast::<T>().write_unaligned(tail);
    }
}

/// From the beginning on, by 64; `to` is not within `from`.
unsafe fn forward(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: there are more than 64 bytes. Each step has read what it overwrites, and the last bytes are read before all.
    unsafe {
        let tail = load4(from.add(len - 64));
        let mut at = 0;
        while at + 64 < len {
            store4(to.add(at), load4(from.add(at)));
            at += 64;
        }
        store4(to.add(len - 64), tail);
    }
}

/// From the end on, by 64; `from` is not within `to`.
unsafe fn backward(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: there are more than 64 bytes. Each step has read what it overwrites, and the first bytes are read before all.
    unsafe {
        let head = load4(from);
        let mut end = len;
        while end > 64 {
            end -= 64;
            store4(to.add(end), load4(from.add(end)));
        }
        store4(to, head);
    }
}

/// By the string instruction, which is the fastest once it has begun.
unsafe fn by_string(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: it reads and writes `len` bytes; the direction flag is clear, as everywhere.
    unsafe {
        asm!("rep movsb", inout("rcx") len => _, inout("rdi") to => _, inout("rsi") from => _, options(nostack, preserves_flags));
    }
}

#[inline(always)]
unsafe fn load(from: *const u8) -> __m128i {
    // SAFETY: the caller has 16 bytes there, of any alignment.
    unsafe { _mm_loadu_si128(from.cast()) }
}

#[inline(always)]
unsafe fn store(to: *mut u8, value: __m128i) {
    // SAFETY: the caller has 16 bytes there, of any alignment.
    unsafe { _mm_storeu_si128(to.cast(), value) }
}

#[inline(always)]
unsafe fn load2(from: *const u8) -> (__m128i, __m128i) {
    // SAFETY: the caller has 32 bytes there.
    unsafe { (load(from), load(from.add(16))) }
}

#[inline(always)]
unsafe fn store2(to: *mut u8, (a, b): (__m128i, __m128i)) {
    // SAFETY: the caller has 32 bytes there.
    unsafe {
        store(to, a);
        store(to.add(16), b);
    }
}

#[inline(always)]
unsafe fn load4(from: *const u8) -> [(__m128i, __m128i); 2] {
    // SAFETY: the caller has 64 bytes there.
    unsafe { [load2(from), load2(from.add(32))] }
}

#[inline(always)]
unsafe fn store4(to: *mut u8, [a, b]: [(__m128i, __m128i); 2]) {
    // SAFETY: the caller has 64 bytes there.
    unsafe {
        store2(to, a);
        store2(to.add(32), b);
    }
}

/// Both ends of so many bytes fit into registers.
const SHORT_MAX: usize = 128;
/// From so many bytes on the string instruction is worth its beginning.
const STRING_MIN: usize = 2048;

#[cfg(target_env = "musl")]
mod exported {
    #[unsafe(no_mangle)]
    unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
        // SAFETY: what C wants of its callers.
        unsafe { super::copy(to, from, len) };
        to
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
        // SAFETY: what C wants of its callers.
        unsafe { super::shift(to, from, len) };
        to
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn memcmp(left: *const u8, right: *const u8, len: usize) -> i32 {
        // SAFETY: what C wants of its callers.
        unsafe { super::compare(left, right, len) }
    }
}

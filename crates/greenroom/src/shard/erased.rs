//! A place for one value of any type: in the place itself if it is small, in a box if not.

use std::any::TypeId;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr;

#[cfg(feature = "rehearsal")]
use crate::actor::interface::Portable;

type Words = [MaybeUninit<u64>; WORDS];

/// A value whose type is remembered.
pub(crate) struct Erased {
    words: Words,
    type_id: TypeId,
    drop: unsafe fn(*mut Words),
    /// What it is as text, if that can be known.
    #[cfg(feature = "rehearsal")]
    text: Option<unsafe fn(*const Words) -> Text>,
}

/// A result as JSON.
#[cfg(feature = "rehearsal")]
pub(crate) type Text = Result<String, String>;

impl Erased {
    /// Keeps `value`.
    pub(crate) fn new<T: Send + 'static>(value: T) -> Self {
        let mut words = [MaybeUninit::uninit(); WORDS];
        if fits::<T>() {
            // SAFETY: `T` fits into the words, in size and alignment.
            unsafe { words.as_mut_ptr().cast::<T>().write(value) };
            Self {
                words,
                type_id: TypeId::of::<T>(),
                drop: drop_inline::<T>,
                #[cfg(feature = "rehearsal")]
                text: None,
            }
        } else {
            // SAFETY: a pointer fits.
            unsafe { words.as_mut_ptr().cast::<*mut T>().write(Box::into_raw(Box::new(value))) };
            Self {
                words,
                type_id: TypeId::of::<T>(),
                drop: drop_boxed::<T>,
                #[cfg(feature = "rehearsal")]
                text: None,
            }
        }
    }

    /// Keeps a result that can be shown.
    #[cfg(feature = "rehearsal")]
    pub(crate) fn shown<T: Portable, E: Portable>(result: Result<T, E>) -> Self {
        let mut kept = Self::new(result);
        kept.text = Some(text_of::<T, E>);
        kept
    }

    /// What it is as text, if it is a result.
    #[cfg(feature = "rehearsal")]
    pub(crate) fn text(&self) -> Option<Text> {
        // SAFETY: `text` was chosen for what the words hold.
        self.text.map(|text| unsafe { text(&self.words) })
    }

    /// Gives the value back, if it is a `T`.
    pub(crate) fn take<T: 'static>(self) -> Option<T> {
        if self.type_id != TypeId::of::<T>() {
            return None;
        }
        let this = ManuallyDrop::new(self);
        Some(if fits::<T>() {
            // SAFETY: the words hold a `T`, and `this` is not dropped.
            unsafe { ptr::read(this.words.as_ptr().cast::<T>()) }
        } else {
            // SAFETY: the words hold a pointer to a boxed `T`, and `this` is not dropped.
            *unsafe { Box::from_raw(ptr::read(this.words.as_ptr().cast::<*mut T>())) }
        })
    }
}

impl Drop for Erased {
    fn drop(&mut self) {
        // SAFETY: `drop` was chosen for what the words hold, and they are not used again.
        unsafe { (self.drop)(&mut self.words) }
    }
}

// SAFETY: only `Send` values come in.
unsafe impl Send for Erased {}

const fn fits<T>() -> bool {
    size_of::<T>() <= size_of::<Words>() && align_of::<T>() <= align_of::<Words>()
}

unsafe fn drop_inline<T>(words: *mut Words) {
    // SAFETY: the caller says that the words hold a `T`.
    unsafe { ptr::drop_in_place(words.cast::<T>()) }
}

unsafe fn drop_boxed<T>(words: *mut Words) {
    // SAFETY: the caller says that the words hold a pointer to a boxed `T`.
    drop(unsafe { Box::from_raw(ptr::read(words.cast::<*mut T>())) });
}

/// # Safety
/// The words hold a `Result<T, E>`, in themselves or in a box, as its size says.
#[cfg(feature = "rehearsal")]
unsafe fn text_of<T: Portable, E: Portable>(words: *const Words) -> Text {
    // SAFETY: the caller says what the words hold.
    let result = unsafe {
        match fits::<Result<T, E>>() {
            true => &*words.cast::<Result<T, E>>(),
            false => &**words.cast::<*const Result<T, E>>(),
        }
    };
    let text = |error: serde_json::Error| format!("not JSON: {error}");
    match result {
        Ok(value) => Ok(serde_json::to_string(value).unwrap_or_else(text)),
        Err(error) => Err(serde_json::to_string(error).unwrap_or_else(text)),
    }
}

/// Replies are mostly small: six words keep them out of the allocator.
const WORDS: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_small_and_a_large_value_come_back() {
        assert_eq!(Erased::new(7_u64).take::<u64>(), Some(7));
        assert_eq!(Erased::new([7_u64; 100]).take::<[u64; 100]>(), Some([7; 100]));
        assert_eq!(Erased::new(()).take::<()>(), Some(()));
    }

    #[test]
    fn another_type_is_refused_and_the_value_dropped_once() {
        let value = Arc::new(());
        assert!(Erased::new(value.clone()).take::<u64>().is_none());
        assert_eq!(Arc::strong_count(&value), 1);
        drop(Erased::new((value.clone(), [0_u64; 100])));
        assert_eq!(Arc::strong_count(&value), 1);
    }
}

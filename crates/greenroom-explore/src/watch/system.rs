//! The functions of the C library that are watched. Those of this program come before those of shared libraries, so the standard library
//! calls these.

use std::ffi::CStr;
use std::mem::transmute;
use std::process::abort;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Duration;

use libc::{c_int, c_void, clockid_t, pthread_attr_t, pthread_t, timespec};

use super::{NOTICED, Noticed, SHOWN};

/// What a thread begins with.
type Body = extern "C" fn(*mut c_void) -> *mut c_void;

/// Shows the schedule's time in steps.
#[unsafe(no_mangle)]
unsafe extern "C" fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int {
    let shown = SHOWN.get().and_then(|shown| match clock {
        libc::CLOCK_MONOTONIC | libc::CLOCK_MONOTONIC_RAW | libc::CLOCK_MONOTONIC_COARSE | libc::CLOCK_BOOTTIME => {
            Some(shown.monotonic)
        }
        libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE => Some(shown.wall),
        // Others count what a thread or process has computed.
        _ => None,
    });
    match shown {
        Some(shown) => {
            let shown = timespec { tv_sec: shown.as_secs() as _, tv_nsec: shown.subsec_nanos().into() };
            // SAFETY: the caller says where a time may be written.
            unsafe { time.write(shown) };
            0
        }
        // SAFETY: the library's function of this name has this type.
        None => unsafe {
            transmute::<*mut c_void, unsafe extern "C" fn(clockid_t, *mut timespec) -> c_int>(CLOCK.get())(clock, time)
        },
    }
}

/// Is over at once in steps, and noticed.
#[unsafe(no_mangle)]
unsafe extern "C" fn nanosleep(time: *const timespec, left: *mut timespec) -> c_int {
    if notice(Noticed::Sleep) {
        return 0;
    }
    // SAFETY: the library's function of this name has this type.
    unsafe {
        transmute::<*mut c_void, unsafe extern "C" fn(*const timespec, *mut timespec) -> c_int>(SLEEP.get())(time, left)
    }
}

/// The same by another clock.
#[unsafe(no_mangle)]
unsafe extern "C" fn clock_nanosleep(
    clock: clockid_t,
    flags: c_int,
    time: *const timespec,
    left: *mut timespec,
) -> c_int {
    if notice(Noticed::Sleep) {
        return 0;
    }
    type Sleep = unsafe extern "C" fn(clockid_t, c_int, *const timespec, *mut timespec) -> c_int;
    // SAFETY: the library's function of this name has this type.
    unsafe { transmute::<*mut c_void, Sleep>(CLOCK_SLEEP.get())(clock, flags, time, left) }
}

/// Is noticed in steps.
#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_create(
    thread: *mut pthread_t,
    attributes: *const pthread_attr_t,
    body: Body,
    argument: *mut c_void,
) -> c_int {
    notice(Noticed::Thread);
    type Create = unsafe extern "C" fn(*mut pthread_t, *const pthread_attr_t, Body, *mut c_void) -> c_int;
    // SAFETY: the library's function of this name has this type.
    unsafe { transmute::<*mut c_void, Create>(THREAD.get())(thread, attributes, body, argument) }
}

/// What the system's clock shows outside of steps.
pub(super) fn real_monotonic() -> Duration {
    let mut time = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it is written to a time. By this call the linker has reason to take these functions into the program.
    unsafe { clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Whether a step runs; then this is what it has done.
fn notice(what: Noticed) -> bool {
    let is_step = SHOWN.get().is_some();
    if is_step {
        NOTICED.set(NOTICED.get().or(Some(what)));
    }
    is_step
}

/// A function of the C library that one of here stands before.
struct Real {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

impl Real {
    const fn named(name: &'static CStr) -> Self {
        Self { name, found: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Where it is.
    fn get(&self) -> *mut c_void {
        let found = self.found.load(Ordering::Relaxed);
        if !found.is_null() {
            return found;
        }
        // SAFETY: the name is a text with its end.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        if found.is_null() {
            // A C library without clocks and threads is none; and there is nothing to be told with.
            abort();
        }
        self.found.store(found, Ordering::Relaxed);
        found
    }
}

static CLOCK: Real = Real::named(c"clock_gettime");
static SLEEP: Real = Real::named(c"nanosleep");
static CLOCK_SLEEP: Real = Real::named(c"clock_nanosleep");
static THREAD: Real = Real::named(c"pthread_create");

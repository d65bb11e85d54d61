//! The real world: tokio, TCP, the system's clock.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Handle};
use tokio::sync::watch;

use crate::{Accepting, BoxFuture, Listener, LocalFuture, Stage, Stream, ThreadBody, Timestamp, World};

/// Threads, sockets and the clock of this machine. Dropping it stops the stages and what runs on them.
pub struct RealWorld {
    control: Handle,
    door: Handle,
    store: Handle,
    inspection: Handle,
    spin: Duration,
    /// Closed on drop: the stages' threads wait for it.
    _open: watch::Sender<()>,
}

impl RealWorld {
    /// Starts the threads of the stages; shards start theirs when they are asked for.
    ///
    /// # Errors
    /// The system's error when no thread or reactor can be had.
    pub fn start() -> io::Result<Arc<Self>> {
        let (open, closed) = watch::channel(());
        Ok(Arc::new(Self {
            control: start_stage("greenroom-control", closed.clone())?,
            door: start_stage("greenroom-door", closed.clone())?,
            store: start_stage("greenroom-store", closed.clone())?,
            inspection: start_stage("greenroom-inspect", closed)?,
            spin: SPIN_DEFAULT,
            _open: open,
        }))
    }
}

fn start_stage(name: &str, mut closed: watch::Receiver<()>) -> io::Result<Handle> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    thread::Builder::new().name(name.into()).spawn(move || {
        runtime.block_on(async move { while closed.changed().await.is_ok() {} });
        runtime.shutdown_background();
    })?;
    Ok(handle)
}

impl World for RealWorld {
    fn now(&self) -> Timestamp {
        boot_time()
    }

    fn wall(&self) -> Duration {
        // A clock before 1970 is not set: as good as 1970.
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }

    fn random(&self) -> u64 {
        thread_random()
    }

    fn sleep_until(&self, at: Timestamp) -> BoxFuture<()> {
        Box::pin(async move {
            // tokio's clock stands still while the machine sleeps; ours does not. So look again.
            loop {
                let left = at.since(boot_time());
                if left.is_zero() {
                    return;
                }
                tokio::time::sleep(left.min(SLEEP_SLICE)).await;
            }
        })
    }

    fn spawn(&self, stage: Stage, task: BoxFuture<()>) {
        let handle = match stage {
            Stage::Control => &self.control,
            Stage::Door => &self.door,
            Stage::Store => &self.store,
            Stage::Inspection => &self.inspection,
        };
        handle.spawn(task);
    }

    fn start_shard(&self, name: String, body: ThreadBody) -> io::Result<()> {
        let runtime = Builder::new_current_thread().enable_all().event_interval(EVENT_INTERVAL).build()?;
        thread::Builder::new().name(name).stack_size(SHARD_STACK_BYTES).spawn(move || {
            runtime.block_on(async move { body().await });
            runtime.shutdown_background();
        })?;
        Ok(())
    }

    fn start_blocking(&self, name: String, body: ThreadBody) -> io::Result<()> {
        thread::Builder::new().name(name).spawn(move || block_on(body()))?;
        Ok(())
    }

    fn listen(&self, address: &str) -> BoxFuture<io::Result<Box<dyn Listener>>> {
        let address = address.to_owned();
        // On the control thread's reactor: the caller's runtime may be busy, or end before the node does.
        let binding = self.control.spawn(async move {
            let listener = TcpListener::bind(&address).await?;
            let address = listener.local_addr()?.to_string();
            Ok(Box::new(RealListener { listener, address }) as Box<dyn Listener>)
        });
        Box::pin(async move { binding.await.map_err(io::Error::other)? })
    }

    fn connect(&self, address: &str) -> BoxFuture<io::Result<Box<dyn Stream>>> {
        let address = address.to_owned();
        Box::pin(async move {
            let stream = TcpStream::connect(&address).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(RealStream(stream)) as Box<dyn Stream>)
        })
    }

    fn thread_time(&self) -> Option<Duration> {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is a valid timespec, and the clock exists on every Linux.
        let answered = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) } == 0;
        answered.then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
    }

    fn thread_ready(&self) -> Option<Duration> {
        thread_local! {
            // What was opened by a thread goes on to tell of that one.
            static SCHEDULED: Option<File> = File::open("/proc/thread-self/schedstat").ok();
        }
        let mut text = [0; 64];
        let read = SCHEDULED.with(|file| file.as_ref()?.read_at(&mut text, 0).ok())?;
        // Time on a core, time in wait of one, and how often it had one.
        let waited = str::from_utf8(&text[..read]).ok()?.split_whitespace().nth(1)?;
        waited.parse().ok().map(Duration::from_nanos)
    }

    fn thread_sleeps(&self) -> Option<u64> {
        // SAFETY: all zeroes are a valid `rusage`, and the call fills in the calling thread's.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        let answered = unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) } == 0;
        answered.then_some(usage.ru_nvcsw as u64)
    }

    fn spin(&self) -> Duration {
        self.spin
    }

    fn give_way(&self) {
        thread::yield_now();
    }
}

/// Runs `future` on this thread, which parks while that waits.
fn block_on(mut future: LocalFuture) {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    while future.as_mut().poll(&mut context).is_pending() {
        thread::park();
    }
}

/// Nanoseconds since boot, suspended time included.
fn boot_time() -> Timestamp {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec, and CLOCK_BOOTTIME exists on every Linux since 2.6.39.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut time) };
    Timestamp::from_nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// SplitMix64 over a per-thread state, seeded from the system's entropy (through std's hasher keys) and the clock.
fn thread_random() -> u64 {
    static SEEDS: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static STATE: Cell<u64> = Cell::new({
            use std::hash::{BuildHasher, RandomState};
            RandomState::new().hash_one((SEEDS.fetch_add(1, Ordering::Relaxed), boot_time()))
        });
    }
    STATE.with(|state| {
        let next = state.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
        state.set(next);
        let mut z = next;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    })
}

struct RealListener {
    listener: TcpListener,
    address: String,
}

impl Listener for RealListener {
    fn accept(&mut self) -> Accepting<'_> {
        Box::pin(async {
            let (stream, from) = self.listener.accept().await?;
            stream.set_nodelay(true)?;
            Ok((Box::new(RealStream(stream)) as Box<dyn Stream>, from.to_string()))
        })
    }

    fn address(&self) -> String {
        self.address.clone()
    }
}

struct RealStream(TcpStream);

impl Stream for RealStream {
    fn rebind(self: Box<Self>) -> io::Result<Box<dyn Stream>> {
        let stream = TcpStream::from_std(self.0.into_std()?)?;
        Ok(Box::new(RealStream(stream)))
    }
}

impl AsyncRead for RealStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for RealStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// A park and wake-up costs several microseconds; looking this long first is cheaper when a reply is on its way.
const SPIN_DEFAULT: Duration = Duration::from_micros(20);
/// Ticks of the shard's runtime between two looks at its sockets: the shard's own loop is the batch.
const EVENT_INTERVAL: u32 = 1;
/// Calls that find their callee idle run it on the caller's stack, nested to a bounded depth.
const SHARD_STACK_BYTES: usize = 8 << 20;
/// Longest wait on tokio's clock before the boot clock is read again.
const SLEEP_SLICE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_thread_for_what_blocks_is_in_no_runtimes_context_and_parks_while_it_waits() {
        let world = RealWorld::start().unwrap();
        let (told, hears) = mpsc::channel();
        let (go, gone) = tokio::sync::oneshot::channel();
        let body: ThreadBody = Box::new(move || {
            Box::pin(async move {
                told.send(Handle::try_current().is_err()).unwrap();
                gone.await.unwrap();
                told.send(true).unwrap();
            })
        });
        world.start_blocking("blocks".to_owned(), body).unwrap();
        assert_eq!(hears.recv(), Ok(true), "it is in no runtime's context");
        go.send(()).unwrap();
        assert_eq!(hears.recv(), Ok(true));
        assert!(hears.recv().is_err(), "the thread ends with its future");
    }

    #[test]
    fn a_thread_knows_what_it_has_used_and_waited_for() {
        let world = RealWorld::start().unwrap();
        let before = (world.thread_time(), world.thread_ready());
        while world.thread_time() == before.0 {
            thread::yield_now();
        }
        assert!(world.thread_time() > before.0);
        if std::path::Path::new("/proc/thread-self/schedstat").exists() {
            assert!(before.1.is_some() && world.thread_ready() >= before.1);
        }
    }
}

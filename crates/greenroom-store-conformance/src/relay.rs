//! A network that fails on demand: a TCP relay on loopback, between a provider and its engine.

use std::io;
use std::net::SocketAddr;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A TCP relay: open the provider on [`addr`](Self::addr) instead of the engine's own address.
///
/// It has a thread of its own and ends when dropped, breaking every connection.
#[derive(Debug)]
pub struct Relay {
    addr: SocketAddr,
    weather: watch::Sender<Weather>,
    thread: Option<JoinHandle<()>>,
}

/// What the relay does to the bytes that come by.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Weather {
    requests: Way,
    answers: Way,
    delay: Duration,
    /// A connection ends when this changes.
    cuts: u64,
    /// Whether new connections are broken at once.
    refuses: bool,
    ends: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Open,
    Held,
}

impl Relay {
    /// Starts to relay to `engine`.
    ///
    /// # Errors
    ///
    /// If no port of loopback or no thread is to be had.
    pub fn start(engine: SocketAddr) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let addr = listener.local_addr()?;
        let clear = Weather {
            requests: Way::Open,
            answers: Way::Open,
            delay: Duration::ZERO,
            cuts: 0,
            refuses: false,
            ends: false,
        };
        let (weather, forecast) = watch::channel(clear);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::Builder::new().name("relay".to_owned()).spawn(move || {
            runtime.block_on(serve(listener, engine, forecast));
        })?;
        Ok(Self { addr, weather, thread: Some(thread) })
    }

    /// Where the relay listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// From now on requests are held up, connections and new ones included; nobody is told.
    pub fn hold_requests(&self) {
        self.weather.send_modify(|weather| weather.requests = Way::Held);
    }

    /// From now on answers are held up: what is asked is done, and nobody is told.
    pub fn hold_answers(&self) {
        self.weather.send_modify(|weather| weather.answers = Way::Held);
    }

    /// From now on everything takes `delay` longer in either direction.
    pub fn delay(&self, delay: Duration) {
        self.weather.send_modify(|weather| weather.delay = delay);
    }

    /// Breaks every connection, with what was held up in it; new ones work.
    pub fn cut(&self) {
        self.weather.send_modify(|weather| weather.cuts += 1);
    }

    /// Breaks every connection, and every new one until [`heal`](Self::heal).
    pub fn refuse(&self) {
        self.weather.send_modify(|weather| {
            weather.cuts += 1;
            weather.refuses = true;
        });
    }

    /// Ends holding, delays and refusals: what was held up and not cut is delivered now.
    pub fn heal(&self) {
        self.weather.send_modify(|weather| {
            let Weather { cuts, ends, .. } = *weather;
            *weather =
                Weather { requests: Way::Open, answers: Way::Open, delay: Duration::ZERO, cuts, refuses: false, ends };
        });
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.weather.send_modify(|weather| weather.ends = true);
        if let Some(thread) = self.thread.take() {
            // The panic of the relay's thread was reported when it happened.
            drop(thread.join());
        }
    }
}

async fn serve(listener: std::net::TcpListener, engine: SocketAddr, mut forecast: watch::Receiver<Weather>) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let again = forecast.clone();
    let accepting = async {
        loop {
            let Ok((client, _)) = listener.accept().await else { return };
            if !again.borrow().refuses {
                tokio::spawn(relay(client, engine, again.clone()));
            }
        }
    };
    tokio::select! {
        () = accepting => {}
        _ = forecast.wait_for(|weather| weather.ends) => {}
    }
}

async fn relay(client: TcpStream, engine: SocketAddr, mut forecast: watch::Receiver<Weather>) {
    let cuts = forecast.borrow().cuts;
    let (requests, answers) = (forecast.clone(), forecast.clone());
    let relaying = async {
        let Ok(server) = TcpStream::connect(engine).await else { return };
        // Small answers must not wait for one another, or the relay would be what is measured.
        drop((client.set_nodelay(true), server.set_nodelay(true)));
        let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
        tokio::join!(
            pass(from_client, to_server, requests, |weather| weather.requests),
            pass(from_server, to_client, answers, |weather| weather.answers),
        );
    };
    tokio::select! {
        () = relaying => {}
        _ = forecast.wait_for(|weather| weather.cuts != cuts) => {}
    }
}

/// Passes bytes in one direction until one side ends.
async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut forecast: watch::Receiver<Weather>,
    way: fn(&Weather) -> Way,
) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let delay = forecast.borrow().delay;
        if delay > Duration::ZERO {
            tokio::time::sleep(delay).await;
        }
        if forecast.wait_for(|weather| way(weather) == Way::Open).await.is_err()
            || to.write_all(&buffer[..read]).await.is_err()
        {
            return;
        }
    }
    // The other side may have gone already.
    drop(to.shutdown().await);
}

//! One connection that is ready for use: checked, its scripts loaded.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use greenroom_store::network::Connect;
use greenroom_store::{Result, StoreError};
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{AsyncConnectionConfig, RedisError, Value};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::script::{self, Script, Versions};
use crate::status::Status;
use crate::target::{TCP_SILENCE_MAX, Target};
use crate::{FORMAT, fault};

/// A connection, whose task runs in the runtime in which the store was opened. It ends when this is dropped.
pub(crate) struct Session {
    pub(crate) connection: MultiplexedConnection,
    pub(crate) status: Status,
    pub(crate) versions: Versions,
    pub(crate) commit: Script,
    pub(crate) scan: Script,
    pub(crate) entries: Script,
    has_ended: Arc<AtomicBool>,
}

impl Session {
    /// Connects to `target`; marks an empty store as this program's if `creates`. The connection's task is spawned on
    /// the runtime that polls this.
    pub(crate) async fn open(target: &Target, creates: bool) -> Result<Self> {
        let opened = tokio::time::timeout(target.options.connect_timeout, Self::open_slowly(target, creates));
        opened.await.unwrap_or_else(|_| {
            let reason =
                format!("no connection could be made in {:?}; {}", target.options.connect_timeout, fault::LOOK);
            Err(StoreError::Unavailable { store: target.name.clone(), reason })
        })
    }

    async fn open_slowly(target: &Target, creates: bool) -> Result<Self> {
        let host = target.host();
        let failed = |error: std::io::Error| {
            let reason = format!("{host} cannot be reached: {error}; {}", fault::LOOK);
            StoreError::Unavailable { store: target.name.clone(), reason }
        };
        let stream = TcpStream::connect((host.name.as_str(), host.port)).await.map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        let socket = socket2::SockRef::from(&stream);
        let keepalive = socket2::TcpKeepalive::new().with_time(KEEPALIVE_IDLE).with_interval(KEEPALIVE_INTERVAL);
        socket.set_tcp_keepalive(&keepalive).map_err(failed)?;
        socket.set_tcp_user_timeout(Some(TCP_SILENCE_MAX)).map_err(failed)?;
        match &target.tls {
            None => Self::greet(target, stream, creates).await,
            Some((connector, server)) => {
                let stream = connector.connect(server.clone(), stream).await.map_err(failed)?;
                Self::greet(target, stream, creates).await
            }
        }
    }

    async fn greet(
        target: &Target,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        creates: bool,
    ) -> Result<Self> {
        let fault = |error: RedisError| fault::of_opening(target, &error);
        let config = AsyncConnectionConfig::new().set_response_timeout(None).set_pipeline_buffer_size(PIPELINE_LEN_MAX);
        let greeting = target.greeting()?;
        let opened = MultiplexedConnection::new_with_config(&greeting, stream, config);
        let (mut connection, driver) = opened.await.map_err(fault)?;
        let has_ended = Arc::new(AtomicBool::new(false));
        let ends = has_ended.clone();
        tokio::spawn(async move {
            driver.await;
            ends.store(true, Ordering::Release);
        });
        let status = Status::ask(&mut connection, target).await?;
        let mut scripts = Vec::new();
        for text in [script::COMMIT, script::SCAN, script::ENTRIES, script::PROBE] {
            let mut load = redis::cmd("SCRIPT");
            let loaded = connection.req_packed_command(load.arg("LOAD").arg(text)).await.map_err(fault)?;
            let loaded = loaded.extract_error().map_err(fault)?;
            scripts.push(Script(script::text(&loaded).ok_or_else(|| fault::strange(target, &loaded))?));
        }
        let [commit, scan, entries, probe] = <[Script; 4]>::try_from(scripts).expect("each text has become a script");
        let look = match creates {
            true => probe.call(&target.prefix),
            false => redis::cmd("GET").arg(format!("{}format", target.prefix)).take(),
        };
        let found = connection.req_packed_command(&look).await.and_then(Value::extract_error).map_err(fault)?;
        let format = script::text(&found).unwrap_or_default();
        if format != FORMAT {
            return Err(fault::format(target, &format));
        }
        Ok(Self { connection, status, versions: Versions::new(), commit, scan, entries, has_ended })
    }
}

impl Connect for Target {
    type Session = Session;

    fn connect(&self) -> impl Future<Output = Result<Session>> + Send {
        Session::open(self, false)
    }

    fn is_open(session: &Session) -> bool {
        !session.has_ended.load(Ordering::Acquire)
    }

    fn name(&self) -> &str {
        &self.name
    }
}

/// Most requests that wait before the connection's task takes them.
const PIPELINE_LEN_MAX: usize = 1024;

const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);

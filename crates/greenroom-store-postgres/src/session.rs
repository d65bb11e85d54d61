//! One connection that is ready for use: checked, set up, its statements prepared.

use futures_util::future::try_join_all;
use greenroom_store::network::Connect;
use greenroom_store::{Result, StoreError};
use tokio_postgres::{Client, SimpleQueryMessage, Statement};

use crate::target::Target;
use crate::{Durability, fault, schema};

/// A connection, whose task runs in the runtime in which the store was opened. It ends when this is dropped.
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) durability: Durability,
    pub(crate) commit: Statement,
    pub(crate) read: Statement,
    pub(crate) scan: Statement,
    pub(crate) entries: Statement,
    pub(crate) end: Statement,
    pub(crate) trim: Statement,
}

impl Session {
    /// Connects to `target`; creates what is not there if `creates`. The connection's task is spawned on the runtime
    /// that polls this.
    pub(crate) async fn open(target: &Target, creates: bool) -> Result<Self> {
        let opened = tokio::time::timeout(target.options.connect_timeout, Self::open_slowly(target, creates));
        opened.await.unwrap_or_else(|_| {
            let reason = format!(
                "no connection could be made in {:?}; is the server running, and are host, port and firewall right?",
                target.options.connect_timeout
            );
            Err(StoreError::Unavailable { store: target.name.clone(), reason })
        })
    }

    async fn open_slowly(target: &Target, creates: bool) -> Result<Self> {
        let fault = |error| fault::of_opening(target, &error);
        let (client, connection) = target.config()?.connect(target.tls.clone()).await.map_err(fault)?;
        let store = target.name.clone();
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(store, %error, "a connection has ended");
            }
        });
        let durability = set_up(&client, target).await?;
        if creates {
            schema::prepare(&client, target).await?;
            check_rights(&client, target).await?;
        } else {
            schema::check_format(&client, target).await?;
        }
        let sql = [COMMIT, READ, SCAN, ENTRIES, END, TRIM].map(|sql| target.names.fill(sql));
        let statements = try_join_all(sql.iter().map(|sql| client.prepare(sql))).await.map_err(fault)?;
        let [commit, read, scan, entries, end, trim] =
            <[Statement; 6]>::try_from(statements).expect("each text has become a statement");
        Ok(Self { client, durability, commit, read, scan, entries, end, trim })
    }
}

/// Sets the session up and looks at the server.
async fn set_up(client: &Client, target: &Target) -> Result<Durability> {
    let statement_ms = target.options.statement_timeout.as_millis().max(1);
    let sql = format!("SET statement_timeout = {statement_ms}; {SET_UP}");
    let answers = client.simple_query(&sql).await.map_err(|error| fault::of_opening(target, &error))?;
    let rows = answers.iter().filter_map(|answer| match answer {
        SimpleQueryMessage::Row(row) if row.columns().len() == 4 => Some(row),
        _ => None,
    });
    let row = rows.last();
    let setting = |at: usize| row.and_then(|row| row.get(at)).unwrap_or_default();
    let (encoding, standby, fsync, whole_pages) = (setting(0), setting(1), setting(2), setting(3));
    let store = || target.name.clone();
    if encoding != "UTF8" {
        let reason = format!(
            "its database is encoded in {encoding}, which does not hold every key; make one by \
             CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0"
        );
        return Err(StoreError::Format { store: store(), reason });
    }
    if standby == "t" {
        let reason = "it is a standby, which takes no writes and may be behind; name the primary".to_owned();
        return Err(StoreError::Unavailable { store: store(), reason });
    }
    Ok(if fsync == "on" && whole_pages == "on" { Durability::Full } else { Durability::ProcessCrash })
}

/// Refuses a user who lacks rights now, rather than at the first write.
async fn check_rights(client: &Client, target: &Target) -> Result<()> {
    let row = client.query_one(&target.names.fill(RIGHTS), &[]).await;
    let row = row.map_err(|error| fault::of_opening(target, &error))?;
    let Some(lacking) = row.get::<_, Option<String>>(0) else { return Ok(()) };
    let reason = format!("user {:?} lacks rights: {lacking}; {}", target.user(), fault::remedy_for_rights(target));
    Err(StoreError::Denied { store: target.name.clone(), reason })
}

/// Plans are made once and go by the index, as the tables may grow long after. A session in which commits do not wait
/// for the device, by a default of the user or the database, is made to wait.
const SET_UP: &str = "
    SET default_transaction_isolation = 'read committed';
    SET idle_in_transaction_session_timeout = '10s';
    SET plan_cache_mode = force_generic_plan;
    SET enable_seqscan = off;
    SET enable_hashjoin = off;
    SET enable_mergejoin = off;
    SET jit = off;
    SET client_min_messages = error;
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off';
    SELECT current_setting('server_encoding'), pg_is_in_recovery(),
        current_setting('fsync'), current_setting('full_page_writes')";

const RIGHTS: &str = "
    SELECT string_agg(kind || ' on ' || place, ', ') FROM (
        SELECT kind, place, has_table_privilege('@.' || place, kind) AS has
            FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS kind,
                unnest(ARRAY['greenroom_store', 'greenroom_log', 'greenroom_entry']) AS place
        UNION ALL SELECT 'SELECT', 'greenroom_meta', has_table_privilege('@.greenroom_meta', 'SELECT')
        UNION ALL SELECT 'USAGE', 'greenroom_version', has_sequence_privilege('@.greenroom_version', 'USAGE')
        UNION ALL SELECT 'EXECUTE', 'greenroom_commit', has_function_privilege(oid, 'EXECUTE')
            FROM pg_proc WHERE proname = 'greenroom_commit' AND pronamespace = quote_ident(replace('@', '\"', ''))::regnamespace
    ) AS rights WHERE NOT has";

const COMMIT: &str = "
    SELECT versions, founds, positions FROM @.greenroom_commit($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";

const READ: &str = "SELECT version, value FROM @.greenroom_store WHERE key = $1";

/// Reads one more than the page may hold, which tells whether another follows, and the values of those only that fit.
const SCAN: &str = "
    SELECT key, version, CASE WHEN number <= $4::bigint AND before < $5::bigint THEN value END
    FROM (
        SELECT key, version, value, row_number() OVER (ORDER BY key) AS number,
            coalesce(sum(octet_length(value) + octet_length(key))
                OVER (ORDER BY key ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)::bigint AS before
        FROM (
            SELECT key, version, value FROM @.greenroom_store
            WHERE key > $1 AND key >= $2 AND key < $3 ORDER BY key LIMIT $4::bigint + 1
        ) AS page
    ) AS sized
    ORDER BY key";

const ENTRIES: &str = "
    SELECT position, value
    FROM (
        SELECT position, value, coalesce(sum(octet_length(value))
            OVER (ORDER BY position ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)::bigint AS before
        FROM (
            SELECT position, value FROM @.greenroom_entry
            WHERE log = $1 AND position >= $2 ORDER BY position LIMIT $3::bigint
        ) AS page
    ) AS sized
    WHERE before < $4::bigint
    ORDER BY position";

const END: &str = "SELECT last + 1 FROM @.greenroom_log WHERE log = $1";

/// Some of the entries, the first ones first.
const TRIM: &str = "
    DELETE FROM @.greenroom_entry
    WHERE log = $1 AND position <= $2
        AND position < (SELECT min(position) + 10000 FROM @.greenroom_entry WHERE log = $1)";

impl Connect for Target {
    type Session = Session;

    fn connect(&self) -> impl Future<Output = Result<Session>> + Send {
        Session::open(self, false)
    }

    fn is_open(session: &Session) -> bool {
        !session.client.is_closed()
    }

    fn name(&self) -> &str {
        &self.name
    }
}

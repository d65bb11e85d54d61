//! The tables, their format, and the function that commits.

use greenroom_store::{Result, StoreError};
use tokio_postgres::Client;

use crate::fault;
use crate::target::Target;

/// The tables' names, quoted, within their schema.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    /// Quoted.
    pub(crate) schema: String,
}

impl Names {
    /// Those in `schema`, which is not quoted yet and holds no quotes.
    pub(crate) fn within(schema: &str) -> Self {
        Self { schema: format!("\"{schema}\"") }
    }

    /// `sql` with the schema in the place of `@`.
    pub(crate) fn fill(&self, sql: &str) -> String {
        sql.replace('@', &self.schema)
    }
}

/// Creates what is not there, unless the tables are; checks their format.
pub(crate) async fn prepare(client: &Client, target: &Target) -> Result<()> {
    let fault = |error| fault::of_opening(target, &error);
    if !exists(client, target).await? {
        let creation = format!("BEGIN; {}; COMMIT", target.names.fill(CREATE));
        if let Err(error) = client.batch_execute(&creation).await {
            // It fails only if the connection has ended, which ends the transaction too.
            drop(client.batch_execute("ROLLBACK").await);
            return Err(fault(error));
        }
    }
    check_format(client, target).await
}

/// Refuses a format that this program does not know.
pub(crate) async fn check_format(client: &Client, target: &Target) -> Result<()> {
    let row = client.query_opt(&target.names.fill("SELECT format FROM @.greenroom_meta"), &[]).await;
    let format = row.map_err(|error| fault::of_opening(target, &error))?.map(|row| row.get::<_, i32>(0));
    if format == Some(FORMAT) { Ok(()) } else { Err(unknown_format(target, format)) }
}

/// What is said of a `format` that is not this program's.
pub(crate) fn unknown_format(target: &Target, format: Option<i32>) -> StoreError {
    let reason = match format {
        Some(format) => {
            format!("its format is {format}, this program knows {FORMAT}; use the newer Greenroom that wrote it")
        }
        None => format!(
            "table greenroom_meta in schema {} has no row, so it was not made by Greenroom; name another schema",
            target.names.schema
        ),
    };
    StoreError::Format { store: target.name.clone(), reason }
}

async fn exists(client: &Client, target: &Target) -> Result<bool> {
    let name = target.names.fill("@.greenroom_meta");
    let row = client.query_one("SELECT to_regclass($1) IS NOT NULL", &[&name]).await;
    Ok(row.map_err(|error| fault::of_opening(target, &error))?.get(0))
}

/// The format that this program reads and writes.
pub(crate) const FORMAT: i32 = 1;

/// What the commit function raises when the format is another.
pub(crate) const OTHER_FORMAT: &str = "GR001";

/// `@` is the schema. The lock keeps openers that come at the same time from creating twice; the number is any.
/// Versions come from a sequence, which neither a deletion nor a crash sets back.
const CREATE: &str = include_str!("schema.sql");

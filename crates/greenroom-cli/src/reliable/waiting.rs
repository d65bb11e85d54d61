//! `greenroom reliable waiting`: messages that wait for their turns; and `drop`, which takes them too. Both ask a node, or work on
//! the journal itself when no node can stay up.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use greenroom_reliable::ledger::{OfflineJournal, StoredMessage};
use greenroom_store::Journal;
use greenroom_store::url::StoreUrl;
use serde_json::{Value, json};

use super::{NodeAddress, ask, get};

/// Where to look, and for which actor.
#[derive(Args)]
pub(super) struct Waiting {
    /// Of this actor alone, as KIND/KEY
    #[arg(value_name = "KIND/KEY")]
    actor: Option<String>,
    /// Show them as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    offline: Offline,
    #[command(flatten)]
    node: NodeAddress,
}

/// Which message to drop.
#[derive(Args)]
pub(super) struct Drop {
    /// Where it is, as `parked` and `waiting` show it
    #[arg(value_name = "PARTITION:PLACE")]
    message: String,
    #[command(flatten)]
    offline: Offline,
    #[command(flatten)]
    node: NodeAddress,
}

/// A journal to work on without a node.
#[derive(Args)]
struct Offline {
    /// Work on this journal instead of asking a node: sqlite:PATH, postgres://.., redis://.., etcd://.., kafka://..
    #[arg(long, value_name = "URL")]
    journal: Option<String>,
    /// The cluster's name in the journal, as the nodes' configuration has it
    #[arg(long, value_name = "NAME", default_value = "greenroom", requires = "journal")]
    cluster: String,
}

impl Waiting {
    /// Lists the messages.
    pub(super) fn run(&self) -> Result<(), String> {
        let actor = self.actor.as_deref().map(|actor| {
            actor.split_once('/').ok_or_else(|| "name the actor as KIND/KEY, such as account/ada".to_owned())
        });
        let actor = actor.transpose()?;
        let shown = match &self.offline.journal {
            Some(url) => self.offline.list(url, actor)?,
            None => {
                let path: Vec<&str> = ["-", "reliable", "waiting"]
                    .into_iter()
                    .chain(actor.into_iter().flat_map(|(kind, key)| [kind, key]))
                    .collect();
                get(&self.node, &path)?
            }
        };
        print(&shown, self.json)
    }
}

impl Drop {
    /// Drops the message.
    pub(super) fn run(&self) -> Result<(), String> {
        match &self.offline.journal {
            Some(url) => self.offline.discard(url, &self.message),
            None => ask(&self.node, &self.message, "drop", "dropped"),
        }
    }
}

impl Offline {
    fn list(&self, url: &str, actor: Option<(&str, &str)>) -> Result<Value, String> {
        let messages = self.within(url, async |journal| journal.messages().await.map_err(|error| error.to_string()))?;
        let is_wanted =
            |message: &&StoredMessage| actor.is_none_or(|(kind, key)| message.to.kind == kind && message.to.key == key);
        let name = |actor: &greenroom_reliable::ledger::StoredActor| format!("{}/{}", actor.kind, actor.key);
        let shown = messages.iter().filter(is_wanted).map(|message| {
            json!({
                "partition": message.partition,
                "place": message.place.name(),
                "actor": name(&message.to),
                "from": message.from.as_ref().map(name),
                "method": message.method,
                "state": if message.error.is_some() { "parked" } else { "waiting" },
                "deaths": message.deaths,
                "error": message.error,
            })
        });
        Ok(json!({ "waiting": shown.collect::<Vec<_>>() }))
    }

    fn discard(&self, url: &str, message: &str) -> Result<(), String> {
        let (partition, place) = message.split_once(':').ok_or(UNNAMED)?;
        let partition = partition.parse().map_err(|_| UNNAMED.to_owned())?;
        let dropped = self
            .within(url, async |journal| journal.discard(partition, place).await.map_err(|error| error.to_string()))?;
        println!("dropped {}/{}.{}", dropped.to.kind, dropped.to.key, dropped.method);
        Ok(())
    }

    /// Opens the journal for `work`; a file is not made.
    fn within<T>(&self, url: &str, work: impl AsyncFnOnce(OfflineJournal) -> Result<T, String>) -> Result<T, String> {
        if let Ok(StoreUrl::Sqlite { path }) = url.parse()
            && !path.exists()
        {
            return Err(format!("there is no file {}; name the journal that the nodes use", path.display()));
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| format!("cannot start a runtime: {error}"))?;
        runtime.block_on(async {
            let opened = greenroom_stores::open(url).await.map_err(|error| error.to_string())?;
            let none = "it is no journal; name the one that the nodes have under `[reliable]`";
            let journal: Arc<dyn Journal> = opened.journal.ok_or(none)?;
            let opened = OfflineJournal::open(journal, &self.cluster, PATIENCE).await;
            work(opened.map_err(|error| error.to_string())?).await
        })
    }
}

fn print(shown: &Value, json: bool) -> Result<(), String> {
    let messages = shown["waiting"].as_array().map_or(&[][..], Vec::as_slice);
    if json {
        println!("{}", shown["waiting"]);
        return Ok(());
    }
    for message in messages {
        let text = |field: &str, none: &str| message[field].as_str().unwrap_or(none).to_owned();
        let number = |field: &str| message[field].as_u64().unwrap_or_default();
        let mut line = format!(
            "{}:{}\t{}.{}\tfrom {}\t{}",
            number("partition"),
            text("place", "(nowhere)"),
            text("actor", ""),
            text("method", ""),
            text("from", "outside"),
            text("state", "")
        );
        for (field, name) in [("attempts", "failures"), ("deaths", "deaths")] {
            if number(field) > 0 {
                line.push_str(&format!(", {} {name}", number(field)));
            }
        }
        println!("{line}");
    }
    match (messages.len(), shown["more"].as_u64().unwrap_or_default()) {
        (0, _) => println!("nothing waits"),
        (_, 0) => {}
        (_, more) => println!("and {more} more; name an actor to see its own"),
    }
    match shown["silent_partitions"].as_array() {
        Some(silent) if !silent.is_empty() => Err(format!("{} partitions do not answer; ask again", silent.len())),
        _ => Ok(()),
    }
}

const UNNAMED: &str = "name the message as `greenroom reliable waiting` does: 17:counted-3-5";
/// Time for each operation on the journal.
const PATIENCE: Duration = Duration::from_secs(30);

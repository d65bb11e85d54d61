//! The host in Rust, with the reference of the SDKs, and its floor.

use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::sync::Arc;

use greenroom_describe::Description;
use greenroom_host::{Actor, Cx, Ended, Host, Kind, Turning, arguments, payload, unix};
use greenroom_world::real::RealWorld;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::mpsc;

use crate::cli::Echo;

/// Runs what `greenroom bench host --sdk rust` starts, until there is nobody to answer any more.
///
/// # Errors
/// What kept it from its end, for people.
pub(crate) fn serve(echo: Echo) -> Result<(), String> {
    let way = env::var("GREENROOM_HOST").map_err(|error| format!("GREENROOM_HOST: {error}"))?;
    let path = way.strip_prefix("unix:").unwrap_or(&way);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    let served = runtime.block_on(async {
        match echo {
            Echo::Floor => floor(path).await,
            Echo::Volatile => host(path, None).await,
            Echo::Persistent => host(path, Some("persistent")).await,
            Echo::Reliable => host(path, Some("reliable")).await,
        }
    });
    served.map_err(|error| error.to_string())
}

#[derive(Deserialize)]
struct Arguments {
    text: String,
    #[serde(rename = "n")]
    _n: u64,
}

#[derive(Serialize, Deserialize)]
struct State {
    turns: u64,
}

/// An actor; one that is kept has a state.
struct Echoing(Option<State>);

impl Actor for Echoing {
    fn turn<'a>(&'a mut self, cx: &'a Cx, method: &'a str, given: &'a [u8]) -> Turning<'a> {
        Box::pin(async move {
            if method != "echo" {
                return Err(Ended::Invalid(format!("there is no method {method}")));
            }
            if let Some(state) = &mut self.0 {
                state.turns += 1;
            }
            cx.reply(&arguments::<Arguments>(given)?.text)
        })
    }

    fn state(&self) -> Option<Vec<u8>> {
        self.0.as_ref().and_then(|state| payload(state).ok())
    }

    fn fields(&self) -> Vec<(&'static str, Vec<u8>)> {
        self.state().map(|state| ("state", state)).into_iter().collect()
    }

    fn load_field(&mut self, _: &str, value: &[u8]) -> Result<(), String> {
        self.load(value)
    }

    fn load(&mut self, state: &[u8]) -> Result<(), String> {
        self.0 = Some(arguments(state).map_err(|error| format!("{error:?}"))?);
        Ok(())
    }
}

/// Serves actors whose description has the option `kept`, if they keep anything.
async fn host(path: &str, kept: Option<&str>) -> Result<(), Box<dyn Error>> {
    let given = json!({
        "type": "object", "required": ["text", "n"],
        "properties": {"text": {"type": "string"}, "n": {"type": "integer"}},
    });
    let states = if kept == Some("persistent") { json!([{"name": "self", "version": 1}]) } else { json!([]) };
    let options: BTreeMap<_, _> = kept.into_iter().map(|option| (option, true)).collect();
    let description = Description::of_document(json!({
        "greenroom": 1, "kind": "echo", "version": 1, "compatible": 1, "options": options, "states": states,
        "methods": [{"name": "echo", "arguments": given, "reply": {"type": "string"}}],
    }))?;
    let is_kept = kept.is_some();
    let kind = Kind::new(description, move |_| Echoing(is_kept.then_some(State { turns: 0 })));
    let world = RealWorld::start()?;
    Host::new("echo").offer(kind).serve(world as Arc<_>, &unix(path)).await?;
    Ok(())
}

/// Frames of a length, a number and a payload, each answered by a task of its own, a batch a round.
async fn floor(path: &str) -> Result<(), Box<dyn Error>> {
    let (mut read, mut write) = UnixStream::connect(path).await?.into_split();
    let (answers, mut answered) = mpsc::unbounded_channel::<Vec<u8>>();
    tokio::spawn(async move {
        let mut batch = Vec::new();
        while let Some(first) = answered.recv().await {
            batch.extend_from_slice(&first);
            while let Ok(next) = answered.try_recv() {
                batch.extend_from_slice(&next);
            }
            if write.write_all(&batch).await.is_err() {
                return;
            }
            batch.clear();
        }
    });
    let mut buffer = bytes::BytesMut::new();
    while read.read_buf(&mut buffer).await? > 0 {
        while let Some(length) = buffer.first_chunk().map(|length| u32::from_le_bytes(*length) as usize) {
            if buffer.len() < 4 + length || length < 4 {
                break;
            }
            let frame = buffer.split_to(4 + length).freeze();
            let answers = answers.clone();
            tokio::spawn(async move {
                let Ok(given) = rmp_serde::from_slice::<Arguments>(&frame[8..]) else { return };
                let Ok(reply) = rmp_serde::to_vec(&given.text) else { return };
                let mut answer = (4 + reply.len() as u32).to_le_bytes().to_vec();
                answer.extend_from_slice(&frame[4..8]);
                answer.extend_from_slice(&reply);
                let _ = answers.send(answer);
            });
        }
    }
    Ok(())
}

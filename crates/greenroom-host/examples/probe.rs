//! The probe of Rust for the cases of `sdk/python/tests/test_languages.py`: one actor in four forms.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use greenroom_describe::Description;
use greenroom_host::{Actor, CallError, Codec, Cx, Ended, Host, Kind, Turning, arguments, door, payload, unix};
use greenroom_wire::Status;
use greenroom_world::World;
use greenroom_world::real::RealWorld;
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

struct Probe {
    value: i64,
    has_state: bool,
    world: Arc<dyn World>,
}

/// The arguments of all methods.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Given {
    n: i64,
    ms: u64,
    upto: i64,
    kind: String,
    key: String,
    method: String,
    node: String,
    arguments: Value,
    context: BTreeMap<String, String>,
    idempotency_key: Option<String>,
}

#[derive(Deserialize)]
struct Echo {
    value: AnyValue,
}

/// Bytes are the only values that JSON has not.
#[derive(Deserialize, Serialize)]
#[serde(untagged)]
enum AnyValue {
    Json(Value),
    Bytes(ByteBuf),
}

impl Probe {
    async fn pause(&self, ms: u64) {
        self.world.sleep_until(self.world.now() + Duration::from_millis(ms)).await;
    }

    async fn run(&mut self, cx: &Cx, method: &str, given: &[u8]) -> Result<Vec<u8>, Ended> {
        if method == "echo" {
            return cx.reply(&arguments::<Echo>(given)?.value);
        }
        let Given { n, ms, upto, kind, key, method: called, node, arguments, context, idempotency_key } =
            arguments(given)?;
        match method {
            "add" => self.value += n,
            "get" => {}
            "fail" => {
                self.value += 1;
                return Err(Ended::Error(cx.reply(&json!({"Broke": {"at": self.value}}))?));
            }
            "panic" => {
                self.value += 1000;
                return Err(Ended::Failed("in the middle".to_owned()));
            }
            "told" => return cx.reply(&BTreeMap::from_iter(cx.context())),
            "call" | "carry" => {
                let laden = context.iter().fold(cx.clone(), |cx, (key, value)| cx.with(key, value));
                let laden = idempotency_key.iter().fold(laden, |cx, key| cx.idempotent(key));
                let reply = laden.call(&kind, &key, &called, &payload(&arguments)?).await.map_err(failed)?;
                let value: Value = greenroom_host::arguments(&reply)?;
                return cx.reply(&value);
            }
            "send" => {
                self.value -= n;
                cx.send(&kind, &key, "add", &payload(&json!({"n": n}))?).await.map_err(failed)?;
            }
            "later" => {
                let add = payload(&json!({"n": n}))?;
                cx.after("later", Duration::from_millis(ms), "add", &add).await.map_err(failed)?;
            }
            "remind" => {
                let add = payload(&json!({"n": n}))?;
                cx.remind("later", Duration::from_millis(ms), "add", &add).await.map_err(failed)?;
            }
            "rest" => cx.deactivate().await.map_err(failed)?,
            "move" => cx.migrate(&node).await.map_err(failed)?,
            "where" => return cx.reply(&std::process::id()),
            "slow" => {
                self.value += 1;
                self.pause(ms).await;
            }
            "look" => self.pause(ms).await,
            "count" => {
                let cx2 = cx.clone();
                cx.give(stream::iter(0..upto).map(move |number| cx2.reply(&number)));
            }
            other => return Err(Ended::Invalid(format!("there is no method {other}"))),
        }
        cx.reply(&self.value)
    }
}

/// What a call has failed with, in words.
fn failed(error: CallError) -> Ended {
    Ended::Failed(match &error {
        CallError::Failed(Status::Cycle, _) => "the call chain would deadlock".to_owned(),
        CallError::Failed(_, said) => {
            format!("{error}: {}", arguments::<Value>(said).unwrap_or_default())
        }
        _ => error.to_string(),
    })
}

impl Actor for Probe {
    fn turn<'a>(&'a mut self, cx: &'a Cx, method: &'a str, given: &'a [u8]) -> Turning<'a> {
        Box::pin(self.run(cx, method, given))
    }

    fn state(&self) -> Option<Vec<u8>> {
        self.has_state.then(|| payload(&self.value).ok())?
    }

    fn load(&mut self, state: &[u8]) -> Result<(), String> {
        self.value = arguments(state).map_err(|error| format!("{error:?}"))?;
        Ok(())
    }

    fn fields(&self) -> Vec<(&'static str, Vec<u8>)> {
        payload(&self.value).map(|value| ("value", value)).into_iter().collect()
    }

    fn load_field(&mut self, _: &str, value: &[u8]) -> Result<(), String> {
        self.load(value)
    }
}

fn kind(form: &str, world: &Arc<dyn World>) -> Result<Kind, Box<dyn Error>> {
    let exclusive = ["add", "fail", "panic", "call", "carry", "send", "later", "remind", "rest", "move", "slow"];
    let reads = ["get", "told", "where", "echo", "look"];
    let integer = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let of = |name: &&str, read: bool| match *name {
        "add" => json!({"name": name, "read": read, "arguments": integer}),
        _ => json!({"name": name, "read": read}),
    };
    let mut methods: Vec<_> = exclusive.iter().map(|name| of(name, false)).collect();
    methods.extend(reads.iter().map(|name| of(name, true)));
    methods.push(json!({"name": "count", "read": true, "stream": {"type": "integer"}}));
    let (is_kept, is_reliable, travels) = (form == "persistent", form == "reliable", form == "traveller");
    let states = if is_kept { json!([{"name": "self", "version": 1}]) } else { json!([]) };
    let description = Description::of_document(json!({
        "greenroom": 1, "kind": format!("rust_{form}"), "version": 1, "compatible": 1,
        "options": {"persistent": is_kept, "reliable": is_reliable, "migrate": travels}, "methods": methods, "states": states,
    }))?;
    let world = world.clone();
    Ok(Kind::new(description, move |_| Probe { value: 0, has_state: is_kept || travels, world: world.clone() }))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let way = std::env::var("GREENROOM_HOST")?;
    let dial = match way.strip_prefix("http://") {
        Some(address) => door(address, None),
        None => unix(way.strip_prefix("unix:").unwrap_or(&way)),
    };
    let world: Arc<dyn World> = RealWorld::start()?;
    let (drain, drained) = watch::channel(false);
    let (mut terminated, mut hung_up) = (signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
    tokio::spawn(async move {
        tokio::select! {
            _ = terminated.recv() => {}
            _ = hung_up.recv() => {}
        }
        let _ = drain.send(true);
    });
    let mut host = Host::new("probe").drained_by(drained);
    for form in ["volatile", "traveller", "persistent", "reliable"] {
        host = host.offer(kind(form, &world)?);
    }
    host = match std::env::var("GREENROOM_CODEC").as_deref() {
        Ok("json") => host.only(Codec::Json),
        Ok("messagepack") => host.only(Codec::MessagePack),
        _ => host,
    };
    host.serve(world, &dial).await?;
    Ok(())
}

//! A host of odometers: `odometer SOCKET`, where SOCKET is `unix:PATH` or a path.

use std::env;
use std::error::Error;
use std::sync::Arc;

use greenroom_describe::Description;
use greenroom_host::{Actor, Cx, Ended, Host, Kind, Turning, arguments, unix};
use greenroom_world::real::RealWorld;
use serde::Deserialize;
use serde_json::json;

#[derive(Default)]
struct Odometer {
    total: i64,
}

#[derive(Deserialize)]
struct Add {
    by: i64,
}

impl Actor for Odometer {
    fn turn<'a>(&'a mut self, cx: &'a Cx, method: &'a str, given: &'a [u8]) -> Turning<'a> {
        Box::pin(async move {
            match method {
                "add" => {
                    self.total += arguments::<Add>(given)?.by;
                    cx.reply(&self.total)
                }
                "total" => cx.reply(&self.total),
                other => Err(Ended::Invalid(format!("there is no method {other}"))),
            }
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let way = env::args().nth(1).ok_or("usage: odometer unix:PATH")?;
    let description = Description::of_document(json!({
        "greenroom": 1, "kind": "odometer", "version": 1, "compatible": 1,
        "methods": [
            {"name": "add", "arguments": {"type": "object", "properties": {"by": {"type": "integer"}}, "required": ["by"]}},
            {"name": "total", "read": true, "arguments": {"type": "object"}},
        ],
    }))?;
    let kind = Kind::new(description, |_| Odometer::default());
    let world = RealWorld::start()?;
    let path = way.strip_prefix("unix:").unwrap_or(&way);
    Host::new("odometers").offer(kind).serve(world as Arc<_>, &unix(path)).await?;
    Ok(())
}

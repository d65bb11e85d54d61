//! Names for what nodes send to each other: which actor and method a message is for, and which call a reply answers.

use std::collections::BTreeMap;

use greenroom_sim::{Narrate, Sent, Told};
use greenroom_wire::{CallView, FrameView, ReplyView, codec};
use serde::Deserialize;
use serde::de::IgnoredAny;

/// What has been seen of a simulation's connections.
#[derive(Default)]
pub(crate) struct Names {
    /// What the routes of each lane stand for.
    routes: BTreeMap<u64, Vec<Route>>,
    /// Calls that are out, by the node and the place where their replies are awaited.
    calls: BTreeMap<(String, u16, u32), Out>,
}

struct Route {
    kind: String,
    method: String,
}

struct Out {
    generation: u32,
    text: String,
}

impl Names {
    /// The names of one simulation.
    pub(crate) fn narrator() -> Box<dyn Narrate> {
        Box::new(Self::default())
    }

    fn call(&mut self, sent: &Sent<'_>, call: &CallView<'_>) -> Option<Told> {
        let header = &call.header;
        let route = self.routes.get(&sent.lane)?.get(usize::from(header.route))?;
        let text = match route.kind.as_str() {
            PARTITIONS => reliable(&route.method, call.payload)?,
            KEEPER => return None,
            kind => format!("{kind}/{}.{}", header.key, route.method),
        };
        let what = if header.id.is_some() { "call" } else { "message" };
        let told = Told { text: format!("{what} {text}"), is_message: true };
        // One that is forwarded was seen when it was sent, and is answered to who sent it.
        if let (Some(id), None) = (header.id, header.origin) {
            self.calls.insert((sent.from.to_owned(), id.shard, id.index), Out { generation: id.generation, text });
        }
        Some(told)
    }

    fn reply(&mut self, sent: &Sent<'_>, reply: &ReplyView<'_>) -> Option<Told> {
        let place = (sent.to.to_owned(), reply.id.shard, reply.id.index);
        let out = self.calls.remove(&place).filter(|out| out.generation == reply.id.generation)?;
        Some(aside(format!("reply to {}: {:?}", out.text, reply.status)))
    }
}

impl Narrate for Names {
    fn tell(&mut self, sent: &Sent<'_>) -> Option<Told> {
        match FrameView::read(sent.frame).ok()? {
            FrameView::Define { kind, method, .. } => {
                // Routes are defined in order, from 0.
                let route = Route { kind: kind.to_owned(), method: method.to_owned() };
                self.routes.entry(sent.lane).or_default().push(route);
                None
            }
            FrameView::Call(call) => self.call(sent, &call),
            FrameView::Reply(reply) => self.reply(sent, &reply),
            FrameView::Cancel(cancel) => {
                Some(aside(format!("nobody waits for {}/{} any more", cancel.kind, cancel.key)))
            }
            FrameView::StreamItem { number, .. } => Some(aside(format!("item {number} of a stream"))),
            FrameView::StreamEnd { status, .. } => Some(aside(format!("the end of a stream: {status:?}"))),
            FrameView::Goodbye(reason) => Some(aside(format!("goodbye: {reason}"))),
            FrameView::Letter(_) => Some(aside("a letter between clusters".to_owned())),
            FrameView::StateLetter(_) => Some(aside("news of a versioned state between clusters".to_owned())),
            _ => None,
        }
    }
}

fn aside(text: String) -> Told {
    Told { text, is_message: false }
}

/// What goes to a partition of reliable actors, in the names of those; `None` for what keeps partitions going.
fn reliable(method: &str, payload: &[u8]) -> Option<String> {
    match method {
        "called" | "told" => codec::decode::<Called>(payload).ok().map(|called| called.letter.to_string()),
        "arrived" => match codec::decode::<Arrived>(payload).ok()?.wire {
            Wire::Batch(batch) if batch.messages.is_empty() => None,
            Wire::Batch(batch) => {
                let names: Vec<String> = batch.messages.iter().map(|(_, letter)| letter.to_string()).collect();
                Some(names.join(", "))
            }
            Wire::Single(letter) => Some(letter.to_string()),
            Wire::Reply(_) | Wire::Ask(_) | Wire::Standing(_) => None,
        },
        _ => None,
    }
}

/// The arguments of a partition's methods, as far as names go.
#[derive(Deserialize)]
struct Called {
    letter: Letter,
}

#[derive(Deserialize)]
struct Arrived {
    wire: Wire,
}

#[derive(Deserialize)]
enum Wire {
    Batch(Batch),
    Reply(IgnoredAny),
    Single(Letter),
    Ask(IgnoredAny),
    Standing(IgnoredAny),
}

#[derive(Deserialize)]
struct Batch {
    messages: Vec<(u64, Letter)>,
}

#[derive(Deserialize)]
struct Letter {
    to: Name,
    body: Body,
}

#[derive(Deserialize)]
struct Name {
    kind: String,
    key: String,
}

#[derive(Deserialize)]
enum Body {
    Call { method: String },
    Reply(IgnoredAny),
    Created,
    Output(IgnoredAny),
}

impl std::fmt::Display for Letter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Name { kind, key } = &self.to;
        match &self.body {
            Body::Call { method } => write!(f, "{kind}/{key}.{method}"),
            Body::Reply(_) => write!(f, "a reply for {kind}/{key}"),
            Body::Created => write!(f, "the creation of {kind}/{key}"),
            Body::Output(_) => write!(f, "an output of {kind}/{key}"),
        }
    }
}

/// The kind behind reliable actors.
const PARTITIONS: &str = "greenroom.partition";
/// The kind behind spawned actors.
const KEEPER: &str = "greenroom.keeper";

//! The lane on which nodes are looked at: whoever looks at one node hears all of them.
//!
//! A node asks another over a connection of its own, opened when it is first needed and closed when nothing has been asked for half a
//! minute: no shard and no control plane has to do with it. One that is asked often gives what it said a moment ago.

use std::collections::BTreeMap;
use std::future::ready;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use greenroom_protocols::node::{NodeId, Status};
use greenroom_wire::limit::Limits;
use greenroom_wire::{Decoder, EncodeError, Encoder, Frame, Hello, HelloBody, Lane};
use greenroom_world::{BoxFuture, Stage, Stream, Timestamp};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::sync::oneshot;

use super::question::{Question, read};
use crate::here::Here;
use crate::here::parts::{Met, Part};
use crate::net::{OPEN_TIMEOUT, dial_node, say, within};

/// A node's part.
#[derive(Default)]
pub(crate) struct Look(Arc<Kept>);

#[derive(Default)]
struct Kept {
    /// Connections to nodes that have been asked, as long as nobody asks them.
    idle: Mutex<BTreeMap<NodeId, Lent>>,
    /// What was said of late, by the question.
    said: Mutex<Vec<Said>>,
    /// Connections of others.
    open: AtomicUsize,
}

/// A connection to a node that answers.
struct Lent {
    stream: Box<dyn Stream>,
    decoder: Decoder,
    used: Timestamp,
}

struct Said {
    question: Bytes,
    at: Timestamp,
    answer: Bytes,
}

/// Which nodes are asked.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Whom {
    /// Those with most activations.
    All,
    /// Those of these names.
    Named(Vec<String>),
}

/// What a cluster's nodes have answered.
pub(crate) struct Heard<T> {
    pub(crate) said: BTreeMap<NodeId, T>,
    /// Who gave no answer, by its name, and why.
    pub(crate) silent: Vec<(String, String)>,
    /// How many were not asked, as there are too many.
    pub(crate) left_out: usize,
}

impl<T> Heard<T> {
    /// `answer`, with who was silent and how many were not asked.
    pub(crate) fn with_silent(&self, mut answer: Value) -> Value {
        let silent = self.silent.iter().map(|(node, why)| json!({ "node": node, "why": why }));
        answer["silent"] = silent.collect();
        answer["left_out"] = self.left_out.into();
        answer
    }
}

/// Asks the nodes of the cluster, this one among them.
pub(crate) async fn ask<T: DeserializeOwned>(here: &Arc<Here>, question: &Question, whom: &Whom) -> Heard<T> {
    let view = here.view();
    let mut silent = Vec::new();
    let mut nodes: Vec<(NodeId, String, String)> = Vec::new();
    for (id, member) in view.view.members.iter().filter(|(_, member)| member.status == Status::Active) {
        nodes.push((*id, member.name.clone(), member.address.clone()));
    }
    if let Whom::Named(names) = whom {
        nodes.retain(|(_, name, _)| names.contains(name));
        let unknown = names.iter().filter(|wanted| !nodes.iter().any(|(_, name, _)| name == *wanted));
        silent.extend(unknown.map(|name| (name.clone(), "no active node of the cluster has this name".to_owned())));
    }
    // This one first, then the fullest.
    nodes.sort_by_key(|(id, ..)| (*id != here.me(), std::cmp::Reverse(here.loads().of(*id))));
    let left_out = nodes.len().saturating_sub(NODES_MAX);
    nodes.truncate(NODES_MAX);
    let encoded = question.encode();
    let asked: Vec<_> = nodes
        .into_iter()
        .map(|(id, name, address)| {
            let (sender, answer) = oneshot::channel();
            let (node, question, encoded) = (here.clone(), question.clone(), encoded.clone());
            let asking = async move {
                let timeout = node.world().sleep_until(node.world().now() + PATIENCE);
                let answering = async {
                    if id != node.me() {
                        hear(&node, id, &address, &encoded).await
                    } else if question.asks_shards() {
                        node.part::<Look>().0.say(&node, encoded).await.map_err(io::Error::other)
                    } else {
                        Ok(question.answer(&node).await)
                    }
                };
                // Nobody waits any more if it is too late.
                let _ = sender.send(within(timeout, answering).await);
            };
            here.world().spawn(Stage::Door, Box::pin(asking));
            (id, name, answer)
        })
        .collect();
    let mut said = BTreeMap::new();
    for (id, name, answer) in asked {
        let answer = answer.await.unwrap_or_else(|_| Err(io::Error::other("this node stops")));
        match answer.and_then(|answer| read(&answer).map_err(io::Error::other)) {
            Ok(word) => {
                said.insert(id, word);
            }
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                silent.push((name, format!("it gave no answer within {} ms", PATIENCE.as_millis())));
            }
            Err(error) => silent.push((name, error.to_string())),
        }
    }
    Heard { said, silent, left_out }
}

/// What `to` answers, over a connection that is there or else a new one.
async fn hear(here: &Arc<Here>, to: NodeId, address: &str, question: &Bytes) -> io::Result<Bytes> {
    let kept = &here.part::<Look>().0;
    let lent = locked(&kept.idle).remove(&to);
    let again = match lent.filter(|lent| here.world().now().since(lent.used) < IDLE_MAX) {
        None => None,
        // The other side may have closed it meanwhile.
        Some(mut lent) => lent.ask(question).await.ok().map(|answer| (lent, answer)),
    };
    let (mut lent, answer) = match again {
        Some(heard) => heard,
        None => {
            let mut lent = Lent::open(here, to, address).await?;
            let answer = lent.ask(question).await?;
            (lent, answer)
        }
    };
    lent.used = here.world().now();
    let view = here.view();
    let mut idle = locked(&kept.idle);
    idle.insert(to, lent);
    idle.retain(|node, lent| view.view.is_active(*node) && here.world().now().since(lent.used) < IDLE_MAX);
    Ok(answer)
}

impl Lent {
    async fn open(here: &Here, to: NodeId, address: &str) -> io::Result<Self> {
        let body = HelloBody::new(&here.config().cluster, here.me().0, here.name(), Lane::Look).expecting(to.0);
        let decoder = Decoder::new(Limits { frame_len_max: ANSWER_LEN_MAX });
        let answered = dial_node(&**here.world(), here.links(), address, &Hello::new(body), decoder).await?;
        // The other side says nothing of its own accord.
        let Met { stream, decoder, .. } = answered.met;
        Ok(Self { stream, decoder, used: here.world().now() })
    }

    async fn ask(&mut self, question: &[u8]) -> io::Result<Bytes> {
        let mut out = BytesMut::new();
        put(&mut out, question).map_err(io::Error::other)?;
        say(&mut self.stream, &out).await?;
        match next(&mut self.stream, &mut self.decoder, &mut BytesMut::new(), ANSWER_LEN_MAX as usize).await? {
            Some(answer) => Ok(answer),
            None => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it closed the connection")),
        }
    }
}

impl Part for Look {
    fn read(&self, here: &Arc<Here>, lane: Lane, met: Met) -> Result<BoxFuture<io::Result<()>>, Met> {
        if lane != Lane::Look {
            return Err(met);
        }
        let (here, kept) = (here.clone(), self.0.clone());
        if kept.open.fetch_add(1, Ordering::AcqRel) >= CONNECTIONS_MAX {
            kept.open.fetch_sub(1, Ordering::AcqRel);
            return Ok(Box::pin(ready(Err(io::Error::other("too many look at this node")))));
        }
        let node = here.clone();
        let answering = async move {
            if let Err(error) = answer(&node, &kept, met).await {
                tracing::debug!(%error, "a connection of who looks at this node closed");
            }
            kept.open.fetch_sub(1, Ordering::AcqRel);
        };
        here.world().spawn(Stage::Door, Box::pin(answering));
        Ok(Box::pin(ready(Ok(()))))
    }
}

/// Answers what is asked on a connection, until it closes or nothing has been asked for long.
async fn answer(here: &Here, kept: &Kept, met: Met) -> io::Result<()> {
    let Met { stream, mut decoder, mut input } = met;
    let mut stream = stream.rebind()?;
    let world = here.world();
    while !here.is_stopped() {
        let timeout = world.sleep_until(world.now() + SILENCE_MAX);
        let asking = next(&mut stream, &mut decoder, &mut input, QUESTION_LEN_MAX);
        let Some(question) = within(timeout, asking).await? else { return Ok(()) };
        let mut out = BytesMut::new();
        let said = kept.say(here, question).await;
        if let Err(why) = said.and_then(|said| put(&mut out, &said).map_err(|error| error.to_string())) {
            Encoder::default().goodbye(&mut out, &why);
        }
        let timeout = world.sleep_until(world.now() + OPEN_TIMEOUT);
        within(timeout, say(&mut stream, &out)).await?;
    }
    Ok(())
}

impl Kept {
    /// What the node says to `question`, or has said a moment ago.
    ///
    /// # Errors
    /// It does not know the question.
    async fn say(&self, here: &Here, question: Bytes) -> Result<Bytes, String> {
        let now = here.world().now();
        if let Some(answer) = self.said_before(&question, now) {
            return Ok(answer);
        }
        let unknown = |error| format!("version {} does not know the question: {error}", env!("CARGO_PKG_VERSION"));
        let answer = read::<Question>(&question).map_err(unknown)?.answer(here).await;
        let mut kept = locked(&self.said);
        kept.retain(|said| said.is_fresh(now));
        if kept.len() < SAID_MAX {
            kept.push(Said { question, at: now, answer: answer.clone() });
        }
        Ok(answer)
    }

    fn said_before(&self, question: &Bytes, now: Timestamp) -> Option<Bytes> {
        let kept = locked(&self.said);
        let said = kept.iter().find(|said| said.question == *question && said.is_fresh(now))?;
        Some(said.answer.clone())
    }
}

impl Said {
    fn is_fresh(&self, now: Timestamp) -> bool {
        now.since(self.at) < FRESH
    }
}

/// The next message of the lane, of at most `len_max` bytes; `None` at the connection's end.
async fn next(
    stream: &mut Box<dyn Stream>,
    decoder: &mut Decoder,
    input: &mut BytesMut,
    len_max: usize,
) -> io::Result<Option<Bytes>> {
    loop {
        match decoder.decode(input).map_err(io::Error::other)? {
            Some(Frame::Control(control)) if control.channel == CHANNEL && control.payload.len() <= len_max => {
                return Ok(Some(control.payload));
            }
            Some(Frame::Goodbye(reason)) => return Err(io::Error::other(reason.as_str().to_owned())),
            Some(_) => return Err(io::Error::other("what came is no message of this lane, or too long")),
            None if input.len() > len_max + FRAME_HEAD_MAX => return Err(io::Error::other("what came is too long")),
            None => {}
        }
        if stream.read_buf(input).await? == 0 {
            return Ok(None);
        }
    }
}

fn put(out: &mut BytesMut, message: &[u8]) -> Result<(), EncodeError> {
    let limits = Limits { frame_len_max: ANSWER_LEN_MAX };
    Encoder::new(limits).control(out, CHANNEL, |out| {
        out.extend_from_slice(message);
        Ok(())
    })
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Nodes that are asked at once.
const NODES_MAX: usize = 32;
/// Time for a node to answer, its connection included.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long an answer is given again.
const FRESH: Duration = Duration::from_millis(900);
/// Answers that are kept for that.
const SAID_MAX: usize = 32;
/// How long a connection lasts on which nothing is asked: who asks takes none that is about to be closed.
const SILENCE_MAX: Duration = Duration::from_secs(30);
const IDLE_MAX: Duration = Duration::from_secs(25);
/// Connections of other nodes.
const CONNECTIONS_MAX: usize = 256;
/// Longest question, and longest answer, in bytes.
const QUESTION_LEN_MAX: usize = 16 << 10;
const ANSWER_LEN_MAX: u32 = 4 << 20;
/// Bytes of a frame beside its message.
const FRAME_HEAD_MAX: usize = 16;
/// The channel of control frames that the lane uses; it has no other.
const CHANNEL: u8 = 1;

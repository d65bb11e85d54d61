//! Outputs to the outside: kept back with the turn's messages, and handed to an outlet after the commit until that has them.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use greenroom_protocols::delivery::{Lane, Life, PartitionId};
use greenroom_store::url::redact;
use greenroom_store::{Outlet, Output, Undelivered};
use serde::Serialize;

use super::errands::{Desk, Done, Errand, Pause};
use super::name::{Body, Letter, Named, Sealed};
use super::takings::takings;
use crate::actor::cx::Cx;
use crate::actor::error::Refusal;
use crate::node::error::Error;
use crate::observe::events::Happened;

impl Cx {
    /// Sends `value` as JSON to the outlet called `outlet`, after the turn's commit: at least once, with a key that tells
    /// repeats, and in the order of this actor's outputs. If the turn fails, it is not sent.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] if the turn is not one of a reliable actor's `&mut self` methods, if the node knows no such
    /// outlet, or if `value` has no JSON.
    pub fn output<T: Serialize + ?Sized>(&self, outlet: &str, value: &T) -> Result<(), Refusal> {
        let refused = |message: String| Refusal::Invalid { field: String::new(), message };
        let Some(takings) = takings() else {
            return Err(refused(format!("{} is no turn of a reliable actor; only these have outputs", self.id())));
        };
        let number = self.port.node.outlets().known(outlet)?;
        let body = serde_json::to_vec(value).map_err(|error| refused(format!("an output has no JSON: {error}")))?;
        takings.output(number, outlet, body.into());
        Ok(())
    }
}

/// The outlets that a node knows.
#[derive(Default, Debug)]
pub(crate) struct Outlets(BTreeMap<u32, (String, Arc<dyn Outlet>)>);

impl Outlets {
    /// Those of the program, and those whose URLs are configured.
    ///
    /// # Errors
    /// [`Error::Outlet`].
    pub(crate) async fn open(
        given: BTreeMap<String, Arc<dyn Outlet>>,
        configured: &BTreeMap<String, String>,
    ) -> Result<Self, Error> {
        let mut outlets = Self::default();
        for (name, outlet) in given {
            outlets.insert(name, outlet)?;
        }
        for (name, url) in configured {
            let opened = open(url).await;
            let opened = opened.map_err(|reason| Error::Outlet { name: name.clone(), url: redact(url), reason })?;
            outlets.insert(name.clone(), opened)?;
        }
        Ok(outlets)
    }

    fn insert(&mut self, name: String, outlet: Arc<dyn Outlet>) -> Result<(), Error> {
        match self.0.insert(number(&name), (name.clone(), outlet)) {
            None => Ok(()),
            Some((other, _)) => {
                let reason = format!("it is there twice, or like {other:?}; give it another name");
                Err(Error::Outlet { name, url: String::new(), reason })
            }
        }
    }

    /// The number of the outlet called `name`.
    ///
    /// # Errors
    /// [`Refusal::Invalid`]: there is none.
    pub(super) fn known(&self, name: &str) -> Result<u32, Refusal> {
        let known = Some(number(name)).filter(|number| self.0.get(number).is_some_and(|(known, _)| known == name));
        known.ok_or_else(|| {
            let message = format!(
                "there is no outlet {name:?}, but {:?}; name its URL under `[reliable.outlets]` on all nodes",
                self.names()
            );
            Refusal::Invalid { field: String::new(), message }
        })
    }

    /// Returns the names of all outlets, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.0.values().map(|(name, _)| name.clone()).collect();
        names.sort_unstable();
        names
    }

    fn get(&self, lane: Lane) -> Option<Arc<dyn Outlet>> {
        let Lane::Outside(number) = lane else { return None };
        self.0.get(&number).map(|(_, outlet)| outlet.clone())
    }
}

#[cfg(feature = "http")]
async fn open(url: &str) -> Result<Arc<dyn Outlet>, String> {
    if url.starts_with("http://") || url.starts_with("https://") {
        return Ok(Arc::new(super::hook::Hook::new(url)?));
    }
    greenroom_stores::open_outlet(url).await.map_err(|error| error.to_string())
}

/// Refuses URLs of outlets that no node can open, without opening any.
///
/// # Errors
/// [`Error::Outlet`]: the first of them.
pub(crate) fn check_outlets(configured: &BTreeMap<String, String>) -> Result<(), Error> {
    for (name, url) in configured {
        check_outlet(url).map_err(|reason| Error::Outlet { name: name.clone(), url: redact(url), reason })?;
    }
    Ok(())
}

fn check_outlet(url: &str) -> Result<(), String> {
    #[cfg(feature = "http")]
    if url.starts_with("http://") || url.starts_with("https://") {
        return super::hook::Hook::new(url).map(drop);
    }
    greenroom_stores::check_outlet(url).map_err(|error| error.to_string())
}

#[cfg(not(feature = "http"))]
async fn open(url: &str) -> Result<Arc<dyn Outlet>, String> {
    greenroom_stores::open_outlet(url).await.map_err(|error| error.to_string())
}

/// The outlet's number in the journal: of its name, so that nothing else must be agreed on (FNV-1a).
fn number(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// One output of an ownership.
pub(super) struct Leaving {
    pub(super) life: Life,
    pub(super) lane: Lane,
    pub(super) number: u64,
    pub(super) letter: Sealed,
    /// Whether it is worth several tries.
    pub(super) patient: bool,
}

/// How many outputs each outlet has taken in this ownership: one that takes others is there.
#[derive(Default)]
pub(super) struct Outputs(BTreeMap<Lane, Rc<Cell<u64>>>);

impl Outputs {
    pub(super) fn taken_by(&mut self, lane: Lane) -> Rc<Cell<u64>> {
        self.0.entry(lane).or_default().clone()
    }
}

impl Desk {
    /// Hands an output to its outlet, again and again until that has it or will not have it.
    pub(super) fn hand_over(self, leaving: Leaving, taken: Rc<Cell<u64>>) -> Errand {
        Box::pin(async move {
            let Leaving { life, lane, number, letter, patient } = leaving;
            let node = self.node.clone();
            let by = by(&letter);
            let (to, key) = (letter.to.key.clone(), key(&node.config().cluster, &self, life, lane, number));
            let mut pause = Pause::default();
            let (mut refusals, mut passed_over, others) = (0, 0, taken.get());
            loop {
                let body = match &letter.body {
                    Body::Output(payload) => payload.0.clone(),
                    Body::Call { .. } | Body::Reply { .. } | Body::Created => Bytes::new(),
                };
                let output = Output::new(key.clone(), by.to_string(), body);
                let why = match node.outlets().get(lane) {
                    // It may need the clock and the network: they are not the shard's.
                    Some(outlet) => {
                        let (told, delivered) = tokio::sync::oneshot::channel();
                        let delivering = async move { _ = told.send(outlet.deliver(output).await) };
                        node.world().spawn(greenroom_world::Stage::Door, Box::pin(delivering));
                        match delivered.await {
                            Ok(Ok(())) => {
                                taken.set(taken.get() + 1);
                                return Done::Output { lane, number, refused: None };
                            }
                            Ok(Err(why)) => why,
                            Err(_) => Undelivered::Unavailable("it was given up".to_owned()),
                        }
                    }
                    None => Undelivered::Unavailable(
                        "this node does not know the outlet; name it under `[reliable.outlets]`".to_owned(),
                    ),
                };
                match why {
                    Undelivered::Refused(_) => refusals += 1,
                    // An outlet that takes others meanwhile is there: the output is to blame.
                    _ if taken.get() > others => passed_over += 1,
                    _ => {}
                }
                if refusals >= if patient { REFUSALS_MAX } else { 1 } || passed_over >= PASSED_OVER_MAX {
                    tracing::warn!(error = %why, "an output of {by} to {to} is parked");
                    let actor = by.to_string();
                    node.happened(Happened::OutputParked { actor, to: to.to_string(), why: why.to_string() });
                    return Done::Output { lane, number, refused: Some(why.to_string()) };
                }
                pause.after(&node, &format!("an output of {by} to {to} waits"), &why).await;
            }
        })
    }
}

/// What tells repeats of an output: unique over all lives of all partitions.
fn key(cluster: &str, desk: &Desk, life: Life, lane: Lane, number: u64) -> String {
    let PartitionId(partition) = desk.ledger.owner().partition;
    let outlet = if let Lane::Outside(outlet) = lane { outlet } else { 0 };
    format!("{cluster}-{partition}-{:x}-{outlet:x}-{number}", life.0)
}

/// Whose output it is.
fn by(letter: &Letter) -> Named {
    letter.from.clone().unwrap_or_else(|| letter.to.clone())
}

/// The kind that outlets have among the receivers of messages.
pub(super) const OUTLET: &str = "greenroom.outlet";
/// Tries that its receiver has refused, after which an output is parked.
const REFUSALS_MAX: u32 = 10;
/// Tries that came to nothing while the outlet took other outputs, after which it is parked too: about ten minutes.
const PASSED_OVER_MAX: u32 = 300;

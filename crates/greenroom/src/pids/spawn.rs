//! Making actors.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::BytesMut;
use greenroom_protocols::directory::Epoch;
use greenroom_protocols::names::near_names;
use greenroom_protocols::supervision::Supervise;
use greenroom_wire::codec::{self, Codec};
use tokio::sync::oneshot;

use super::keeper::{self, KeeperRef};
use super::key::{Address, KEEPER, number};
use super::kin::{Kin, Parent};
use super::pid::Pid;
use super::watch::Deliver;
use crate::actor::cx::Cx;
use crate::actor::error::{CallError, Refusal};
use crate::actor::interface::{Behaviour, Interface, Portable, Why};
use crate::actor::key::{ActorId, Key, Kind};
use crate::actor::reference::Ref;
use crate::actor::reply::{TYPE_VERSION, invalid};
use crate::here::Here;
use crate::here::kinds::{AnyKind, Factory, KindEntry};
use crate::here::node::Node;
use crate::here::parts::Part;
use crate::here::port::Port;
use crate::shard::chain::Link;
use crate::shard::holdback::holdback;
use crate::shard::parts::ShardPart;
use crate::shard::seed::Seed;
use crate::shard::underway::Way;
use crate::shard::{Item, Shard};

/// An actor that other nodes can spawn on this one, from arguments: register it with
/// [`spawnable`](crate::Builder::spawnable).
pub trait Spawnable: Behaviour {
    /// What it is made from.
    type Args: Portable;

    /// What becomes of it when it fails. By default it is restarted, from the same arguments.
    const SUPERVISE: Supervise = Supervise::restart();

    /// A fresh actor.
    ///
    /// # Errors
    /// What keeps it from being made: a failure, which its supervision answers.
    fn spawned(cx: &Cx, arguments: Self::Args) -> Result<Self, String>;
}

impl Cx {
    /// Spawns `actor` on this shard, as a child of this activation. It ends when a turn of it panics, when it is stopped,
    /// and when this activation ends or is made anew. As long as it has children, this activation does not end for being
    /// idle.
    ///
    /// The compiler refuses kinds with states in stores and stateless workers, as the name of a spawned actor ends with its
    /// activation:
    ///
    /// ```compile_fail
    /// # use greenroom::prelude::*;
    /// #[derive(Default, serde::Serialize, serde::Deserialize, Actor)]
    /// struct Saved { count: u64 }
    ///
    /// #[actor(persistent)]
    /// impl Saved { pub async fn count(&self) -> u64 { self.count } }
    ///
    /// fn spawn(cx: &Cx) { cx.spawn(Saved::default()); }
    /// println!("{:p}", spawn as fn(&Cx));
    /// ```
    ///
    /// # Panics
    /// Outside of this actor's own turns.
    pub fn spawn<A: Behaviour>(&self, actor: A) -> Pid<A> {
        self.spawn_child(Supervise::stop(), once(actor))
    }

    /// Spawns the actor that `make` makes on this shard, as a child of this activation; `supervise` says what becomes of
    /// it when it fails, and `make` makes it anew.
    ///
    /// # Panics
    /// Outside of this actor's own turns.
    pub fn spawn_with<A: Behaviour>(
        &self,
        supervise: Supervise,
        make: impl Fn() -> A + Send + Sync + 'static,
    ) -> Pid<A> {
        self.spawn_child(supervise, Box::new(move |_| Ok(make())))
    }

    fn spawn_child<A: Behaviour>(&self, supervise: Supervise, factory: Factory<A>) -> Pid<A> {
        assert!(holdback().is_none(), "{RELIABLE}");
        Shard::with(|shard| {
            let shard = shard.expect("`cx.spawn` belongs into the turns of the actor whose `cx` it is");
            let parent = shard.current_slot().expect("`cx.spawn` belongs into the turns of the actor whose `cx` it is");
            let address = shard.spawn(factory, supervise, Some(Parent::Here(number(parent))));
            Pid::at(address, Some(self.port.clone()))
        })
    }

    /// Spawns an `A` on the node called `node`, which must have registered it as [`spawnable`](crate::Builder::spawnable), as a
    /// child of this activation.
    ///
    /// # Errors
    /// [`CallError::Refused`] when there is no such node, or it does not know how to make an `A`: nothing was spawned. After
    /// [`CallError::Unknown`], what may have been spawned ends with this activation.
    ///
    /// # Cancel safety
    /// As for any call: dropping the future leaves the outcome unknown.
    pub async fn spawn_on<A: Spawnable>(&self, node: &str, arguments: A::Args) -> Result<Pid<A>, CallError> {
        if holdback().is_some() {
            let refusal = Refusal::Invalid { field: String::new(), message: RELIABLE.to_owned() };
            return Err(CallError::Refused(refusal));
        }
        let parent = Shard::with(|shard| {
            let shard = shard?;
            Some(shard.address(shard.current_slot()?))
        });
        let above = parent.map(|address| (address, self.id.kind.name().to_owned(), self.id.key.clone()));
        let pid = spawn_on::<A>(&self.port, node, arguments, above).await?;
        if let Some(parent) = parent {
            Shard::with(|shard| {
                if let Some(shard) = shard {
                    shard.adopt_child(parent, pid.address(), pid.id().clone());
                }
            });
        }
        Ok(pid)
    }

    /// Watches a spawned actor: once it has ended, for whatever reason, this actor's `ended` hook runs, once. The watch is this
    /// activation's, and ends with it.
    ///
    /// # Panics
    /// If the actor has no `ended` hook, and outside of its own turns.
    pub fn watch<A: Behaviour>(&self, pid: &Pid<A>) {
        Shard::with(|shard| {
            let shard = shard.expect("`cx.watch` belongs into the turns of the actor whose `cx` it is");
            let watcher =
                shard.current_slot().expect("`cx.watch` belongs into the turns of the actor whose `cx` it is");
            assert!(
                shard.activation(watcher).is_some_and(|watcher| watcher.hears()),
                "{} watches and has no hook: write `async fn ended(&mut self, cx: &Cx, ended: Ended)`",
                self.id.kind
            );
            shard.watch_actor(pid.address(), pid.id().clone(), Deliver::Hook(number(watcher)));
        });
    }

    /// Ends a watch. If its hook is not yet running or waiting to run, it will not.
    pub fn unwatch<A: Behaviour>(&self, pid: &Pid<A>) {
        Shard::with(|shard| {
            if let Some((shard, watcher)) = shard.and_then(|shard| Some((shard, shard.current_slot()?))) {
                shard.kin().borrow_mut().watches.remove(&pid.address(), number(watcher));
            }
        });
    }
}

impl Node {
    /// Spawns `actor` on a shard of this node. It has no parent: it ends when a turn of it panics, when it is stopped,
    /// and with the node.
    ///
    /// # Errors
    /// [`Refusal::Stopping`].
    ///
    /// # Cancel safety
    /// Dropping the future may leave the actor spawned.
    pub async fn spawn<A: Behaviour>(&self, actor: A) -> Result<Pid<A>, Refusal> {
        self.spawn_root(Supervise::stop(), once(actor)).await
    }

    /// Spawns the actor that `make` makes on a shard of this node; `supervise` says what becomes of it when it fails, and
    /// `make` makes it anew. It has no parent to escalate to: that ends it.
    ///
    /// # Errors
    /// [`Refusal::Stopping`].
    ///
    /// # Cancel safety
    /// Dropping the future may leave the actor spawned.
    pub async fn spawn_with<A: Behaviour>(
        &self,
        supervise: Supervise,
        make: impl Fn() -> A + Send + Sync + 'static,
    ) -> Result<Pid<A>, Refusal> {
        self.spawn_root(supervise, Box::new(move |_| Ok(make()))).await
    }

    async fn spawn_root<A: Behaviour>(&self, supervise: Supervise, factory: Factory<A>) -> Result<Pid<A>, Refusal> {
        let port = crate::actor::cx::Scope::port(self);
        let shards = port.node.shards();
        let chosen = shards[usize::from(port.node.deal_shard())];
        let (spawned, spawning) = oneshot::channel();
        let spawn = move |shard: &Shard| {
            // Who does not wait any more need not know.
            let _ = spawned.send(shard.spawn(factory, supervise, None));
        };
        chosen.push(Item::Run(Box::new(spawn))).map_err(|_| Refusal::Stopping)?;
        let address = spawning.await.map_err(|_| Refusal::Stopping)?;
        Ok(Pid::at(address, Some(port.clone())))
    }

    /// Spawns an `A` on the node called `node`, which must have registered it as [`spawnable`](crate::Builder::spawnable). It has
    /// no parent.
    ///
    /// # Errors
    /// [`CallError::Refused`] when there is no such node, or it does not know how to make an `A`: nothing was spawned.
    /// [`CallError::Unknown`] when it may have been.
    ///
    /// # Cancel safety
    /// As for any call: dropping the future leaves the outcome unknown.
    pub async fn spawn_on<A: Spawnable>(&self, node: &str, arguments: A::Args) -> Result<Pid<A>, CallError> {
        spawn_on::<A>(crate::actor::cx::Scope::port(self), node, arguments, None).await
    }
}

async fn spawn_on<A: Spawnable>(
    port: &Arc<Port>,
    node: &str,
    arguments: A::Args,
    parent: Option<(Address, String, Key)>,
) -> Result<Pid<A>, CallError> {
    let view = port.node.view();
    let Some(at) = view.view.by_name(node) else {
        let near = near_names(node, view.view.active().map(|(_, member)| member.name.as_str()));
        let near = near.first().map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
        let message = format!("no node called {node:?} is active in the cluster{near}");
        return Err(CallError::Refused(Refusal::Placement { message }));
    };
    let mut bytes = BytesMut::new();
    codec::encode(Codec::MessagePack, TYPE_VERSION, &arguments, &mut bytes)
        .map_err(|error| CallError::Refused(Refusal::Unsendable { message: error.to_string() }))?;
    let keeper = Address { node: at.0, birth: 0, shard: 0, number: KEEPER };
    let keeper: KeeperRef = Ref::made(keeper.key(), Some(port.clone())).into();
    let kind = <A::Interface as Interface>::KIND;
    let address = keeper::spawned(keeper.spawn(kind, bytes.to_vec(), parent).await)?;
    Ok(Pid::at(address, Some(port.clone())))
}

/// A factory that makes the actor that there is, and no other.
fn once<A: Behaviour>(actor: A) -> Factory<A> {
    let actor = Mutex::new(Some(actor));
    Box::new(move |cx| {
        let taken = actor.lock().unwrap_or_else(PoisonError::into_inner).take();
        taken.ok_or_else(|| format!("{} was spawned as it was; use `spawn_with` to have it made anew", cx.id()))
    })
}

impl Shard {
    /// Spawns an actor on this shard.
    pub(super) fn spawn<A: Behaviour>(
        &self,
        factory: Factory<A>,
        supervise: Supervise,
        parent: Option<Parent>,
    ) -> Address {
        const {
            assert!(
                !A::OPTIONS.persistent && !A::STORED && A::OPTIONS.workers == 0,
                "actors with states in stores and stateless workers are not spawned: their names outlive no activation"
            );
        }
        let node = &self.port().node;
        let kind = Kind::intern(<A::Interface as Interface>::KIND);
        node.kinds().learn::<A::Interface>();
        let entry = Arc::new(KindEntry::<A>::spawned(factory, node.config()));
        if let Some(chain) = node.kinds().interceptors().of(kind.name()) {
            entry.intercept(chain);
        }
        let activation = self.enter_spawned(|slot| {
            let id = ActorId::unchecked(kind, self.address(slot).key());
            entry.activation(self, id, Epoch(1), slot)
        });
        let slot = activation.slot();
        self.kin().borrow_mut().enter(slot, parent, supervise, self.now());
        self.gauge_spawned();
        // What goes wrong is a failure, which its supervision answers.
        let _ = activation.clone().start(self, Seed::Fresh, Link::None);
        if self.is_stopping() {
            activation.end(self, Why::Stopping);
        }
        self.address(slot)
    }

    /// Notes a child elsewhere of an activation of this shard, unless that has ended meanwhile: then the child ends too.
    fn adopt_child(&self, parent: Address, child: Address, id: ActorId) {
        if parent.keeper() != self.keeper_address() || self.numbered(parent.number).is_none() {
            return self.keeper(child).stop(child.number, Why::Parent).send();
        }
        self.kin().borrow_mut().adopt(parent.number, child);
        self.watch_actor(child, id, Deliver::Child(parent.number));
    }
}

/// How actors of this node's kinds are made for other nodes, by kind.
#[derive(Default)]
pub(crate) struct Spawners(BTreeMap<&'static str, Box<dyn AnySpawner>>);

impl Spawners {
    /// Lets other nodes spawn actors of this kind.
    pub(crate) fn insert<A: Spawnable>(&mut self, kind: &'static str) {
        self.0.insert(kind, Box::<Spawner<A>>::default());
    }
}

impl Part for Spawners {
    fn on_shard(&self) -> Option<Box<dyn ShardPart>> {
        Some(Box::<RefCell<Kin>>::default())
    }

    fn way(&self) -> Option<&dyn Way> {
        Some(self)
    }
}

impl Here {
    pub(super) fn spawner(&self, kind: &str) -> Option<&dyn AnySpawner> {
        self.part::<Spawners>().0.get(kind).map(|spawner| &**spawner)
    }
}

/// How actors of one kind are made for others.
struct Spawner<A: Spawnable>(std::marker::PhantomData<fn() -> A>);

impl<A: Spawnable> Default for Spawner<A> {
    fn default() -> Self {
        Self(std::marker::PhantomData)
    }
}

/// A spawner whose actors' type is not known.
pub(super) trait AnySpawner: Send + Sync {
    /// Spawns an actor on `shard` from its arguments as they came.
    fn spawn(&self, shard: &Shard, arguments: Vec<u8>, parent: Option<Parent>) -> Result<Address, Refusal>;
}

impl<A: Spawnable> AnySpawner for Spawner<A> {
    fn spawn(&self, shard: &Shard, arguments: Vec<u8>, parent: Option<Parent>) -> Result<Address, Refusal> {
        codec::decode::<A::Args>(&arguments).map_err(|error| invalid(&error))?;
        let factory: Factory<A> = Box::new(move |cx| {
            let arguments = codec::decode(&arguments).map_err(|error| error.to_string())?;
            A::spawned(cx, arguments)
        });
        Ok(shard.spawn(factory, A::SUPERVISE, parent))
    }
}

/// What is said of children of reliable actors.
const RELIABLE: &str = "a turn of a reliable actor spawns nothing, as that would act before its commit; write `Kind::create(cx)`, \
                        or send a message to an actor that spawns";

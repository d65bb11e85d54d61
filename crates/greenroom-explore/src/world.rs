//! What a test's body has: the node's actors, its clients, and what it claims.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::panic::{self, AssertUnwindSafe};
use std::rc::Rc;
use std::sync::Arc;

use greenroom::rehearsal::{Behaviour, Interface, Port};
use greenroom::{Key, Node, Scope};
use greenroom_world::LocalFuture;

use crate::judge::Monitor;
use crate::judge::crowd::{Crowd, PROGRAMS};
use crate::now::Now;
use crate::quiet::said;

/// What a test runs in, for one schedule. References to actors are made of it, as of a node: `AccountRef::of(&world, "ada")`.
///
/// Clones are the same world.
#[derive(Clone)]
pub struct World(Rc<Inner>);

struct Inner {
    node: Node,
    kinds: Kinds,
    clients: RefCell<Vec<LocalFuture>>,
    claims: RefCell<Vec<Claim>>,
    finally: RefCell<Vec<LocalFuture>>,
    monitors: RefCell<Vec<(String, Box<dyn Monitor>)>>,
    linearizable: Cell<bool>,
    /// Whether somebody judges the order of steps that have nothing to do with each other.
    judges_order: Cell<bool>,
    crowds: RefCell<Vec<Crowd>>,
    /// What the crowds do, if there are any.
    program: Cell<Option<usize>>,
    course: Box<dyn Course>,
    /// Whether clients run: nothing else is explored.
    explores: Cell<bool>,
    /// Whether the test's own body still runs: what it says is of use until then.
    is_set_up: Cell<bool>,
}

/// What decides what a test leaves open, and tells what it says.
pub(crate) trait Course {
    /// Chooses one of so many, with what that is about if it is whether something happens.
    fn choose(&self, options: usize, about: &str) -> usize;

    /// Takes a line that is to be told.
    fn note(&self, text: &str);
}

/// The names of the kinds that a node hosts.
pub(crate) type Kinds = Rc<BTreeSet<&'static str>>;

/// Something that a test says of its actors.
#[derive(Clone)]
pub(crate) struct Claim {
    pub(crate) name: Rc<str>,
    pub(crate) when: When,
    pub(crate) holds: Rc<dyn Fn(&Now) -> bool>,
}

/// When it is to be true.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum When {
    Always,
    AtTheEnd,
    Sometimes,
}

impl Claim {
    /// What it says; nothing if it asks for an actor that an exclusive turn has.
    pub(crate) fn judge(&self, now: &Now) -> Result<Option<bool>, String> {
        let judged = panic::catch_unwind(AssertUnwindSafe(|| now.judge(&*self.holds)));
        judged.map_err(|payload| format!("{} panicked: {}", self.name, said(&*payload)))
    }
}

impl World {
    pub(crate) fn new(node: Node, kinds: Kinds, course: impl Course + 'static) -> Self {
        Self(Rc::new(Inner {
            node,
            kinds,
            clients: RefCell::default(),
            claims: RefCell::default(),
            finally: RefCell::default(),
            monitors: RefCell::default(),
            linearizable: Cell::new(false),
            judges_order: Cell::new(false),
            crowds: RefCell::default(),
            program: Cell::new(None),
            course: Box::new(course),
            explores: Cell::new(false),
            is_set_up: Cell::new(true),
        }))
    }

    /// The node on which the actors are.
    pub fn node(&self) -> &Node {
        &self.0.node
    }

    /// Runs `client` beside all others, once the test's own body has ended. Clients are numbered from 1, in this order.
    ///
    /// # Panics
    /// Behind the body, as it would not run: in other clients, and in [`finally`](Self::finally). So does all that claims something.
    pub fn client(&self, client: impl Future<Output = ()> + 'static) {
        self.say("client");
        self.0.clients.borrow_mut().push(Box::pin(client));
    }

    /// Claims that `holds` is true after each step. It is not asked while an exclusive turn has an actor that it looks at.
    pub fn always(&self, name: &str, holds: impl Fn(&Now) -> bool + 'static) {
        self.claim(name, When::Always, holds);
    }

    /// Claims that `holds` is true when nothing is left to do; or at some time while all get their turns, if that never comes
    /// ([`Explore::patience`](crate::Explore::patience)).
    pub fn eventually(&self, name: &str, holds: impl Fn(&Now) -> bool + 'static) {
        self.claim(name, When::AtTheEnd, holds);
    }

    /// Claims that `holds` is true after some step of at least one schedule: else the test proves nothing, and fails.
    pub fn sometimes(&self, name: &str, holds: impl Fn(&Now) -> bool + 'static) {
        self.claim(name, When::Sometimes, holds);
    }

    /// Runs `judge` when nothing is left to do: it may call actors, one after the other, and panics if something is wrong.
    pub fn finally<F: Future<Output = ()> + 'static>(&self, judge: impl FnOnce(World) -> F + 'static) {
        let world = self.clone();
        self.0.finally.borrow_mut().push(Box::pin(async move { judge(world).await }));
    }

    /// Lets a new `M` see all messages and turns while the clients run: it says what must not be, and what must come yet.
    pub fn monitor<M: Monitor + Default + 'static>(&self) {
        self.say("monitor");
        self.0.judges_order.set(true);
        let name = std::any::type_name::<M>().rsplit("::").next().unwrap_or_default().to_owned();
        self.0.monitors.borrow_mut().push((name, Box::new(M::default())));
    }

    /// Claims that clients, and [`finally`](Self::finally), are told nothing but what they could be told if their calls came one at a
    /// time, in some order that nobody can tell from the real one. That needs no specification: the actors themselves are run so, in
    /// all orders that keep each client's own, at most 5,000. A call that has ended as unknown may have happened.
    ///
    /// What is wrong one at a time too is not seen, nor are sums over several calls: they are for [`always`](Self::always) and
    /// `finally`.
    ///
    /// # Panics
    /// The test, if there are more orders.
    pub fn linearizable(&self) {
        self.say("linearizable");
        self.0.linearizable.set(true);
        self.0.judges_order.set(true);
    }

    /// Lets so many clients in that nobody has written: each makes so many calls, of any method of the actors of type `A` with these
    /// keys, with arguments that are made up. What they do is the first choice of each schedule.
    ///
    /// With [`linearizable`](Self::linearizable), or an invariant, that is a whole test.
    ///
    /// # Panics
    /// Without keys, or if the test does not register the kind; a client, if no call can be made up.
    pub fn anybody<A: Behaviour>(&self, keys: impl IntoIterator<Item = impl Into<Key>>, clients: usize, calls: usize) {
        self.say("anybody");
        let keys: Vec<Key> = keys.into_iter().map(Into::into).collect();
        assert!(!keys.is_empty(), "nobody is to be called: name the keys of the actors");
        let kind = A::Interface::KIND;
        assert!(
            self.0.kinds.contains(kind),
            "actor kind {kind:?} is not registered, so all its calls are refused: name it in the test"
        );
        self.0.crowds.borrow_mut().push(Crowd::of::<A>(keys, clients, calls));
    }

    /// Lets them in, once schedules are explored.
    pub(crate) fn let_crowds_in(&self) {
        let crowds = self.0.crowds.take();
        if crowds.is_empty() {
            return;
        }
        let program = self.choose(PROGRAMS);
        self.0.program.set(Some(program));
        for crowd in crowds {
            let clients = crowd.clients(self, program);
            self.0.clients.borrow_mut().extend(clients);
        }
    }

    /// What the crowds do.
    pub(crate) fn program(&self) -> Option<usize> {
        self.0.program.get()
    }

    /// Whether traces do not tell all that is judged.
    pub(crate) fn judges_order(&self) -> bool {
        self.0.judges_order.get()
    }

    pub(crate) fn is_linearizable(&self) -> bool {
        self.0.linearizable.get()
    }

    pub(crate) fn take_monitors(&self) -> Vec<(String, Box<dyn Monitor>)> {
        self.0.monitors.take()
    }

    /// One of `0..options`, a choice like that of a step: 0 unless the schedule says otherwise, as in set-up and in
    /// [`finally`](Self::finally). For clients, and for what stands in for the world around the actors.
    ///
    /// # Panics
    /// If there are none.
    #[track_caller]
    pub fn choose(&self, options: usize) -> usize {
        assert!(options > 0, "there is nothing to choose from: give one option at least");
        self.ask(options, "")
    }

    /// Whether something happens that the test stands in for, as [`cx.maybe`](greenroom::Cx::maybe) is in an actor: no, unless the schedule
    /// says otherwise. The story tells of it by its name.
    pub fn maybe(&self, what: &str) -> bool {
        self.ask(2, what) == 1
    }

    /// A line for the story of a schedule, told under the step in which it was said; of no use before clients run, and in
    /// [`finally`](Self::finally).
    pub fn note(&self, text: impl fmt::Display) {
        if self.0.explores.get() {
            self.0.course.note(&text.to_string());
        }
    }

    fn ask(&self, options: usize, about: &str) -> usize {
        if options > 1 && self.0.explores.get() { self.0.course.choose(options, about) } else { 0 }
    }

    pub(crate) fn explores(&self, explores: bool) {
        self.0.is_set_up.set(false);
        self.0.explores.set(explores);
    }

    /// Whether clients run.
    pub(crate) fn is_explored(&self) -> bool {
        self.0.explores.get()
    }

    /// The test says something, which nobody hears once its body has ended.
    fn say(&self, what: &str) {
        assert!(
            self.0.is_set_up.get(),
            "`world.{what}` comes too late: say it in the test's body, before its clients run"
        );
    }

    fn claim(&self, name: &str, when: When, holds: impl Fn(&Now) -> bool + 'static) {
        self.say(match when {
            When::Always => "always",
            When::AtTheEnd => "eventually",
            When::Sometimes => "sometimes",
        });
        if when != When::AtTheEnd {
            self.0.judges_order.set(true);
        }
        self.0.claims.borrow_mut().push(Claim { name: name.into(), when, holds: Rc::new(holds) });
    }

    pub(crate) fn take_clients(&self) -> Vec<LocalFuture> {
        self.0.clients.take()
    }

    /// Whether somebody is to judge behind the end, and has not.
    pub(crate) fn has_finally(&self) -> bool {
        !self.0.finally.borrow().is_empty()
    }

    pub(crate) fn take_finally(&self) -> Vec<LocalFuture> {
        self.0.finally.take()
    }

    pub(crate) fn claims(&self) -> Vec<Claim> {
        self.0.claims.borrow().clone()
    }

    /// The claims; nothing is left here, as what a test has said may hold the world that holds it.
    pub(crate) fn take_all(&self) -> Vec<Claim> {
        drop((self.take_clients(), self.take_finally(), self.take_monitors(), self.0.crowds.take()));
        self.0.claims.take()
    }
}

impl Scope for World {
    fn port(&self) -> &Arc<Port> {
        self.0.node.port()
    }
}

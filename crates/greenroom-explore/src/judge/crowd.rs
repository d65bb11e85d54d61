//! Clients that call whatever can be called, with arguments that are made up.

use std::rc::Rc;

use greenroom::Key;
use greenroom::rehearsal::{Behaviour, Interface, Inventor, Ref};
use greenroom_sim::Random;
use greenroom_world::LocalFuture;

use crate::world::World;

/// Some clients that nobody has written.
#[derive(Clone)]
pub(crate) struct Crowd {
    clients: usize,
    client: Rc<dyn Fn(World, u64) -> LocalFuture>,
}

impl Crowd {
    /// So many clients with so many calls each, to the actors of type `A` that have these keys.
    pub(crate) fn of<A: Behaviour>(keys: Vec<Key>, clients: usize, calls: usize) -> Self {
        let (keys, names) = (Rc::new(keys.clone()), Rc::new(keys.iter().map(ToString::to_string).collect::<Vec<_>>()));
        let client = move |world: World, seed: u64| -> LocalFuture {
            let (keys, names) = (keys.clone(), names.clone());
            Box::pin(async move {
                let mut random = Random::new(seed);
                for _ in 0..calls {
                    call::<A>(&world, &keys, &names, &mut random).await;
                }
            })
        };
        Self { clients, client: Rc::new(client) }
    }

    /// The clients of one of the programs.
    pub(crate) fn clients(&self, world: &World, program: usize) -> Vec<LocalFuture> {
        let seed = |client: usize| (program * self.clients + client) as u64;
        (0..self.clients).map(|client| (self.client)(world.clone(), seed(client))).collect()
    }
}

/// Makes one call: another method if the arguments of the first cannot be made up.
async fn call<A: Behaviour>(world: &World, keys: &[Key], names: &[String], random: &mut Random) {
    let target = Ref::<A::Interface>::of(world, keys[random.index(keys.len())].clone());
    let methods = A::Interface::INVENT;
    let first = random.index(methods.len().max(1));
    let mut why = "it has no methods".to_owned();
    for at in 0..methods.len() {
        let mut choose = |options: usize| random.index(options.max(1));
        match methods[(first + at) % methods.len()](&mut Inventor::new(&mut choose, names), &target) {
            Ok(call) => return call.await,
            Err(error) => why = error.to_string(),
        }
    }
    panic!("no call of {} can be made up: {why}; write clients for it", A::Interface::KIND);
}

/// Programs of calls: each schedule has one of them.
pub(crate) const PROGRAMS: usize = 64;

//! Pools and their resources as reliable state machines (RSM §5.2), and a provider of resources that fails and loses them.

use std::time::Duration;

use greenroom::prelude::*;
use serde::{Deserialize, Serialize};

/// A pool: it sees to it that it has as many resources as its owner wants.
#[derive(Default, Actor)]
pub struct Pool {
    /// How many resources are wanted.
    goal: Register<u64>,
    creating: Register<u64>,
    created: Register<u64>,
    deleting: Register<u64>,
    /// The resources by their actors' keys.
    resources: Map<String, Status>,
    provider: Register<Option<ProviderRef>>,
}

/// What a pool knows of one of its resources.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Status {
    /// The provider is asked for it.
    Creating,
    /// It is there.
    Created,
    /// It is being given back.
    Deleting,
}

/// What a pool shows.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PoolView {
    /// The machine's state: `Absent`, `Resizing`, `Ready` or `Deleting`.
    pub state: String,
    /// Resources wanted.
    pub goal: u64,
    /// Resources that the provider is asked for.
    pub creating: u64,
    /// Resources that are there.
    pub created: u64,
    /// Resources that are being given back.
    pub deleting: u64,
    /// The keys of all of them.
    pub resources: Vec<String>,
}

/// Why a pool does not do something.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum PoolError {
    /// There is a pool of this name.
    Exists,
    /// There is none.
    Absent,
    /// It is being deleted.
    Deleting,
}

#[actor(reliable, start = "Absent")]
impl Pool {
    /// Makes the pool, with `size` resources to come.
    #[on(create_pool, state = "Absent")]
    async fn begin(&mut self, cx: &Cx, size: u64) -> Result<(), PoolError> {
        self.provider.set(Some(ProviderRef::of(cx, "cloud")));
        self.goal.set(size);
        self.approach(cx);
        Ok(())
    }

    /// It is there already.
    #[on(create_pool)]
    async fn begin_again(&mut self, size: u64) -> Result<(), PoolError> {
        let _ = size;
        Err(PoolError::Exists)
    }

    /// Lets the pool have `size` resources; at any time, also while it approaches another size.
    #[on(resize, state = ["Resizing", "Ready"])]
    async fn resize(&mut self, cx: &Cx, size: u64) -> Result<(), PoolError> {
        self.goal.set(size);
        self.approach(cx);
        Ok(())
    }

    /// There is nothing to resize.
    #[on(resize, state = ["Absent", "Deleting"])]
    async fn resize_none(&mut self, cx: &Cx, size: u64) -> Result<(), PoolError> {
        let _ = size;
        Err(if is_absent(cx) { PoolError::Absent } else { PoolError::Deleting })
    }

    /// Gives all resources back; then the pool is no more.
    #[on(delete, state = ["Resizing", "Ready"])]
    async fn delete(&mut self, cx: &Cx) -> Result<(), PoolError> {
        self.goal.set(0);
        self.scale(cx);
        cx.jump("Deleting");
        self.end_if_empty(cx);
        Ok(())
    }

    /// There is nothing to delete, or that is under way.
    #[on(delete, state = ["Absent", "Deleting"])]
    async fn delete_again(&mut self, cx: &Cx) -> Result<(), PoolError> {
        if is_absent(cx) { Err(PoolError::Absent) } else { Ok(()) }
    }

    /// A resource is there.
    #[on(resource_created)]
    async fn resource_created(&mut self, cx: &Cx, resource: String) {
        if self.resources.get(&resource) == Some(&Status::Creating) {
            self.resources.insert(resource, Status::Created);
            *self.creating.get_mut() -= 1;
            *self.created.get_mut() += 1;
            self.approach(cx);
        }
    }

    /// A resource is not healthy any more, and gives itself back.
    #[on(resource_lost)]
    async fn resource_lost(&mut self, cx: &Cx, resource: String) {
        if self.resources.get(&resource) == Some(&Status::Created) {
            self.resources.insert(resource, Status::Deleting);
            *self.created.get_mut() -= 1;
            *self.deleting.get_mut() += 1;
            self.approach(cx);
        }
    }

    /// A resource is no more.
    #[on(resource_deleted)]
    async fn resource_deleted(&mut self, cx: &Cx, resource: String) {
        if self.resources.remove(&resource) == Some(Status::Deleting) {
            *self.deleting.get_mut() -= 1;
            self.approach(cx);
        }
    }

    /// Whether it has what is wanted.
    pub async fn is_ready(&self, cx: &Cx) -> bool {
        cx.machine_state().as_deref() == Some("Ready")
    }

    /// How it is.
    pub async fn look(&self, cx: &Cx) -> PoolView {
        PoolView {
            state: cx.machine_state().unwrap_or_default().to_string(),
            goal: *self.goal.get(),
            creating: *self.creating.get(),
            created: *self.created.get(),
            deleting: *self.deleting.get(),
            resources: self.resources.iter().map(|(key, _)| key.clone()).collect(),
        }
    }

    /// Goes on towards the goal, and says in which state that leaves it.
    fn approach(&mut self, cx: &Cx) {
        self.scale(cx);
        if cx.machine_state().as_deref() == Some("Deleting") {
            return self.end_if_empty(cx);
        }
        let there = self.created.get() == self.goal.get() && *self.deleting.get() == 0;
        cx.jump(if there { "Ready" } else { "Resizing" });
    }

    /// Asks for what is missing and gives back what is too much: afterwards, as many are there or under way as are wanted
    /// (Property 1), or as many are under way as may be at once; the others follow as these end, so that a turn stays
    /// small however large the pool is.
    fn scale(&mut self, cx: &Cx) {
        while self.creating.get() + self.created.get() < *self.goal.get() && *self.creating.get() < AT_ONCE {
            let resource = Resource::create(cx);
            resource.begin(PoolRef::me(cx), self.provider.get().clone().unwrap_or(ProviderRef::of(cx, "cloud"))).send();
            self.resources.insert(resource.key().to_string(), Status::Creating);
            *self.creating.get_mut() += 1;
        }
        let surplus = (self.creating.get() + self.created.get()).saturating_sub(*self.goal.get());
        if surplus == 0 || *self.deleting.get() > AT_ONCE / 2 {
            return;
        }
        let of = |wanted: Status| self.resources.iter().filter(move |(_, status)| **status == wanted);
        let going = of(Status::Creating).chain(of(Status::Created)).map(|(key, _)| key.clone());
        let going: Vec<String> = going.take(surplus.min(AT_ONCE) as usize).collect();
        for resource in going {
            ResourceRef::of(cx, resource.clone()).dispose().send();
            match self.resources.insert(resource, Status::Deleting) {
                Some(Status::Creating) => *self.creating.get_mut() -= 1,
                _ => *self.created.get_mut() -= 1,
            }
            *self.deleting.get_mut() += 1;
        }
    }

    fn end_if_empty(&mut self, cx: &Cx) {
        if self.resources.is_empty() {
            cx.halt();
        }
    }
}

fn is_absent(cx: &Cx) -> bool {
    cx.machine_state().as_deref() == Some("Absent")
}

/// One resource, from the request for it to its end.
#[derive(Default, Actor)]
pub struct Resource {
    pool: Register<Option<PoolRef>>,
    provider: Register<Option<ProviderRef>>,
    /// Whether the pool wants it no more.
    unwanted: Register<bool>,
}

#[actor(reliable, start = "New")]
impl Resource {
    /// Asks the provider for it.
    #[on(begin, state = "New")]
    async fn begin(&mut self, cx: &Cx, pool: PoolRef, provider: ProviderRef) {
        provider.allocate(ResourceRef::me(cx)).send();
        self.pool.set(Some(pool));
        self.provider.set(Some(provider));
        cx.jump("Creating");
    }

    /// The provider has it.
    #[on(allocated, state = "Creating")]
    async fn allocated(&mut self, cx: &Cx) {
        if *self.unwanted.get() {
            return self.give_back(cx);
        }
        self.tell(|pool, key| pool.resource_created(key).send(), cx);
        cx.jump("Created");
    }

    /// The provider could not.
    #[on(refused, state = "Creating")]
    async fn refused(&mut self, cx: &Cx) {
        if *self.unwanted.get() {
            return self.end(cx);
        }
        if let Some(provider) = self.provider.get() {
            provider.allocate(ResourceRef::me(cx)).after(AGAIN_AFTER).send();
        }
    }

    /// The pool wants it no more; what is under way must come to its end first.
    #[on(dispose, state = ["New", "Creating"])]
    async fn dispose_later(&mut self) {
        self.unwanted.set(true);
    }

    /// The pool wants it no more.
    #[on(dispose, state = "Created", ignore = "Deleting")]
    async fn dispose(&mut self, cx: &Cx) {
        self.give_back(cx);
    }

    /// The provider has lost it: it is given back, and the pool asks for another one.
    #[on(unhealthy, state = "Created", ignore = "Deleting")]
    async fn unhealthy(&mut self, cx: &Cx) {
        self.tell(|pool, key| pool.resource_lost(key).send(), cx);
        self.give_back(cx);
    }

    /// The provider has taken it back.
    #[on(released, state = "Deleting")]
    async fn released(&mut self, cx: &Cx) {
        self.end(cx);
    }

    fn give_back(&mut self, cx: &Cx) {
        if let Some(provider) = self.provider.get() {
            provider.release(ResourceRef::me(cx)).send();
        }
        cx.jump("Deleting");
    }

    fn end(&mut self, cx: &Cx) {
        self.tell(|pool, key| pool.resource_deleted(key).send(), cx);
        cx.halt();
    }

    fn tell(&self, what: impl FnOnce(&PoolRef, String), cx: &Cx) {
        if let Some(pool) = self.pool.get() {
            what(pool, cx.key().to_string());
        }
    }
}

/// A model of who has the resources: it refuses some requests, and loses resources when it is told to.
#[derive(Default, Actor)]
pub struct Provider {
    /// What is allocated, by the keys of the resources.
    allocated: Set<String>,
    requests: u64,
    /// Every so many requests one is refused; none if it is 0.
    refuses_each: u64,
}

#[actor(reliable)]
impl Provider {
    /// A resource is wanted.
    pub async fn allocate(&mut self, resource: ResourceRef) {
        self.requests += 1;
        if self.refuses_each > 0 && self.requests.is_multiple_of(self.refuses_each) {
            return resource.refused().send();
        }
        self.allocated.insert(resource.key().to_string());
        resource.allocated().send();
    }

    /// A resource is not wanted any more.
    pub async fn release(&mut self, resource: ResourceRef) {
        self.allocated.remove(&resource.key().to_string());
        resource.released().send();
    }

    /// From now on, one of `each` requests is refused; none if it is 0.
    pub async fn refuse(&mut self, each: u64) {
        self.refuses_each = if each == 1 { 2 } else { each };
    }

    /// Loses the resource at this place among those that there are; whether there is one.
    pub async fn lose(&mut self, cx: &Cx, place: u64) -> bool {
        let count = self.allocated.len() as u64;
        let lost = self.allocated.iter().nth(place.checked_rem(count).unwrap_or(0) as usize).cloned();
        if let Some(lost) = &lost {
            ResourceRef::of(cx, lost.clone()).unhealthy().send();
        }
        lost.is_some()
    }

    /// What is allocated.
    pub async fn allocations(&self) -> Vec<String> {
        self.allocated.iter().cloned().collect()
    }
}

/// Resources that a pool asks for at once, or gives back.
const AT_ONCE: u64 = 256;
/// Before a provider that has refused is asked again.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

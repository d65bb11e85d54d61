//! The heart of PoolServer (RSM §5.2), with the paper's two mistakes put back in.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Status {
    Creating,
    Created,
    Deleting,
}

/// A pool whose provider loses resources: `$created` is what is written above the field, `$forgets` whether a loss is not counted.
macro_rules! pool_server {
    ($name:ident, $(#[$created:meta])?, $forgets:literal) => {
        pub(super) mod $name {
            use greenroom::Builder;
            use greenroom::prelude::*;
            use greenroom_explore::World;

            use super::Status;

            #[derive(Default, Debug, Actor)]
            pub(crate) struct Pool {
                goal: u64,
                creating: u64,
                $(#[$created])?
                created: u64,
                pub(crate) resources: Map<String, Status>,
            }

            #[actor(reliable)]
            impl Pool {
                pub async fn resize(&mut self, cx: &Cx, size: u64) {
                    self.goal = size;
                    self.approach(cx);
                }

                pub async fn resource_created(&mut self, cx: &Cx, resource: String) {
                    if self.resources.get(&resource) == Some(&Status::Creating) {
                        self.resources.insert(resource, Status::Created);
                        (self.creating, self.created) = (self.creating - 1, self.created + 1);
                        self.approach(cx);
                    }
                }

                pub async fn resource_lost(&mut self, cx: &Cx, resource: String) {
                    if self.resources.get(&resource) == Some(&Status::Created) {
                        self.resources.insert(resource, Status::Deleting);
                        self.created -= u64::from(!$forgets);
                        self.approach(cx);
                    }
                }

                pub async fn resource_deleted(&mut self, cx: &Cx, resource: String) {
                    self.resources.remove(&resource);
                    self.approach(cx);
                }

                /// Resources that are wanted, and those that are there.
                pub async fn look(&self) -> (u64, u64) {
                    let there = self.resources.iter().filter(|(_, status)| **status == Status::Created);
                    (self.goal, there.count() as u64)
                }

                fn approach(&mut self, cx: &Cx) {
                    while self.creating + self.created < self.goal {
                        let resource = Resource::create(cx);
                        resource.begin(PoolRef::me(cx)).send();
                        self.resources.insert(resource.key().to_string(), Status::Creating);
                        self.creating += 1;
                    }
                }
            }

            #[derive(Default, Debug, Actor)]
            pub(crate) struct Resource {
                pool: Option<PoolRef>,
            }

            #[actor(reliable)]
            impl Resource {
                pub async fn begin(&mut self, cx: &Cx, pool: PoolRef) {
                    self.pool = Some(pool);
                    ProviderRef::of(cx, "cloud").allocate(ResourceRef::me(cx)).send();
                }

                pub async fn allocated(&mut self, cx: &Cx) {
                    if let Some(pool) = &self.pool {
                        pool.resource_created(cx.key().to_string()).send();
                    }
                }

                pub async fn lost(&mut self, cx: &Cx) {
                    if let Some(pool) = &self.pool {
                        pool.resource_lost(cx.key().to_string()).send();
                        pool.resource_deleted(cx.key().to_string()).send();
                        cx.halt();
                    }
                }
            }

            #[derive(Default, Debug, Actor)]
            pub(crate) struct Provider {
                allocated: Queue<ResourceRef>,
            }

            #[actor(reliable)]
            impl Provider {
                pub async fn allocate(&mut self, resource: ResourceRef) {
                    resource.allocated().send();
                    self.allocated.push(resource);
                }

                pub async fn lose(&mut self) {
                    if let Some(resource) = self.allocated.pop() {
                        resource.lost().send();
                    }
                }
            }

            pub(crate) fn register(builder: Builder) -> Builder {
                builder.register::<Pool>().register::<Resource>().register::<Provider>()
            }

            /// Whatever crashes, there are as many in the end as are wanted.
            pub(crate) async fn reaches_its_goal(world: &World) {
                let pool = PoolRef::of(world, "ada");
                pool.resize(1).await.expect("it answers");
                world.client(async move { drop(pool.resize(2).await) });
                let provider = ProviderRef::of(world, "cloud");
                world.client(async move { drop(provider.lose().await) });
                world.finally(|world| async move {
                    let (wanted, there) = PoolRef::of(&world, "ada").look().await.expect("it answers");
                    assert_eq!(wanted, there, "Property 1");
                });
            }
        }
    };
}

pool_server!(repaired, , false);
pool_server!(forgets_a_loss, , true);
pool_server!(forgets_at_a_crash, #[volatile], false);

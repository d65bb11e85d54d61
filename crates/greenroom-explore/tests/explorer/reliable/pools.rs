//! PoolServer (RSM §5.2) as it is in the example.

use greenroom_explore::prelude::*;

use super::example::{Pool, PoolRef, Provider, ProviderRef, Resource};

#[test]
fn the_example_reaches_its_goal() {
    let kinds = Explore::of(|builder| builder.register::<Pool>().register::<Resource>().register::<Provider>());
    kinds.faults("crash").run(|world| async move {
        let pool = PoolRef::of(&world, "ada");
        pool.create_pool(1).await.expect("it answers");
        world.client(async move { drop(pool.resize(2).await) });
        let provider = ProviderRef::of(&world, "cloud");
        world.client(async move { drop(provider.lose(0).await) });
        world.finally(|world| async move {
            let view = PoolRef::of(&world, "ada").look().await.expect("it answers");
            assert_eq!((view.state.as_str(), view.created, view.deleting), ("Ready", view.goal, 0), "{view:?}");
        });
    });
}

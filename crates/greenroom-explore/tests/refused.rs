//! What a test cannot ask for, and what it would prove nothing by, is refused, with the remedy.

use greenroom_explore::prelude::*;
#[derive(Default, Debug, Actor)]
struct Count {
    count: u64,
}

#[actor]
impl Count {
    pub async fn add(&mut self) -> u64 {
        self.count += 1;
        self.count
    }
}

fn kinds(builder: Builder) -> Builder {
    builder.register::<Count>()
}

fn one_client(world: &World) {
    let count = CountRef::of(world, "one");
    world.client(async move { drop(count.add().await) });
}

#[explore(with = kinds)]
async fn kinds_may_be_registered_by_a_function(world: World) {
    one_client(&world);
}

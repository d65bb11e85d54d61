//! A cache that two fill at once.

use std::sync::Mutex;

use greenroom_explore::prelude::*;

#[derive(Default, Debug, Actor)]
struct Source {
    asked: u64,
}

#[actor]
impl Source {
    pub async fn load(&mut self) -> u64 {
        self.asked += 1;
        7
    }
}

#[derive(Default, Debug, Actor)]
struct Cache {
    value: Mutex<Option<u64>>,
}

#[actor]
impl Cache {
    /// The mistake: others read while this one waits, and find as little.
    pub async fn read(&self, cx: &Cx) -> u64 {
        let known = *self.value.lock().expect("nobody panics");
        match known {
            Some(value) => value,
            None => {
                let value = SourceRef::of(cx, "disk").load().await.expect("it answers");
                *self.value.lock().expect("nobody panics") = Some(value);
                value
            }
        }
    }

    pub async fn read_alone(&mut self, cx: &Cx) -> u64 {
        self.read(cx).await
    }
}

async fn the_source_is_asked_once(world: World, is_repaired: bool) {
    for _ in 0..2 {
        let cache = CacheRef::of(&world, "pages");
        world.client(async move {
            let read = if is_repaired { cache.read_alone().await } else { cache.read().await };
            assert_eq!(read, Ok(7));
        });
    }
    world.always("the source is asked once", |now| now.all::<Source>().all(|(_, source)| source.asked <= 1));
}

#[test]
fn a_cache_that_is_filled_twice() {
    let kinds = |builder: Builder| builder.register::<Source>().register::<Cache>();
    super::is_told_apart("cache", &Explore::of(kinds), the_source_is_asked_once);
}

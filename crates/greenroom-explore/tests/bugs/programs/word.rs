//! The word count of the paper (RSM §5.1), but that the most frequent word is the last one that was told.

use std::collections::BTreeMap;

use greenroom::Builder;
use greenroom::prelude::*;
use greenroom_explore::World;

pub(super) fn register(builder: Builder) -> Builder {
    builder.register::<Counter>().register::<Max>()
}

#[derive(Default, Debug, Actor)]
struct Max {
    word: String,
    highest: u64,
}

#[actor]
impl Max {
    pub async fn report(&mut self, word: String, count: u64, compares: bool) {
        if count > self.highest || !compares {
            (self.word, self.highest) = (word, count);
        }
    }
}

/// Counts some of the words.
#[derive(Default, Debug, Actor)]
struct Counter {
    highest: u64,
    words: BTreeMap<String, u64>,
}

#[actor]
impl Counter {
    pub async fn word(&mut self, cx: &Cx, word: String, compares: bool) {
        let count = self.words.entry(word.clone()).or_default();
        *count += 1;
        if *count > self.highest {
            self.highest = *count;
            MaxRef::of(cx, "text").report(word, *count, compares).send();
        }
    }
}

pub(super) fn word_count(world: &World, is_repaired: bool) {
    for (counter, words) in [("2", vec!["dog"]), ("1", vec!["the", "the"])] {
        let counter = CounterRef::of(world, counter);
        world.client(async move {
            for word in words {
                counter.word(word, is_repaired).await.expect("it answers");
            }
        });
    }
    world.eventually("the most frequent word is known", |now| {
        now.get::<Max>("text").is_some_and(|max| (max.word.as_str(), max.highest) == ("the", 2))
    });
}

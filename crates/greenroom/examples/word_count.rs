//! Words counted by several actors, and the most frequent of them found (RSM §2.1, Listings 1-3):
//! `cargo run -p greenroom --example word_count`.

use std::hash::{DefaultHasher, Hash, Hasher};

use greenroom::prelude::*;

/// Makes the others, and passes words on.
#[derive(Default, Actor)]
pub struct Main {
    counters: Queue<WordCountRef>,
}

#[actor(reliable, start = "Init")]
impl Main {
    /// Makes the counters and the one that hears of their highest counts.
    #[on(begin, state = "Init", ignore = "Receive")]
    async fn begin(&mut self, cx: &Cx, counters: u64, best: MaxRef) {
        for _ in 0..counters.max(1) {
            let counter = WordCount::create(cx);
            counter.init(best.clone()).send();
            self.counters.push(counter);
        }
        cx.jump("Receive");
    }

    /// A word: the same counter gets it each time.
    #[on(word, state = "Receive", defer = "Init")]
    async fn forward(&mut self, word: String) {
        let mut hasher = DefaultHasher::new();
        word.hash(&mut hasher);
        let place = hasher.finish() % self.counters.len() as u64;
        if let Some(counter) = self.counters.iter().nth(place as usize) {
            counter.word(word).send();
        }
    }
}

/// Counts some of the words.
#[derive(Default, Actor)]
pub struct WordCount {
    frequency: Map<String, u64>,
    highest: Register<u64>,
    target: Register<Option<MaxRef>>,
    #[volatile]
    seen_since_crash: u64,
}

#[actor(reliable, start = "Init")]
impl WordCount {
    /// Whom to tell.
    #[on(init, state = "Init")]
    async fn init(&mut self, cx: &Cx, target: MaxRef) {
        self.target.set(Some(target));
        cx.jump("Counting");
    }

    /// A word.
    #[on(word, state = "Counting", defer = "Init")]
    async fn count(&mut self, word: String) {
        self.seen_since_crash += 1;
        let count = self.frequency.get(&word).copied().unwrap_or(0) + 1;
        self.frequency.insert(word.clone(), count);
        if count > *self.highest.get() {
            self.highest.set(count);
            if let Some(max) = self.target.get() {
                max.report(word, count).send();
            }
        }
    }
}

/// Knows the most frequent word.
#[derive(Default, Actor)]
pub struct Max {
    word: String,
    highest: u64,
}

#[actor(reliable)]
impl Max {
    /// A counter's new highest count.
    pub async fn report(&mut self, word: String, count: u64) {
        if count > self.highest {
            (self.word, self.highest) = (word, count);
        }
    }

    /// The most frequent word so far.
    pub async fn best(&self) -> (String, u64) {
        (self.word.clone(), self.highest)
    }
}

#[tokio::main]
async fn main() -> greenroom::Result<()> {
    let node = Node::builder().journal("memory:").register::<Main>().register::<WordCount>().register::<Max>();
    let node = node.start().await?;
    let (main, best) = (MainRef::of(&node, "text"), MaxRef::of(&node, "text"));
    main.begin(3_u64, best.clone()).await?;
    for word in "the cat and the dog and the bird".split(' ') {
        main.word(word).await?;
    }
    while best.best().await?.1 < 3 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    println!("most frequent: {:?}", best.best().await?);
    node.stop().await;
    Ok(())
}

//! A reader that notes how far it has read before it has done what it reads.

use std::collections::BTreeSet;

use greenroom_explore::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Default, Debug, Serialize, Deserialize, Actor)]
struct Book {
    noted: BTreeSet<u64>,
}

#[actor(persistent, save = "turn")]
impl Book {
    pub async fn note(&mut self, number: u64) {
        self.noted.insert(number);
    }

    pub async fn noted(&self) -> BTreeSet<u64> {
        self.noted.clone()
    }
}

#[derive(Default, Debug, Serialize, Deserialize, Actor)]
struct Reader {
    next: u64,
}

#[actor(persistent)]
impl Reader {
    pub async fn go_on(&mut self, cx: &Cx, is_repaired: bool) -> Result<(), StateError> {
        let book = BookRef::of(cx, "book");
        while self.next < NUMBERS {
            let number = self.next;
            if is_repaired && book.note(number).await.is_err() {
                // It is noted when the reader goes on.
                return Ok(());
            }
            self.next += 1;
            cx.save(self).await?;
            if !is_repaired {
                // The mistake: where the node is gone by now, nobody reads this number again.
                drop(book.note(number).await);
            }
        }
        Ok(())
    }
}

async fn every_number_is_noted(world: World, is_repaired: bool) {
    let reader = ReaderRef::of(&world, "ada");
    world.client(async move { drop(reader.go_on(is_repaired).await) });
    world.finally(move |world| async move {
        ReaderRef::of(&world, "ada").go_on(is_repaired).await.expect("it goes on");
        let noted = BookRef::of(&world, "book").noted().await.expect("it answers");
        assert_eq!(noted, (0..NUMBERS).collect(), "every number is noted");
    });
}

#[test]
fn a_reader_that_skips_as_it_goes_on_elsewhere() {
    let explore = Explore::of(|builder| builder.register::<Reader>().register::<Book>()).faults("crash");
    super::is_told_apart("reader", &explore, every_number_is_noted);
}

const NUMBERS: u64 = 2;

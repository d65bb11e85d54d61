//! Monitors see turns, and wait for what must come; invariants hold after each turn.

use greenroom_explore::prelude::*;

use super::bank::{AccountRef, bank};

/// Counts what is deposited and not yet in an account.
#[derive(Default)]
struct OnItsWay(i64);

impl Monitor for OnItsWay {
    fn saw(&mut self, event: &Event<'_>) -> Verdict {
        if event.begins("account", "add") {
            self.0 += event.argument::<i64>("amount").expect("it has an amount");
        } else if event.ends("account", "add") {
            self.0 -= 10;
        } else {
            return Verdict::Warm;
        }
        match self.0 {
            0 => Verdict::Cold,
            10 => Verdict::Hot,
            more => Verdict::Violated(format!("{more} on its way at once")),
        }
    }
}

/// Waits for a payment once an order was created.
#[derive(Default)]
struct Paid;

impl Monitor for Paid {
    fn saw(&mut self, event: &Event<'_>) -> Verdict {
        match event.method() {
            "add" if event.begins("account", "add") => Verdict::Hot,
            "set" if event.ends("account", "set") => Verdict::Cold,
            _ => Verdict::Warm,
        }
    }
}

#[test]
fn a_monitor_sees_turns_and_their_arguments() {
    let two = |amount: i64| {
        bank().schedules(200).check(move |world| async move {
            for _ in 0..2 {
                let account = AccountRef::of(&world, "ada");
                world.client(async move { drop(account.add(amount).await) });
            }
            world.monitor::<OnItsWay>();
        })
    };
    two(10).unwrap_or_else(|failure| panic!("{failure}"));
    let failure = two(7).expect_err("seven is not ten");
    assert_eq!(failure.violated(), "OnItsWay: 7 on its way at once");
}

/// Small amounts first.
#[derive(Default)]
struct Rising(i64);

impl Monitor for Rising {
    fn saw(&mut self, event: &Event<'_>) -> Verdict {
        match event.argument("amount").filter(|_| event.begins("account", "add")) {
            Some(amount) if amount < self.0 => return Verdict::Violated(format!("{amount} behind {}", self.0)),
            Some(amount) => self.0 = amount,
            None => {}
        }
        Verdict::Cold
    }
}

#[test]
fn a_monitor_hears_schedules_of_which_nothing_is_told() {
    let failure = bank().schedules(20).check(|world| async move {
        for amount in [1, 2] {
            let account = AccountRef::of(&world, "ada");
            world.client(async move { drop(account.add(amount).await) });
        }
        world.monitor::<Rising>();
    });
    let failure = failure.expect_err("the second one comes first");
    assert_eq!((failure.violated(), failure.schedule() > 1), ("Rising: 1 behind 2", true), "{failure}");
}

#[test]
fn a_monitor_that_is_hot_in_the_end_is_a_violation() {
    let failure = bank().schedules(20).check(|world| async move {
        let account = AccountRef::of(&world, "ada");
        world.client(async move { drop(account.add(1).await) });
        world.monitor::<Paid>();
    });
    assert_eq!(failure.expect_err("nothing is set").violated(), "Paid: hot in the end");
    bank().schedules(20).run(|world| async move {
        let account = AccountRef::of(&world, "ada");
        world.client(async move {
            drop(account.add(1).await);
            drop(account.set(1).await);
        });
        world.monitor::<Paid>();
    });
}

#[derive(Default, Debug, Actor)]
struct Shelf {
    goods: Vec<u32>,
    count: usize,
}

#[actor(invariant = "Self::sound")]
impl Shelf {
    /// The mistake: it is counted before it is there.
    pub async fn put(&mut self, cx: &Cx, good: u32, late: bool) {
        self.count += 1;
        if late {
            ShelfRef::me(cx).put_down(good).send();
        } else {
            self.goods.push(good);
        }
    }

    pub async fn put_down(&mut self, good: u32) {
        self.goods.push(good);
    }

    fn sound(&self) -> Result<(), String> {
        match self.goods.len() == self.count {
            true => Ok(()),
            false => Err(format!("{} are counted, {} are there", self.count, self.goods.len())),
        }
    }
}

#[test]
fn an_invariant_holds_after_each_turn() {
    let shelf = |late: bool| {
        Explore::of(|builder| builder.register::<Shelf>()).schedules(50).check(move |world| async move {
            let shelf = ShelfRef::of(&world, "1");
            world.client(async move { shelf.put(7, late).await.expect("it answers") });
        })
    };
    shelf(false).unwrap_or_else(|failure| panic!("{failure}"));
    let failure = shelf(true).expect_err("it is not there yet");
    assert_eq!(failure.violated(), "shelf/1 is not sound: 1 are counted, 0 are there");
}

#[derive(Default, Actor)]
struct Till {
    paid: u32,
}

#[actor]
impl Till {
    pub async fn pay(&mut self, cx: &Cx) -> Result<u32, String> {
        if cx.maybe("the provider refuses") {
            return Err("refused".to_owned());
        }
        self.paid += 1;
        Ok(self.paid)
    }
}

#[explore(Till, schedules = 50)]
async fn what_is_not_up_to_an_actor_is_chosen(world: World) {
    let till = TillRef::of(&world, "1");
    world.client(async move { drop(till.pay().await) });
    world.sometimes("the provider refuses", |now| now.all::<Till>().any(|(_, till)| till.paid == 0));
    world.sometimes("the provider takes it", |now| now.all::<Till>().any(|(_, till)| till.paid == 1));
}

#[test]
fn what_was_chosen_for_an_actor_is_told_by_its_name() {
    let failure = Explore::of(|builder| builder.register::<Till>()).check(|world| async move {
        let till = TillRef::of(&world, "1");
        world.client(async move { assert_eq!(till.pay().await, Ok(1)) });
    });
    let failure = failure.expect_err("the provider may refuse");
    let line = "choice 1             the provider refuses: yes  before  choice 0";
    assert!(failure.to_string().contains(line), "{failure}");
    assert!(failure.mermaid().contains(": the provider refuses#58; yes"), "{}", failure.mermaid());
    assert!(failure.replay().ends_with(":choice 1"), "{failure}");
}

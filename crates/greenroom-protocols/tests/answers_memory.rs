//! What a kept answer costs its partition's owner in memory, counted by the allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use greenroom_protocols::delivery::*;
use greenroom_protocols::reminders::Wall;
use greenroom_protocols::time::Timestamp;

/// The system's allocator, with a count of what is taken.
struct Counting;

static TAKEN: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all is done by the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        TAKEN.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        TAKEN.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

type Machine = Partition<u8, [u8; 64]>;

/// Does what the partition wants, until it wants nothing more; the answers that were recorded.
fn carry_out(machine: &mut Machine, event: Event<u8, [u8; 64]>) -> usize {
    let (now, mut events, mut recorded) = (Timestamp::default(), vec![event], 0);
    while let Some(event) = events.pop() {
        let mut out = Vec::new();
        machine.handle(now, event, &mut out);
        for action in out {
            events.extend(match action {
                Action::Load(actor) => Some(Event::Loaded { actor, presence: None, queue: Vec::new() }),
                Action::Run { turn, .. } => {
                    let effects = Effects { answer: Some([7; 64]), answer_bytes: 64, ..Effects::default() };
                    Some(Event::Ended { turn, outcome: Outcome::Done(effects.into()) })
                }
                Action::Commit(commit) => {
                    recorded += commit.writes.iter().filter(|write| matches!(write, Write::Record { .. })).count();
                    Some(Event::Committed(commit.id))
                }
                // Two keys have one mark now and then.
                Action::Recall { key, numbers } => Some(Event::Recalled { key, numbers, found: Ok(None) }),
                Action::Answer { .. } => None,
                other => panic!("{other:?}"),
            });
        }
    }
    recorded
}

#[test]
fn a_kept_answer_takes_twenty_four_bytes_at_most_and_seventy_two_where_each_is_another_principals() {
    let taken = bytes_of_each(|n| format!("wallet/somebody#somebody\n0123456789abcdef-{n}"));
    println!("{taken:.1} bytes of memory a kept answer");
    assert!(taken <= 24.0, "{taken}");
    let taken = bytes_of_each(|n| format!("wallet/somebody#number {n}\n0123456789abcdef"));
    println!("{taken:.1} bytes of memory a kept answer of one who has no other");
    assert!(taken <= 72.0, "{taken}");
}

/// What a kept answer takes, where each is kept under what `kept_under` says.
fn bytes_of_each(kept_under: impl Fn(u64) -> String) -> f64 {
    let owner = Ownership { partition: PartitionId(0), epoch: Epoch(1) };
    let now = (Timestamp::default(), Wall::default());
    let mut machine = Machine::recover(Config::default(), owner, Recovered::empty(Life(1)), now, &mut Vec::new());
    let mut recorded = 0;
    let mut call = |machine: &mut Machine, n: u64| {
        let call = Some(Call { key: kept_under(n), request: n, as_written: None, recorded: true });
        let envelope = Envelope { from: None, to: 1, birth: None, creates: false, call, body: [0; 64] };
        recorded += carry_out(machine, Event::Called(envelope.into()));
    };
    call(&mut machine, 0);
    let before = TAKEN.load(Ordering::Relaxed);
    (1..=ANSWERS).for_each(|n| call(&mut machine, n));
    let taken = (TAKEN.load(Ordering::Relaxed) - before) as f64 / ANSWERS as f64;
    assert_eq!((recorded as u64, machine.kept().0 as u64), (ANSWERS + 1, ANSWERS + 1));
    taken
}

const ANSWERS: u64 = 100_000;

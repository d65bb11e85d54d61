mod budget;
mod noise;
mod rows;
mod sets;
mod traces;

use super::*;

const PLAYER: KindId = KindId(3);
const B: Place = Place::away(0);
const C: Place = Place::away(1);

fn at(millis: u64) -> Timestamp {
    Timestamp::from_nanos(1_000_000_000 + millis * 1_000_000)
}

/// Random words, the same for each seed.
struct Dice(u64);

impl Dice {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0 ^ 0x5EED_0000_0000_0000)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.word() % bound
    }
}

fn message(actor: u64, place: Place) -> Sample {
    Sample { actor, kind: PLAYER, place, weight: 1.0 }
}

fn wishes(flows: &mut Flows, actor: u64, now: Timestamp) -> Vec<Place> {
    let mut out = Vec::new();
    flows.wishes(actor, now, &mut out);
    out.iter().map(|wish| wish.to).collect()
}

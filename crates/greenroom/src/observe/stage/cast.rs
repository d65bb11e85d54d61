//! Which actors are told of a cluster's stage: one half are the hottest; the other half are ends of the heaviest edges, so that these
//! can be drawn even where all actors have about as much to do.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::word::{HotWord, StageWord};

/// An edge, by the hashes of its ends in their order: what the first has told of it, and what the second has.
pub(super) struct Edge {
    pub(super) ends: (u64, u64),
    pub(super) told: [f64; 2],
}

/// Who may be told; an actor stands with the index of its node.
pub(crate) struct Cast<'a> {
    /// Each pair of actors once, the heaviest first.
    pub(super) edges: Vec<Edge>,
    hot: Vec<(usize, &'a HotWord)>,
    top: usize,
    /// How many hot actors nodes know beside those that they have told.
    untold: u64,
}

/// The actors that are told.
pub(super) struct Told<'a> {
    pub(super) hot: Vec<(usize, &'a HotWord)>,
    /// How many hot actors are known beside them.
    pub(super) left_out: u64,
}

impl<'a> Cast<'a> {
    /// Of what nodes have said, for at most `top` actors.
    pub(crate) fn of(said: &[(&str, &'a StageWord)], top: usize) -> Self {
        let mut hot: Vec<(usize, &HotWord)> = Vec::new();
        let mut edges: BTreeMap<(u64, u64), [f64; 2]> = BTreeMap::new();
        for (node, (_, word)) in said.iter().enumerate() {
            hot.extend(word.hot.iter().map(|hot| (node, hot)));
            for &(actor, partner, rate) in word.edges.iter().filter(|(actor, partner, _)| actor != partner) {
                let told = edges.entry((actor.min(partner), actor.max(partner))).or_default();
                told[usize::from(actor > partner)] += rate;
            }
        }
        hottest_first(&mut hot);
        let mut edges: Vec<Edge> = edges.into_iter().map(|(ends, told)| Edge { ends, told }).collect();
        edges.sort_by(|a, b| b.rate().total_cmp(&a.rate()));
        let untold = said.iter().map(|(_, word)| word.hot_left_out).sum();
        Self { edges, hot, top, untold }
    }

    /// Ends of the heaviest edges that no node has named: they are asked for.
    pub(crate) fn nameless(&self) -> Vec<u64> {
        self.chosen(|_| true).others.into_iter().collect()
    }

    /// Who is told, of those that were named at first and of those that each node has said when it was `asked`: the hottest first.
    pub(super) fn told(&self, asked: &[&'a [HotWord]]) -> Told<'a> {
        let mut seats: HashMap<u64, (usize, &HotWord)> = HashMap::new();
        for (node, said) in asked.iter().enumerate() {
            seats.extend(said.iter().map(|seat| (seat.hash, (node, seat))));
        }
        let Chosen { hot, others } = self.chosen(|hash| seats.contains_key(hash));
        let hot = hot.into_iter().map(|at| self.hot[at]);
        let mut hot: Vec<_> = hot.chain(others.iter().filter_map(|hash| seats.get(hash).copied())).collect();
        hottest_first(&mut hot);
        let counted = hot.iter().filter(|(_, hot)| hot.turns > 0.0).count() as u64;
        Told { hot, left_out: (self.hot.len() as u64 + self.untold).saturating_sub(counted) }
    }

    /// The hottest; then the ends of the heaviest edges whose ends are hot or else `named`; and where room is left again the hottest.
    fn chosen(&self, named: impl Fn(&u64) -> bool) -> Chosen {
        let mut places: HashMap<u64, usize> = HashMap::with_capacity(self.hot.len());
        for (at, (_, hot)) in self.hot.iter().enumerate() {
            // Some actors are on several nodes.
            places.entry(hot.hash).or_insert(at);
        }
        let half = self.top.div_ceil(2).min(self.hot.len());
        let mut chosen = Chosen { hot: (0..half).collect(), others: BTreeSet::new() };
        for Edge { ends: (one, other), .. } in &self.edges {
            if chosen.len() + 2 > self.top {
                break;
            }
            let ends = [one, other];
            if ends.iter().all(|end| places.contains_key(end) || named(end)) {
                for end in ends {
                    match places.get(end) {
                        Some(at) => _ = chosen.hot.insert(*at),
                        None => _ = chosen.others.insert(*end),
                    }
                }
            }
        }
        for at in half..self.hot.len() {
            if chosen.len() == self.top {
                break;
            }
            chosen.hot.insert(at);
        }
        chosen
    }
}

/// Who is chosen: places among those that nodes have named at first, and the hashes of others.
struct Chosen {
    hot: BTreeSet<usize>,
    others: BTreeSet<u64>,
}

impl Chosen {
    fn len(&self) -> usize {
        self.hot.len() + self.others.len()
    }
}

impl Edge {
    /// The heavier of what its ends say: both may have counted the same messages.
    fn rate(&self) -> f64 {
        self.told[0].max(self.told[1])
    }
}

fn hottest_first(hot: &mut [(usize, &HotWord)]) {
    hot.sort_by(|(_, a), (_, b)| b.turns.total_cmp(&a.turns));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hot(hash: u64, turns: f64) -> HotWord {
        HotWord { hash, actor: format!("player/{hash}"), turns, ..HotWord::default() }
    }

    fn names(told: &Told<'_>) -> Vec<u64> {
        told.hot.iter().map(|(_, hot)| hot.hash).collect()
    }

    /// Two nodes whose hot actors are 0 to 9, each less than the one before; nobody of them talks with another one.
    fn nodes() -> [StageWord; 2] {
        [0, 1].map(|odd| StageWord {
            hot: (0..5).map(|n| hot(2 * n + odd, (10 - n) as f64)).collect(),
            edges: (0..50).map(|n| (100 + n, 200 + n, (100 - n) as f64)).filter(|(n, ..)| n % 2 == odd).collect(),
            ..StageWord::default()
        })
    }

    #[test]
    fn half_of_those_told_are_the_hottest_and_half_are_the_ends_of_the_heaviest_edges() {
        let [a, b] = nodes();
        let said = [("a", &a), ("b", &b)];
        let cast = Cast::of(&said, 8);
        assert_eq!(cast.nameless(), [100, 101, 200, 201], "the two heaviest pairs, whoever has told them");
        let (on_a, on_b) = ([hot(100, 0.5), hot(201, 0.0)], [hot(101, 0.5), hot(200, 0.0)]);
        let told = cast.told(&[&on_a, &on_b]);
        assert_eq!(names(&told), [0, 1, 2, 3, 100, 101, 200, 201]);
        assert_eq!([told.hot[6].0, told.hot[7].0], [1, 0], "each is where it was found");
    }

    #[test]
    fn a_pair_of_which_one_has_gone_takes_no_place_from_the_hot() {
        let [a, b] = nodes();
        let said = [("a", &a), ("b", &b)];
        let cast = Cast::of(&said, 8);
        let (on_a, on_b) = ([hot(100, 0.5)], [hot(101, 0.5), hot(201, 0.0)]);
        let told = cast.told(&[&on_a, &on_b]);
        assert_eq!(names(&told), [0, 1, 2, 3, 4, 5, 101, 201]);
        assert_eq!(told.left_out, 4 - 1, "of ten that are hot, and one whose turns are counted");
        assert_eq!(names(&cast.told(&[])), [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn an_actor_that_is_on_several_nodes_is_told_of_each() {
        let word = StageWord { hot: vec![hot(1, 9.0)], ..StageWord::default() };
        assert_eq!(names(&Cast::of(&[("a", &word), ("b", &word)], 8).told(&[])), [1, 1]);
    }
}

//! Which actors go, of what two nodes offer each other (ActOp §4.2, Algorithm 1, with what [the module](super) adds).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::Checks;
use super::balance::{Measure, Scales, Way, Weight};
use super::message::{Candidate, Side, Tie};
use super::side::{set_wishes, weight_of, wishes, worth};

/// What is chosen from.
pub(super) struct Question<'a> {
    /// The proposer's side.
    pub(super) theirs: &'a Side,
    /// The chooser's.
    pub(super) ours: &'a Side,
    /// Whether an actor of this hash is at the chooser.
    pub(super) hosts: &'a dyn Fn(u64) -> bool,
    /// The two nodes' loads.
    pub(super) scales: Scales,
    pub(super) checks: Checks,
}

/// What was chosen.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Choice {
    /// In order.
    pub(super) steps: Vec<Chosen>,
    /// The proposer's candidates that were refused as stale.
    pub(super) stale: Vec<u64>,
}

/// One actor that goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Chosen {
    pub(super) way: Way,
    /// Its index among the candidates of its side.
    pub(super) index: usize,
    /// What its move takes off the flow between nodes, after those before it.
    pub(super) score: i64,
}

impl Question<'_> {
    /// Chooses, and leaves on the scales what is chosen.
    pub(super) fn choose(mut self) -> (Choice, Scales) {
        let mut board = Board::new(&self);
        loop {
            if let Some(seat) = board.best(&self.scales) {
                board.choose(seat, &mut self.scales);
            } else if let Some(set) = board.best_set(&self.scales) {
                set.into_iter().for_each(|seat| board.choose(seat, &mut self.scales));
            } else {
                break;
            }
        }
        if let Some((way, measure)) = self.scales.acts() {
            board.balance(way, measure, &mut self.scales);
        }
        (Choice { steps: board.steps, stale: board.stale }, self.scales)
    }
}

/// Whether less than half of its known edges that should lead to a node do.
pub(super) fn is_stale(ties: &[Tie], hosts: impl Fn(u64) -> bool) -> bool {
    let all: u64 = ties.iter().map(|tie| u64::from(tie.flow)).sum();
    let there: u64 = ties.iter().filter(|tie| hosts(tie.partner)).map(|tie| u64::from(tie.flow)).sum();
    there * 2 < all
}

/// The candidates of both sides, the proposer's first.
struct Board<'a> {
    candidates: Vec<&'a Candidate>,
    /// How many of them are the proposer's.
    theirs: usize,
    scores: Vec<i64>,
    /// Those that are chosen or refused.
    gone: Vec<bool>,
    edges: Vec<Vec<(usize, u32)>>,
    sets: Vec<Vec<usize>>,
    /// Those of either side that wish to go, the best first.
    ranks: [BTreeSet<(Reverse<i64>, usize)>; 2],
    steps: Vec<Chosen>,
    stale: Vec<u64>,
    checks: Checks,
}

impl<'a> Board<'a> {
    fn new(question: &Question<'a>) -> Self {
        let Question { theirs, ours, checks, .. } = *question;
        let candidates: Vec<&Candidate> = theirs.candidates.iter().chain(&ours.candidates).collect();
        let split = theirs.candidates.len();
        let ours_at = |index: u16| usize::from(index) + split;
        let their_sets = theirs.sets.iter().map(|set| set.iter().map(|index| usize::from(*index)).collect());
        let our_sets = ours.sets.iter().map(|set| set.iter().map(|index| ours_at(*index)).collect());
        let mut board = Self {
            theirs: split,
            scores: candidates.iter().map(|candidate| candidate.score).collect(),
            gone: vec![false; candidates.len()],
            edges: edges(theirs, ours, &candidates),
            sets: their_sets.chain(our_sets).collect(),
            ranks: Default::default(),
            steps: Vec::new(),
            stale: Vec::new(),
            candidates,
            checks,
        };
        for seat in 0..split {
            let Candidate { hash, ties, .. } = board.candidates[seat];
            if checks.stale && is_stale(ties, question.hosts) {
                board.gone[seat] = true;
                board.stale.push(*hash);
            } else if (question.hosts)(*hash) {
                // It is here already: the offer is older than its move.
                board.gone[seat] = true;
            }
        }
        (0..board.candidates.len()).for_each(|seat| board.rank(seat, true));
        board
    }

    fn way(&self, seat: usize) -> Way {
        if seat < self.theirs { Way::Take } else { Way::Give }
    }

    fn weight(&self, seats: &[usize]) -> Weight {
        weight_of(seats.iter().map(|seat| self.candidates[*seat].cpu))
    }

    /// Enters a candidate in the ranks if it wishes to go, or takes it out.
    fn rank(&mut self, seat: usize, enters: bool) {
        let Candidate { flow, ready, cost, .. } = *self.candidates[seat];
        let score = self.scores[seat];
        let ranks = &mut self.ranks[usize::from(seat < self.theirs)];
        let entry = (Reverse(worth(score, i64::from(cost))), seat);
        if !enters {
            ranks.remove(&entry);
        } else if ready && !self.gone[seat] && wishes(score, flow) {
            ranks.insert(entry);
        }
    }

    /// The candidate of either side that gains most for its cost, of those that the balance lets go.
    fn best(&self, scales: &Scales) -> Option<usize> {
        let best_of = |ranks: &BTreeSet<(Reverse<i64>, usize)>| {
            let mut ranked = ranks.iter().take(LOOK_AT_MAX);
            ranked.find(|(_, seat)| scales.fits(self.way(*seat), self.weight(&[*seat]))).copied()
        };
        self.ranks.iter().filter_map(best_of).min().map(|(_, seat)| seat)
    }

    /// The set that gains most for its cost, of those that wish to go and that the balance lets go.
    fn best_set(&self, scales: &Scales) -> Option<Vec<usize>> {
        let wishing = self.sets.iter().filter(|set| set.iter().all(|seat| !self.gone[*seat])).filter_map(|set| {
            let sum =
                |part: fn(&Candidate) -> u32| set.iter().map(|seat| i64::from(part(self.candidates[*seat]))).sum();
            let (gain, cost) = (self.gain(set), sum(|candidate| candidate.cost));
            let goes = set_wishes(gain, sum(|candidate| candidate.flow), cost)
                && scales.fits(self.way(set[0]), self.weight(set));
            goes.then_some((worth(gain, cost), set))
        });
        wishing.max_by_key(|(worth, set)| (*worth, Reverse(set[0]))).map(|(_, set)| set.clone())
    }

    /// What a set gains by going, without what it says to itself.
    fn gain(&self, set: &[usize]) -> i64 {
        let members: BTreeSet<usize> = set.iter().copied().collect();
        let scores: i64 = set.iter().map(|seat| self.scores[*seat]).sum();
        let inside = |seat: &usize| self.edges[*seat].iter().filter(|(other, _)| members.contains(other));
        // Each edge is known to both of its ends.
        scores + set.iter().flat_map(inside).map(|(_, flow)| i64::from(*flow)).sum::<i64>()
    }

    /// Lets a candidate go, after which its partners gain, or lose, by following it.
    fn choose(&mut self, seat: usize, scales: &mut Scales) {
        assert!(!self.gone[seat], "an actor is chosen that is chosen or refused already");
        self.rank(seat, false);
        self.gone[seat] = true;
        let way = self.way(seat);
        scales.shift(way, self.weight(&[seat]));
        let index = if way == Way::Take { seat } else { seat - self.theirs };
        self.steps.push(Chosen { way, index, score: self.scores[seat] });
        if !self.checks.scores_change {
            return;
        }
        for (other, flow) in std::mem::take(&mut self.edges[seat]) {
            let twice = 2 * i64::from(flow);
            self.rank(other, false);
            self.scores[other] += if self.way(other) == way { twice } else { -twice };
            self.rank(other, true);
            // The two are on one side now, or on two for good.
            self.edges[other].retain(|(known, _)| *known != seat);
        }
    }

    /// Evens the two nodes out: whole sets, then single actors, those first that lose least for their load. Nobody goes alone whose
    /// set is light enough to go, even if there is no room for all of it at the end.
    fn balance(&mut self, way: Way, measure: Measure, scales: &mut Scales) {
        let most = scales.surplus(way, measure);
        let is_light = |set: &&Vec<usize>| scales.amount(way, measure, self.weight(set)) <= most;
        let sets = self.sets.iter().filter(|_| self.checks.whole_sets).filter(is_light);
        let together: BTreeSet<usize> = sets.flatten().copied().collect();
        while scales.surplus(way, measure) > 0 {
            let amount = |seats: &[usize]| scales.amount(way, measure, self.weight(seats));
            let goes = |seats: &[usize]| {
                let there = seats.iter().all(|seat| !self.gone[*seat] && self.way(*seat) == way);
                there && amount(seats) > 0 && scales.fits(way, self.weight(seats))
            };
            let sets = self.sets.iter().filter(|_| self.checks.whole_sets).filter(|set| goes(set));
            let set = sets.max_by_key(|set| (worth(self.gain(set), amount(set)), Reverse(set[0]))).cloned();
            let single = || {
                let alone = (0..self.candidates.len()).filter(|seat| !together.contains(seat));
                let singles = alone.filter(|seat| goes(&[*seat]));
                singles.max_by_key(|seat| (worth(self.scores[*seat], amount(&[*seat])), Reverse(*seat)))
            };
            let Some(seats) = set.or_else(|| single().map(|seat| vec![seat])) else { return };
            seats.into_iter().for_each(|seat| self.choose(seat, scales));
        }
    }
}

/// Who talks to whom, of all candidates. An edge that both ends know counts once.
fn edges(theirs: &Side, ours: &Side, candidates: &[&Candidate]) -> Vec<Vec<(usize, u32)>> {
    let split = theirs.candidates.len();
    let seats: BTreeMap<u64, usize> = candidates.iter().enumerate().map(|(seat, one)| (one.hash, seat)).collect();
    let mut pairs: BTreeMap<(usize, usize), u32> = BTreeMap::new();
    let mut add = |one: usize, other: usize, flow: u32| {
        let known = pairs.entry((one.min(other), one.max(other))).or_insert(0);
        *known = flow.max(*known);
    };
    for (side, first) in [(theirs, 0), (ours, split)] {
        for edge in &side.among {
            add(first + usize::from(edge.one), first + usize::from(edge.other), edge.flow);
        }
    }
    for (seat, candidate) in candidates.iter().enumerate() {
        for tie in &candidate.ties {
            if let Some(other) = seats.get(&tie.partner).filter(|other| (**other < split) != (seat < split)) {
                add(seat, *other, tie.flow);
            }
        }
    }
    let mut edges = vec![Vec::new(); candidates.len()];
    for ((one, other), flow) in pairs {
        edges[one].push((other, flow));
        edges[other].push((one, flow));
    }
    edges
}

/// How many of the best of a side are looked at for one that the balance lets go.
const LOOK_AT_MAX: usize = 16;

//! One node's machine.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::balance::{Measure, Scales, Way, Weight};
use super::books::Books;
use super::choice::{Choice, Question, is_stale};
use super::hand::{Hand, Offered, Progress, Stage, Step};
use super::message::{Accept, CANDIDATES_MAX, ExchangeId, Given, Message, Offer, Side};
use super::newcomers::Newcomers;
use super::pace::Pace;
use super::partners::Partners;
use super::side::{Index, Surplus};
use super::survey::{Load, Roster, Survey};
use super::{Action, Config, Event, OrderEnd, Outcome};
use crate::node::NodeId;
use crate::time::Timestamp;

/// The exchanges of one node: see the [module](super).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Exchange {
    me: NodeId,
    config: Config,
    /// Its own exchanges so far.
    number: u64,
    /// The exchange that it is in: one at most, while all rules are in force.
    hands: BTreeMap<ExchangeId, Hand>,
    partners: Partners,
    books: Books,
    newcomers: Newcomers,
    pace: Pace,
}

impl Exchange {
    /// That of the node `me`, which has no partners yet.
    pub fn new(me: NodeId, config: Config, now: Timestamp) -> Self {
        assert!(config.credit > 0, "without credit no actor moves");
        let partners = Partners::new(now + config.round);
        let (books, newcomers, pace) = (Books::default(), Newcomers::default(), Pace::default());
        Self { me, config, number: 0, hands: BTreeMap::new(), partners, books, newcomers, pace }
    }

    /// When [`handle`](Self::handle) next wants an [`Event::Tick`]; in the past if at once.
    pub fn deadline(&self) -> Option<Timestamp> {
        let visits = self.partners.visits_at().filter(|_| !self.is_busy());
        let hands = self.hands.values().flat_map(|hand| {
            let given_up = matches!(hand.stage, Stage::Proposing { given_up: true, .. });
            let ends_at = Some(hand.ends_at(self.me, &self.config)).filter(|at| *at < Timestamp::NEVER && !given_up);
            let next = hand.next(self.config.credit).map(|_| self.pace.free_at().min(hand.send_until(&self.config)));
            let waits = hand.steps.iter().any(|step| step.goes && step.progress == Progress::Waiting);
            let drops = (waits && hand.stage == Stage::Moving).then(|| hand.send_until(&self.config));
            [ends_at, next, drops]
        });
        hands.chain([visits]).flatten().min()
    }

    /// Whether it is in no exchange.
    pub fn is_idle(&self) -> bool {
        self.hands.is_empty()
    }

    /// Whether balance would send actors of this node to another one, as loaded as the survey says; who its actors are is not looked at.
    pub fn relieves(&self, survey: &Survey) -> bool {
        survey.others.keys().any(|node| self.partners.may(*node) && self.relieves_node(*node, survey))
    }

    fn relieves_node(&self, node: NodeId, survey: &Survey) -> bool {
        surplus(&self.scales(node, self.books.of(node, survey), survey), self.own(survey)).is_some()
    }

    /// Whether an actor that `from` sends by the exchange `x`, and that takes `cpu` µs a second, is to be taken: if it was
    /// promised, or if there is room. Else it goes back.
    pub fn admits(&self, from: NodeId, x: ExchangeId, hash: u64, cpu: u32, roster: &dyn Roster) -> bool {
        let promised = self.hands.get(&x).is_some_and(|hand| hand.with == from && hand.awaits(hash));
        promised || {
            let survey = roster.survey();
            let scales = self.scales(from, self.books.of(from, &survey), &survey);
            scales.fits(Way::Take, Weight { cpu: i64::from(cpu), activations: 1 })
        }
    }

    /// The actors that this node has promised to others and that have not gone, and where each is to go.
    #[doc(hidden)]
    pub fn promises(&self) -> impl Iterator<Item = (u64, NodeId)> {
        self.hands.values().flat_map(|hand| {
            let offered = match &hand.stage {
                Stage::Proposing { offered, given_up: false, .. } => Some(offered.keys().copied()),
                _ => None,
            };
            let steps = hand.steps.iter().filter(|step| step.goes && step.progress != Progress::Ended);
            let all = offered.into_iter().flatten().chain(steps.map(|step| step.hash));
            all.map(|hash| (hash, hand.with))
        })
    }

    /// The nodes that it exchanges with, and since when.
    #[doc(hidden)]
    pub fn locks(&self) -> impl Iterator<Item = (ExchangeId, NodeId, Timestamp)> {
        self.hands.values().map(|hand| (hand.x, hand.with, hand.begun))
    }

    /// Applies `event` at `now`, appending what must happen to `out`, in order. Never fails. The roster is asked at a tick and
    /// when something was offered or accepted; it must show nobody that the machine was told has gone.
    pub fn handle(&mut self, now: Timestamp, event: Event, roster: &dyn Roster, out: &mut Vec<Action>) {
        self.go_on(now, out);
        match event {
            Event::Partners { view, may } => self.meet(now, view, may, out),
            Event::Received { from, message } => {
                // Out of bounds: from no node of this version.
                if message.check().is_ok() {
                    self.received(now, from, message, roster, out);
                }
            }
            Event::Settled { x, hash, end } => self.settled(now, x, hash, end),
            Event::Arrived { x, hash } => self.arrived(now, x, hash),
            Event::Tick { random } => self.visit(now, random, roster, out),
        }
        self.go_on(now, out);
        let checks = self.config.checks;
        let one = !(checks.one_at_a_time && checks.promises && checks.in_hand) || self.hands.len() <= 1;
        assert!(one, "{} is in two exchanges", self.me);
    }

    fn meet(&mut self, now: Timestamp, view: u64, mut may: BTreeSet<NodeId>, out: &mut Vec<Action>) {
        may.remove(&self.me);
        self.partners.set(now, view, may, &self.config);
        self.books.retain(|node| self.partners.may(node));
        for hand in self.hands.values_mut().filter(|hand| !self.partners.may(hand.with)) {
            hand.close();
            hand.expect_nothing();
        }
        let gone = |hand: &Hand| hand.undecided() == 0 && !self.partners.may(hand.with);
        let gone: Vec<ExchangeId> = self.hands.values().filter(|hand| gone(hand)).map(|hand| hand.x).collect();
        gone.into_iter().for_each(|x| self.end(x, Outcome::Gone, out));
    }

    fn received(&mut self, now: Timestamp, from: NodeId, message: Message, roster: &dyn Roster, out: &mut Vec<Action>) {
        let x = message.x();
        match message {
            Message::Offer(offer) if x.by == from && self.partners.may(from) => {
                self.offered(now, from, &offer, roster, out);
            }
            Message::Offer(_) => {}
            Message::Accept(accept) => self.accepted(now, from, accept, roster, out),
            Message::Busy { wait, .. } => {
                if self.proposal(x, from).is_some() {
                    self.partners.skip_busy(now, from, wait, &self.config);
                    self.end(x, Outcome::Busy, out);
                }
            }
            Message::Confirm { stale, .. } => {
                if let Some(hand) = self.hands.get_mut(&x).filter(|hand| hand.with == from && x.by == from) {
                    for hash in stale {
                        let withheld = hand.withhold(hash).map(|step| step.epoch);
                        out.extend(withheld.map(|epoch| Action::Clear { hash, epoch, toward: from }));
                    }
                    hand.stage = Stage::Moving;
                }
            }
            Message::Done { sent, .. } => {
                let hand = self.hands.get_mut(&x).filter(|hand| hand.with == from);
                if let Some(hand) = hand.filter(|hand| !matches!(hand.stage, Stage::Proposing { .. })) {
                    // Who is through has confirmed, even if that was lost.
                    hand.stage = Stage::Moving;
                    hand.done(now, sent);
                }
            }
        }
    }

    /// Whether it takes part in no other exchange.
    fn is_busy(&self) -> bool {
        let checks = self.config.checks;
        self.hands.values().any(|hand| match &hand.stage {
            Stage::Proposing { given_up, .. } => !given_up,
            _ if checks.promises => true,
            _ => hand.steps.iter().any(|step| step.goes && step.progress == Progress::Waiting),
        })
    }

    fn offered(&mut self, now: Timestamp, from: NodeId, offer: &Offer, roster: &dyn Roster, out: &mut Vec<Action>) {
        let (x, checks) = (offer.x, self.config.checks);
        if !self.partners.is_new(from, x.number) && checks.numbers || self.hands.contains_key(&x) {
            return;
        }
        self.books.hear(now, from, offer.side.load);
        let own = self.hands.values().find(|hand| hand.with == from && matches!(hand.stage, Stage::Proposing { .. }));
        if let Some(own) = own.map(|hand| hand.x)
            && (from < self.me || !checks.lower_stands)
        {
            self.end(own, Outcome::Yielded, out);
        }
        let quiet = self.partners.quiet_until();
        if quiet > now || (self.is_busy() && checks.one_at_a_time) {
            let locks = self.hands.values().map(|hand| hand.lock_until(self.me, &self.config));
            let wait = locks.chain([quiet]).max().unwrap_or(now).since(now).min(self.config.send_for);
            return out.push(Action::Send { to: from, message: Message::Busy { x, wait } });
        }
        let (survey, hosts) = (roster.survey(), |hash| roster.hosts(hash));
        self.look_for_newcomers(&survey);
        let load = self.own(&survey);
        let scales = self.scales(from, offer.side.load, &survey);
        let ours = self.side(from, &scales, load, &survey);
        let question = Question { theirs: &offer.side, ours: &ours, hosts: &hosts, scales, checks };
        let (choice, _) = question.choose();
        let (steps, accept) = agreement(x, &offer.side, &ours, choice);
        out.push(Action::Send { to: from, message: Message::Accept(accept) });
        if !steps.is_empty() {
            let stage = if checks.confirm { Stage::Granting } else { Stage::Moving };
            self.hands.insert(x, Hand::new(x, from, now, stage, steps));
        }
    }

    /// What this node would send to `node`, with what balance lets go.
    fn side(&self, node: NodeId, scales: &Scales, load: Load, survey: &Survey) -> Side {
        Index::new(survey, self.config.checks).side(node, load, surplus(scales, load))
    }

    fn own(&self, survey: &Survey) -> Load {
        if self.config.checks.books { self.books.own(survey.load) } else { survey.load.load }
    }

    /// This node and another one, whose load is as given.
    fn scales(&self, node: NodeId, theirs: Load, survey: &Survey) -> Scales {
        let Config { tolerance, checks, .. } = self.config;
        let own = self.own(survey);
        let others = survey
            .others
            .keys()
            .filter(|other| **other != node && **other != self.me)
            .map(|other| self.books.of(*other, survey));
        let filling = [self.me, node].map(|node| checks.filling && self.newcomers.contains(node));
        Scales::new([own, theirs], others, tolerance, checks).filling(filling)
    }

    fn look_for_newcomers(&mut self, survey: &Survey) {
        let others = survey.others.keys().filter(|other| **other != self.me);
        let mut counts: BTreeMap<NodeId, u64> =
            others.map(|other| (*other, self.books.of(*other, survey).activations)).collect();
        counts.insert(self.me, self.own(survey).activations);
        self.newcomers.look(&counts, self.config.tolerance);
    }

    /// The exchange in which an offer of this node to `from` may be answered.
    fn proposal(&self, x: ExchangeId, from: NodeId) -> Option<&Hand> {
        let hand = self.hands.get(&x).filter(|hand| hand.with == from)?;
        matches!(hand.stage, Stage::Proposing { .. }).then_some(hand)
    }

    fn accepted(&mut self, now: Timestamp, from: NodeId, accept: Accept, roster: &dyn Roster, out: &mut Vec<Action>) {
        let x = accept.x;
        let Some(Hand { stage: Stage::Proposing { offered, surplus, .. }, .. }) = self.proposal(x, from) else {
            // It was given up, or is not of this node.
            return;
        };
        let (offered, surplus) = (offered.clone(), *surplus);
        self.books.hear(now, from, accept.load);
        for hash in &accept.stale {
            let cleared = offered.get(hash).map(|actor| actor.epoch);
            out.extend(cleared.map(|epoch| Action::Clear { hash: *hash, epoch, toward: from }));
        }
        let chosen = accept.take.len() + accept.give.len();
        let fruitless = if surplus { chosen == 0 } else { chosen * 10 < offered.len() };
        if fruitless && self.config.checks.fruitless {
            self.partners.skip_fruitless(now, from, &self.config);
        } else {
            self.partners.forgive(from);
            if surplus || offered.len() >= CANDIDATES_MAX || chosen >= MANY {
                // There was more than one exchange takes, or there may be.
                self.partners.hurry(now);
            }
        }
        let is_offered = accept.take.iter().all(|hash| offered.contains_key(hash));
        if chosen == 0 || !is_offered {
            return self.end(x, Outcome::Nothing, out);
        }
        let mut stale = Vec::new();
        let keeps = |given: &Given| !self.config.checks.stale || !is_stale(&given.ties, |hash| roster.hosts(hash));
        let steps = merged(&accept, &offered, |given| {
            let keeps = keeps(given);
            stale.extend((!keeps).then_some(given.hash));
            keeps
        });
        if let Some(hand) = self.hands.get_mut(&x) {
            (hand.stage, hand.steps) = (Stage::Moving, steps);
        }
        out.push(Action::Send { to: from, message: Message::Confirm { x, stale } });
    }

    fn settled(&mut self, now: Timestamp, x: ExchangeId, hash: u64, end: OrderEnd) {
        // An exchange that is over has left its orders to the directory.
        let Some(hand) = self.hands.get_mut(&x) else { return };
        let cpu = i64::from(hand.settled(hash, end, &self.config).cpu);
        if end != OrderEnd::Moved {
            self.books.note(now, x, hand.with, cpu, 1);
        }
    }

    fn arrived(&mut self, now: Timestamp, x: ExchangeId, hash: u64) {
        let Some(hand) = self.hands.get_mut(&x) else { return };
        if let Some(cpu) = hand.arrived(hash).map(|step| i64::from(step.cpu)) {
            self.books.note(now, x, hand.with, cpu, 1);
            // Who sends has confirmed, even if that was lost.
            hand.stage = Stage::Moving;
        }
    }

    /// Orders what may be ordered, and ends what is over.
    fn go_on(&mut self, now: Timestamp, out: &mut Vec<Action>) {
        let names: Vec<ExchangeId> = self.hands.keys().copied().collect();
        for x in names {
            self.order(now, x, out);
            let Some(hand) = self.hands.get_mut(&x) else { continue };
            if hand.has_sent() && !hand.told {
                hand.tell(now);
                let message = Message::Done { x, sent: hand.moved };
                out.push(Action::Send { to: hand.with, message });
            }
            let through = hand.told && hand.has_received();
            let late = now >= hand.ends_at(self.me, &self.config);
            match &mut hand.stage {
                Stage::Proposing { given_up, .. } if late => {
                    if self.config.checks.in_hand {
                        let with = hand.with;
                        self.end(x, Outcome::Silent, out);
                        if self.config.checks.fruitless {
                            self.partners.skip_fruitless(now, with, &self.config);
                        }
                    } else {
                        *given_up = true;
                    }
                }
                _ if through => self.end(x, Outcome::Done, out),
                _ if late => self.end(x, Outcome::Overdue, out),
                _ => {}
            }
        }
    }

    fn order(&mut self, now: Timestamp, x: ExchangeId, out: &mut Vec<Action>) {
        let Config { credit, checks, .. } = self.config;
        let credit = if checks.credit { credit } else { usize::MAX };
        let Some(hand) = self.hands.get_mut(&x) else { return };
        let until = hand.send_until(&self.config);
        if now >= until && hand.stage == Stage::Moving {
            hand.close();
        }
        while let Some(index) = hand.next(credit).filter(|_| self.pace.free_at() <= now) {
            let step = &mut hand.steps[index];
            let Step { hash, epoch, cpu, bytes, .. } = *step;
            assert!(step.goes && step.progress == Progress::Waiting, "an actor is ordered twice");
            step.progress = Progress::Ordered;
            self.pace.spend(now, bytes, &self.config);
            self.books.note(now, x, hand.with, -i64::from(cpu), -1);
            let until = if checks.deadlines { until } else { Timestamp::NEVER };
            out.push(Action::Move { hash, epoch, to: hand.with, until, x });
        }
        assert!(hand.undecided() <= credit, "more orders are out than there is credit for");
    }

    fn end(&mut self, x: ExchangeId, how: Outcome, out: &mut Vec<Action>) {
        if let Some(Hand { with, moved, arrived, .. }) = self.hands.remove(&x) {
            out.push(Action::Ended { x, with, moved, arrived, how });
        }
    }

    /// Begins a round if it is time, and makes an offer to the next partner of it that there is something for.
    fn visit(&mut self, now: Timestamp, random: u64, roster: &dyn Roster, out: &mut Vec<Action>) {
        let due = self.partners.visits_at().is_some_and(|at| at <= now);
        if !due || self.is_busy() {
            return;
        }
        let survey = roster.survey();
        self.look_for_newcomers(&survey);
        if self.partners.begins_round() {
            let jitter = (u128::from(random) * self.config.jitter.as_nanos()) >> 64;
            let next = now + self.config.round + Duration::from_nanos(jitter as u64);
            let visits = self.ranked(now, &survey);
            self.partners.begin(now, visits, next, &self.config);
        }
        while let Some(node) = self.partners.next_visit() {
            let load = self.own(&survey);
            let scales = self.scales(node, self.books.of(node, &survey), &survey);
            let side = self.side(node, &scales, load, &survey);
            if side.candidates.is_empty() {
                continue;
            }
            self.number += 1;
            let x = ExchangeId { by: self.me, number: self.number };
            let actors = side.candidates.iter().map(|one| {
                let (epoch, cpu, bytes) = (one.epoch, one.cpu, one.bytes);
                (one.hash, Offered { epoch, cpu, bytes })
            });
            let (offered, surplus) = (actors.collect(), surplus(&scales, load).is_some());
            let stage = Stage::Proposing { offered, surplus, given_up: false };
            self.hands.insert(x, Hand::new(x, node, now, stage, Vec::new()));
            return out.push(Action::Send { to: node, message: Message::Offer(Offer { x, side }) });
        }
    }

    /// Whom to visit: the emptiest of those that balance would send actors to, then by the sum of wishes.
    fn ranked(&self, now: Timestamp, survey: &Survey) -> Vec<NodeId> {
        let wished = Index::new(survey, self.config.checks).wished();
        let relief = self.partners.willing(now).filter(|node| self.relieves_node(*node, survey));
        let relief = relief.min_by_key(|node| {
            let load = self.books.of(*node, survey);
            (load.share(), load.activations)
        });
        let mut ranked: Vec<(i64, NodeId)> = Vec::new();
        for node in self.partners.willing(now).filter(|node| Some(*node) != relief) {
            ranked.extend(wished.get(&node).map(|sum| (*sum, node)));
        }
        ranked.sort_by_key(|(sum, node)| (-sum, *node));
        relief.into_iter().chain(ranked.into_iter().map(|(_, node)| node)).collect()
    }
}

/// What balance sends from this node to the other one on the scales.
fn surplus(scales: &Scales, load: Load) -> Option<Surplus> {
    let (way, measure) = scales.acts()?;
    let amount = scales.surplus(way, measure).max(0);
    let amount = match measure {
        Measure::Share => amount.saturating_mul(i64::from(load.cores.max(1))),
        Measure::Count => amount,
    };
    (way == Way::Give).then_some(Surplus { measure, amount })
}

/// The chooser's steps, and what it tells the proposer.
fn agreement(x: ExchangeId, theirs: &Side, ours: &Side, choice: Choice) -> (Vec<Step>, Accept) {
    let (mut steps, mut take, mut give) = (Vec::new(), Vec::new(), Vec::new());
    for chosen in choice.steps {
        let goes = chosen.way == Way::Give;
        let one = if goes { &ours.candidates[chosen.index] } else { &theirs.candidates[chosen.index] };
        let (hash, epoch, cpu, bytes) = (one.hash, one.epoch, one.cpu, one.bytes);
        steps.push(Step { hash, epoch, goes, cpu, bytes, progress: Progress::Waiting });
        if goes {
            give.push(Given { hash, epoch, after: take.len() as u16, cpu, ties: one.ties.clone() });
        } else {
            take.push(hash);
        }
    }
    (steps, Accept { x, take, give, stale: choice.stale, load: ours.load })
}

/// The proposer's steps: who goes, and who comes and is kept, in the order of choice.
fn merged(accept: &Accept, offered: &BTreeMap<u64, Offered>, mut keeps: impl FnMut(&Given) -> bool) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut given = accept.give.iter().peekable();
    for place in 0..=accept.take.len() {
        while let Some(one) = given.next_if(|one| usize::from(one.after) <= place) {
            let (hash, epoch, cpu) = (one.hash, one.epoch, one.cpu);
            if keeps(one) {
                steps.push(Step { hash, epoch, goes: false, cpu, bytes: 0, progress: Progress::Waiting });
            }
        }
        if let Some(hash) = accept.take.get(place) {
            let Offered { epoch, cpu, bytes } = offered[hash];
            steps.push(Step { hash: *hash, epoch, goes: true, cpu, bytes, progress: Progress::Waiting });
        }
    }
    steps
}

/// Who has exchanged so many actors looks at once whether there are more: where they were at home, others will not be for long.
const MANY: usize = 32;

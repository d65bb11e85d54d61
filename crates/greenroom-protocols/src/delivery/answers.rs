//! Calls from outside: one execution for each idempotency key, and its answer for repeats.
//!
//! Recorded answers are entries of a log, in the order of their commits, and only that log has them. In memory is what finds
//! one again: its number under the *mark* of its key, a hash. A key whose mark is not there is new for certain; for one whose
//! mark is there the journal says. Every so often the marks of a run of answers are tied into a [`Bundle`], an entry of
//! another log: a new owner reads the bundles and the few answers behind the last one, and no other.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::holders::{Holders, holder};
use super::{Answer, Bundle, Call, Config, Kept, Recorded};
use crate::mix::mix;
use crate::reminders::Wall;
use crate::time::Timestamp;

/// What a partition knows of the answers that it keeps, for [`Config::answers_keep`], and of the calls that run.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Answers<M> {
    config: Config,
    /// When the ownership began, by both clocks: within it only the monotonic one counts.
    began: (Timestamp, Wall),
    /// For each answer its mark, and the lower half of its number.
    index: BTreeSet<u64>,
    /// As written, by their numbers.
    bundles: VecDeque<(u64, Bundle)>,
    /// The number of the last bundle.
    bundle_last: u64,
    /// What the next bundle will be.
    open: Bundle,
    /// When the first answer of it was recorded.
    open_since: Wall,
    bytes: u64,
    /// Whose they are. Those of bundles that do not say so are nobody's.
    holders: Holders,
    /// The same of the answers that will be in the next bundle.
    open_holders: Holders,
    /// Calls that wait or run, and the hashes of their requests.
    running: BTreeMap<String, u64>,
    /// What an earlier program has recorded, and until when it counts.
    earlier: BTreeMap<String, Recorded<M>>,
    earlier_until: Wall,
    /// Nothing is committed for the answers' own sake before this, as the journal has refused it.
    again_at: Timestamp,
}

/// What is known of a call's key.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Known<M> {
    New,
    Running,
    OtherRequest,
    Answered(Option<M>),
    /// One of the answers with these numbers may be its.
    Perhaps(Vec<u64>),
    /// Its answer could not be kept: it must not run.
    Refused(Answer<M>),
}

/// An answer whose commit is under way.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Draft<M> {
    pub(super) recorded: Recorded<M>,
    pub(super) bytes: u64,
}

impl<M: Clone> Answers<M> {
    pub(super) fn new(config: Config, kept: Kept<M>, waiting: Vec<Call>, began: (Timestamp, Wall)) -> Self {
        let Kept { bundles, bundle_last, loose, last, earlier, earlier_since } = kept;
        let tied = bundles.iter().flat_map(|(_, bundle)| (bundle.first..).zip(bundle.marks.iter().copied()));
        let untied = loose.iter().map(|loose| (loose.number, mark(&loose.key)));
        let (mut holders, mut open_holders) = (Holders::default(), Holders::default());
        for loose in &loose {
            open_holders.hold(holder(&loose.key), loose.bytes);
        }
        for (holder, bytes) in
            bundles.iter().flat_map(|(_, bundle)| bundle.holders.iter().copied()).chain(open_holders.all())
        {
            holders.hold(holder, bytes);
        }
        let mut answers = Self {
            config,
            began,
            holders,
            open_holders,
            index: tied.chain(untied).map(|(number, mark)| entry(mark, number)).collect(),
            bytes: bundles.iter().map(|(_, bundle)| bundle.bytes).chain(loose.iter().map(|loose| loose.bytes)).sum(),
            open: Bundle {
                first: last + 1 - loose.len() as u64,
                marks: loose.iter().map(|loose| mark(&loose.key)).collect(),
                at: loose.last().map(|loose| loose.at).unwrap_or_default(),
                bytes: loose.iter().map(|loose| loose.bytes).sum(),
                holders: Vec::new(),
            },
            open_since: loose.first().map(|loose| loose.at).unwrap_or_default(),
            bundles: bundles.into(),
            bundle_last,
            running: waiting.into_iter().map(|call| (call.key, call.request)).collect(),
            earlier: earlier.into_iter().map(|recorded| (recorded.key.clone(), recorded)).collect(),
            earlier_until: earlier_since + config.answers_keep,
            again_at: Timestamp::default(),
        };
        answers.open.at = answers.open.at.max(answers.bundles.back().map(|(_, bundle)| bundle.at).unwrap_or_default());
        answers
    }

    pub(super) fn look(&self, now: Timestamp, call: &Call) -> Known<M> {
        match self.running.get(&call.key) {
            Some(request) if !call.is_repeat_of(*request) => return Known::OtherRequest,
            Some(_) => return Known::Running,
            None if !call.recorded => return Known::New,
            None => {}
        }
        if let Some(earlier) = self.earlier.get(&call.key).filter(|_| self.wall(now) < self.earlier_until) {
            return match call.is_repeat_of(earlier.request) {
                true => Known::Answered(earlier.answer.clone()),
                false => Known::OtherRequest,
            };
        }
        let alike = self.alike(mark(&call.key));
        match alike.is_empty() {
            true => self.refusal(call).map_or(Known::New, Known::Refused),
            false => Known::Perhaps(alike),
        }
    }

    /// Why this call, whose key is new, must not run: its answer could not be kept, as no other is forgotten before its time.
    pub(super) fn refusal(&self, call: &Call) -> Option<Answer<M>> {
        if !call.recorded {
            return None;
        }
        let left = self.config.answers_bytes_max.saturating_sub(self.bytes);
        if left == 0 || self.alike(mark(&call.key)).len() >= ALIKE_MAX {
            return Some(Answer::Full);
        }
        let held = self.holders.of(holder(&call.key));
        (held >= left).then_some(Answer::OverShare { held, left })
    }

    pub(super) fn begin(&mut self, call: &Call) {
        let before = self.running.insert(call.key.clone(), call.request);
        assert_eq!(before, None, "a call begins that runs already");
    }

    pub(super) fn end(&mut self, key: &str) {
        self.running.remove(key);
    }

    /// An answer for a commit that is formed now.
    pub(super) fn draft(&self, now: Timestamp, call: &Call, answer: Option<M>, bytes: usize) -> Draft<M> {
        let bytes = (bytes + call.key.len()) as u64 + BYTES_BESIDE;
        // Clocks of owners differ: what is later in the log must not go before what is earlier.
        let at = self.wall(now).max(self.open.at);
        Draft { recorded: Recorded { key: call.key.clone(), request: call.request, at, answer }, bytes }
    }

    /// The number of the last answer that is committed.
    pub(super) fn last(&self) -> u64 {
        self.open.last()
    }

    /// The bundle that the next commit may write, and its number.
    pub(super) fn bundle(&self, now: Timestamp) -> Option<(u64, Bundle)> {
        let due = self.open.marks.len() >= self.config.bundle_len_max
            || self.open.bytes >= self.config.answers_bytes_max / BUNDLES_MIN
            || (!self.open.marks.is_empty() && self.open_until() <= self.wall(now));
        (due && self.again_at <= now).then(|| {
            let holders = self.open_holders.all().collect();
            (self.bundle_last + 1, Bundle { holders, ..self.open.clone() })
        })
    }

    /// At most `most` answers of an earlier program that the next commit may remove.
    pub(super) fn outdated(&self, now: Timestamp, most: usize) -> Vec<String> {
        let due = self.earlier_until <= self.wall(now) && self.again_at <= now;
        self.earlier.keys().take(if due { most } else { 0 }).cloned().collect()
    }

    /// Whether a commit is wanted though nothing else is.
    pub(super) fn has_work(&self, now: Timestamp) -> bool {
        self.bundle(now).is_some() || !self.outdated(now, 1).is_empty() || self.is_prunable(now)
    }

    /// Takes in what is committed.
    pub(super) fn committed(&mut self, bundle: Option<(u64, Bundle)>, drafts: Vec<Draft<M>>, outdated: &[String]) {
        if let Some((number, bundle)) = bundle {
            assert_eq!(number, self.bundle_last + 1, "a bundle does not follow the last one");
            assert_eq!(bundle.last(), self.open.last(), "a bundle leaves answers out, or has some that are not there");
            let first = bundle.last() + 1;
            self.open = Bundle { first, marks: Vec::new(), at: bundle.at, bytes: 0, holders: Vec::new() };
            self.open_holders = Holders::default();
            self.bundle_last = number;
            self.bundles.push_back((number, bundle));
        }
        for Draft { recorded: Recorded { key, at, .. }, bytes } in drafts {
            if self.open.marks.is_empty() {
                self.open_since = at;
            }
            let mark = mark(&key);
            self.open.marks.push(mark);
            self.index.insert(entry(mark, self.open.last()));
            (self.open.at, self.open.bytes, self.bytes) = (at, self.open.bytes + bytes, self.bytes + bytes);
            let whose = holder(&key);
            self.holders.hold(whose, bytes);
            self.open_holders.hold(whose, bytes);
        }
        for key in outdated {
            self.earlier.remove(key);
        }
    }

    /// Takes in that the journal has refused a commit which was not for any turn's sake.
    pub(super) fn refused(&mut self, now: Timestamp) {
        self.again_at = now + AGAIN_AFTER;
    }

    /// True if the time of a bundle of answers is over. It is to go once a commit is applied that began after this.
    pub(super) fn is_prunable(&self, now: Timestamp) -> bool {
        self.again_at <= now && self.prune_at().is_some_and(|at| at <= now)
    }

    /// Forgets one bundle of answers whose time is over: the numbers of the last answer and bundle that are to go.
    pub(super) fn prune(&mut self, now: Timestamp) -> Option<(u64, u64)> {
        self.prune_at().filter(|at| *at <= now)?;
        let (number, bundle) = self.bundles.pop_front()?;
        for (answer, mark) in (bundle.first..).zip(&bundle.marks) {
            self.index.remove(&entry(*mark, answer));
        }
        self.bytes -= bundle.bytes;
        for (holder, bytes) in &bundle.holders {
            self.holders.let_go(*holder, *bytes);
        }
        Some((bundle.last(), number))
    }

    /// When there will be something to [prune](Self::prune).
    fn prune_at(&self) -> Option<Timestamp> {
        let (_, first) = self.bundles.front()?;
        Some(self.clock(first.at + self.config.answers_keep))
    }

    /// When a commit will be wanted though nothing else is.
    pub(super) fn work_at(&self) -> Option<Timestamp> {
        let bundle = (!self.open.marks.is_empty()).then(|| self.open_until());
        let outdated = (!self.earlier.is_empty()).then_some(self.earlier_until);
        let wanted = bundle.into_iter().chain(outdated).map(|at| self.clock(at));
        wanted.chain(self.prune_at()).min().map(|at| at.max(self.again_at))
    }

    /// How many answers are kept, and how many bytes they are, about.
    pub(super) fn kept(&self) -> (usize, u64) {
        (self.index.len() + self.earlier.len(), self.bytes)
    }

    /// Answers go by bundles, so none may stay open for long.
    fn open_until(&self) -> Wall {
        self.open_since + self.config.answers_keep / BUNDLES_OF_TIME
    }

    /// The numbers of all answers with this mark.
    fn alike(&self, mark: u32) -> Vec<u64> {
        let last = self.last();
        let alike = self.index.range(entry(mark, 0)..=entry(mark, u64::from(u32::MAX)));
        alike.map(|entry| last - u64::from((last as u32).wrapping_sub(*entry as u32))).collect()
    }

    fn wall(&self, now: Timestamp) -> Wall {
        self.began.1 + now.since(self.began.0)
    }

    fn clock(&self, wall: Wall) -> Timestamp {
        self.began.0 + wall.since(self.began.1)
    }
}

/// The hash of a key by which its answer is found again. It is written into bundles.
fn mark(key: &str) -> u32 {
    (hash(key) >> 32) as u32
}

/// A hash that every owner computes alike.
pub(super) fn hash(text: &str) -> u64 {
    mix(text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3) // FNV-1a
    }))
}

/// An entry of the index. Fewer than 2^32 answers are kept, so half of a number tells it.
fn entry(mark: u32, number: u64) -> u64 {
    u64::from(mark) << 32 | (number & u64::from(u32::MAX))
}

/// What an answer takes beside its key and itself, in the journal and in memory, about.
const BYTES_BESIDE: u64 = 128;
/// Answers go when the time of the last one of their bundle is over: this part of it later at most.
const BUNDLES_OF_TIME: u32 = 8;
/// A bundle holds at most this part of all that may be kept.
const BUNDLES_MIN: u64 = 16;
/// Answers whose keys have one mark: by chance there are never so many, and each is a reading of the journal.
const ALIKE_MAX: usize = 16;
/// Pause after the journal has refused a commit for the answers' own sake.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn call(key: &str) -> Call {
        Call { key: key.to_owned(), request: 1, as_written: None, recorded: true }
    }

    fn answers(config: Config, last: u64) -> Answers<u8> {
        let kept = Kept { last, ..Kept::none() };
        Answers::new(config, kept, Vec::new(), (Timestamp::default(), Wall(0)))
    }

    fn commit(answers: &mut Answers<u8>, now: Timestamp, keys: &[&str]) {
        let drafts = keys.iter().map(|key| answers.draft(now, &call(key), Some(1), 1)).collect();
        let bundle = answers.bundle(now);
        answers.committed(bundle, drafts, &[]);
    }

    #[test]
    fn marks_are_a_promise_between_owners() {
        assert_eq!(["", "wallet/ada#1", "wallet/ada#ada\n1"].map(mark), GOLDEN);
    }

    #[test]
    fn an_answer_is_found_also_where_numbers_pass_their_lower_half() {
        let mut answers = answers(Config::default(), u64::from(u32::MAX) - 2);
        let keys: Vec<String> = (0..6).map(|n| n.to_string()).collect();
        commit(&mut answers, Timestamp::default(), &keys.iter().map(String::as_str).collect::<Vec<_>>());
        for (key, number) in keys.iter().zip(u64::from(u32::MAX) - 1..) {
            assert_eq!(answers.look(Timestamp::default(), &call(key)), Known::Perhaps(vec![number]));
        }
    }

    #[test]
    fn keys_that_share_a_mark_are_all_found_until_there_are_too_many_of_them() {
        // Two keys of one mark, by search.
        let mut seen = BTreeMap::new();
        let keys = (0_u32..).map(|n| n.to_string());
        let pair = keys.into_iter().find_map(|key| seen.insert(mark(&key), key.clone()).map(|first| [first, key]));
        let [first, second] = pair.expect("there are more keys than marks");
        let mut answers = answers(Config::default(), 0);
        let now = Timestamp::default();
        commit(&mut answers, now, &[&first]);
        assert_eq!(answers.look(now, &call(&second)), Known::Perhaps(vec![1]), "the journal says that it is new");
        commit(&mut answers, now, &[&second]);
        assert_eq!(answers.look(now, &call(&first)), Known::Perhaps(vec![1, 2]));
        for _ in 2..ALIKE_MAX {
            assert_eq!(answers.refusal(&call(&first)), None);
            commit(&mut answers, now, &[&second]);
        }
        assert_eq!(answers.refusal(&call(&first)), Some(Answer::Full), "no new call with this mark runs");
    }

    #[test]
    fn a_clock_that_goes_back_with_a_new_owner_lets_nothing_go_early() {
        let config = Config { bundle_len_max: 1, ..Config::default() };
        let mut answers = answers(config, 0);
        let late = Timestamp::default() + Duration::from_secs(100);
        commit(&mut answers, late, &["a"]);
        commit(&mut answers, Timestamp::default(), &["b"]);
        commit(&mut answers, Timestamp::default(), &[]);
        let keep = Timestamp::default() + config.answers_keep;
        assert_eq!(answers.prune(keep), None);
        assert_eq!(answers.prune(keep + Duration::from_secs(100)), Some((1, 1)));
        assert_eq!(answers.prune(keep + Duration::from_secs(100)), Some((2, 2)));
        assert_eq!((answers.kept(), answers.prune_at()), ((0, 0), None));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_answer_goes_before_its_time_though_the_clocks_of_owners_differ(
            seconds in proptest::collection::vec(0..3_600_u64, 1..12),
            bundle_len_max in 1..5_usize,
        ) {
            let config = Config { bundle_len_max, ..Config::default() };
            let mut answers = answers(config, 0);
            let at = |seconds| Timestamp::default() + Duration::from_secs(seconds);
            for (number, seconds) in seconds.iter().enumerate() {
                commit(&mut answers, at(*seconds), &[&number.to_string()]);
            }
            commit(&mut answers, at(3_600), &[]);
            for now in (0..=3_600).step_by(60).map(|seconds| at(seconds) + config.answers_keep) {
                while let Some((last, _)) = answers.prune(now) {
                    for seconds in &seconds[..last as usize] {
                        prop_assert!(at(*seconds) + config.answers_keep <= now, "recorded at {seconds} s");
                    }
                }
            }
        }
    }

    const GOLDEN: [u32; 3] = [3_280_043_009, 372_439_316, 4_167_797_132];
}

//! What happened, as a running hash and, for people, as lines.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::frame::Told;
use crate::random::mix;

/// Everything that a run did, in order.
pub(crate) struct Trace {
    hash: u64,
    count: u64,
    lines: VecDeque<(Duration, Happening)>,
    /// The last faults that have left `lines`.
    faults: VecDeque<(Duration, Happening)>,
    log: Log,
    /// Whether frames have names, so that those without are worth no line of the tail.
    pub(crate) is_narrated: bool,
    /// Whether the run is over: what its nodes do as they are dropped is no part of it.
    pub(crate) is_over: bool,
    /// Names of the machines, by number: what lines call them.
    names: Vec<String>,
}

/// How much of a run is kept as text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Log {
    /// The last 50 lines, for a failure's report, and the last 20 faults before them. Where frames have a
    /// [narrator](crate::Builder::narrator), only those that it names are among them, and nothing of how nodes connect.
    Tail,
    /// All lines, each poll of a task among them: what to compare when two runs of one seed differ.
    Full,
    /// As [`Log::Full`] without the polls, and each line is printed to stderr as it happens.
    Print,
}

/// One thing that happened. Machines and connections go by their number.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Happening {
    Polled {
        machine: Option<usize>,
        task: u64,
    },
    Started {
        machine: usize,
        incarnation: u32,
    },
    Crashed {
        machine: usize,
        silently: bool,
    },
    Paused {
        machine: usize,
    },
    Resumed {
        machine: usize,
    },
    Cut {
        from: usize,
        to: usize,
    },
    Healed,
    Connected {
        connection: u64,
        from: usize,
        to: usize,
    },
    Refused {
        from: usize,
        to: usize,
    },
    TimedOut {
        from: usize,
        to: usize,
    },
    Delivered {
        connection: u64,
        from: usize,
        to: usize,
        len: usize,
        what: Option<Arc<Told>>,
    },
    Lost {
        connection: u64,
        from: usize,
        to: usize,
        len: usize,
        what: Option<Arc<Told>>,
    },
    Duplicated {
        connection: u64,
        from: usize,
        to: usize,
        len: usize,
        what: Option<Arc<Told>>,
    },
    Held {
        connection: u64,
        from: usize,
        to: usize,
    },
    Closed {
        connection: u64,
        from: usize,
        to: usize,
    },
    Reset {
        connection: u64,
        at: usize,
    },
    Note(String),
    /// A note that is left out of the tail.
    Aside(String),
    /// Why a node crashes.
    Doomed(String),
}

impl Trace {
    pub(crate) fn new(log: Log) -> Self {
        Self {
            hash: 0,
            count: 0,
            lines: VecDeque::new(),
            faults: VecDeque::new(),
            log,
            is_narrated: false,
            is_over: false,
            names: Vec::new(),
        }
    }

    pub(crate) fn named(&mut self, name: String) {
        self.names.push(name);
    }

    pub(crate) fn record(&mut self, now: Duration, what: Happening) {
        if self.is_over {
            return;
        }
        self.count += 1;
        self.hash = mix(self.hash ^ now.as_nanos() as u64).wrapping_add(what.digest());
        if self.log == Log::Print {
            eprintln!("{}", self.line(now, &what));
        }
        self.remember(now, what);
    }

    /// Keeps a line for people, without a part in the hash.
    pub(crate) fn remember(&mut self, now: Duration, what: Happening) {
        if self.log != Log::Full {
            if self.is_narrated && what.is_housekeeping() {
                return;
            }
            if self.lines.len() == TAIL_LINES
                && let Some(oldest) = self.lines.pop_front()
                && oldest.1.is_fault()
            {
                if self.faults.len() == FAULTS_LINES {
                    self.faults.pop_front();
                }
                self.faults.push_back(oldest);
            }
        }
        self.lines.push_back((now, what));
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.faults.iter().chain(&self.lines).map(|(at, what)| self.line(*at, what)).collect()
    }

    fn line(&self, at: Duration, what: &Happening) -> String {
        format!("{:>12.6} {}", at.as_secs_f64(), Named(self, what))
    }

    fn name(&self, machine: usize) -> &str {
        self.names.get(machine).map_or("?", String::as_str)
    }
}

impl Happening {
    /// Whether it happens all the time, whatever the actors do.
    fn is_housekeeping(&self) -> bool {
        use Happening::*;
        match self {
            Delivered { what, .. } | Lost { what, .. } | Duplicated { what, .. } => what.is_none(),
            Connected { .. } | Refused { .. } | TimedOut { .. } | Closed { .. } | Aside(_) => true,
            _ => false,
        }
    }

    /// Whether the scenario or a nemesis did it: what explains the rest.
    fn is_fault(&self) -> bool {
        use Happening::*;
        matches!(
            self,
            Started { .. } | Crashed { .. } | Paused { .. } | Resumed { .. } | Cut { .. } | Healed | Doomed(_)
        )
    }

    fn digest(&self) -> u64 {
        use Happening::*;
        let words = |tag: u64, words: [u64; 4]| words.iter().fold(tag, |hash, word| mix(hash ^ word).rotate_left(7));
        match *self {
            Polled { task, .. } => words(1, [task, 0, 0, 0]),
            Started { machine, incarnation } => words(2, [machine as u64, incarnation.into(), 0, 0]),
            Crashed { machine, silently } => words(3, [machine as u64, silently.into(), 0, 0]),
            Paused { machine } => words(4, [machine as u64, 0, 0, 0]),
            Resumed { machine } => words(5, [machine as u64, 0, 0, 0]),
            Cut { from, to } => words(6, [from as u64, to as u64, 0, 0]),
            Healed => words(7, [0; 4]),
            Connected { connection, from, to } => words(8, [connection, from as u64, to as u64, 0]),
            Refused { from, to } => words(9, [from as u64, to as u64, 0, 0]),
            TimedOut { from, to } => words(10, [from as u64, to as u64, 0, 0]),
            Delivered { connection, from, to, len, .. } => words(11, [connection, from as u64, to as u64, len as u64]),
            Lost { connection, from, to, len, .. } => words(12, [connection, from as u64, to as u64, len as u64]),
            Duplicated { connection, from, to, len, .. } => words(13, [connection, from as u64, to as u64, len as u64]),
            Held { connection, from, to } => words(14, [connection, from as u64, to as u64, 0]),
            Closed { connection, from, to } => words(15, [connection, from as u64, to as u64, 0]),
            Reset { connection, at } => words(16, [connection, at as u64, 0, 0]),
            Note(ref text) | Aside(ref text) | Doomed(ref text) => {
                text.bytes().fold(17, |hash, byte| mix(hash ^ u64::from(byte)))
            }
        }
    }
}

struct Named<'a>(&'a Trace, &'a Happening);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Happening::*;
        let name = |machine: usize| self.0.name(machine);
        match *self.1 {
            Polled { machine, task } => write!(f, "poll task {task} of {}", machine.map_or("the scenario", name)),
            Started { machine, incarnation } => write!(f, "{} starts (incarnation {incarnation})", name(machine)),
            Crashed { machine, silently: true } => write!(f, "{} crashes without a word", name(machine)),
            Crashed { machine, silently: false } => write!(f, "{} crashes", name(machine)),
            Paused { machine } => write!(f, "{} is paused", name(machine)),
            Resumed { machine } => write!(f, "{} goes on", name(machine)),
            Cut { from, to } => write!(f, "cut {} -> {}", name(from), name(to)),
            Healed => write!(f, "the network is healed"),
            Connected { connection, from, to } => write!(f, "#{connection} {} connects to {}", name(from), name(to)),
            Refused { from, to } => write!(f, "{} refuses a connection from {}", name(to), name(from)),
            TimedOut { from, to } => write!(f, "{} gives up connecting to {}", name(from), name(to)),
            Delivered { connection, from, to, len, ref what } => {
                write!(f, "#{connection} {} -> {}: {}", name(from), name(to), Frame(what, len))
            }
            Lost { connection, from, to, len, ref what } => {
                write!(f, "#{connection} {} -> {}: lost: {}", name(from), name(to), Frame(what, len))
            }
            Duplicated { connection, from, to, len, ref what } => {
                write!(f, "#{connection} {} -> {}: will arrive twice: {}", name(from), name(to), Frame(what, len))
            }
            Held { connection, from, to } => write!(f, "#{connection} {} -> {}: held back", name(from), name(to)),
            Closed { connection, from, to } => write!(f, "#{connection} {} -> {}: closed", name(from), name(to)),
            Reset { connection, at } => write!(f, "#{connection} is reset at {}", name(at)),
            Note(ref text) | Aside(ref text) | Doomed(ref text) => f.write_str(text),
        }
    }
}

/// What a frame is, if that is known, and its length.
struct Frame<'a>(&'a Option<Arc<Told>>, usize);

impl fmt::Display for Frame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(told) => write!(f, "{} ({} bytes)", told.text, self.1),
            None => write!(f, "{} bytes", self.1),
        }
    }
}

/// Lines kept for a failure's report.
const TAIL_LINES: usize = 50;
/// Faults kept from before these.
const FAULTS_LINES: usize = 20;

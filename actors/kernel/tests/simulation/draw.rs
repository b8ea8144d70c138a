//! Numbers from a seed, and what is drawn with them: births, outcomes, batches.

use std::time::Duration;

use procession_kernel::{
    Birth, Blob, EventName, JoinPolicy, Kind, KindRules, LimitKey, OnFailure, RetryPolicy, Rules, StageOutcome,
    Timestamp,
};

/// A kind whose stages can be undone.
const UNDOABLE: &str = "undoable";
/// A kind without rollback.
const FINAL: &str = "final";
/// An undoable kind with a limit; also the limit's name.
pub(crate) const LIMITED: &str = "limited";
/// Names of events that are waited for and sent.
const EVENTS: [&str; 2] = ["go", "stop"];

/// A xorshift generator: the same seed gives the same numbers everywhere.
pub(crate) struct Draw(u64);

impl Draw {
    /// Begins with a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    /// Gives a number below `below`.
    pub(crate) fn below(&mut self, below: u64) -> u64 {
        self.next() % below.max(1)
    }

    /// Gives a place in a list of this length.
    pub(crate) fn place(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap_or(0)
    }

    /// Is true this often in a hundred.
    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Picks one of a list.
    pub(crate) fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        from.get(self.place(from.len())).cloned()
    }

    /// Draws the name of an event.
    pub(crate) fn event(&mut self) -> EventName {
        EventName::from(self.pick(&EVENTS).unwrap_or("go"))
    }

    /// Draws a procedure.
    pub(crate) fn birth(&mut self) -> Birth {
        let kind = match self.below(10) {
            0..6 => UNDOABLE,
            6..8 => FINAL,
            _ => LIMITED,
        };
        Birth {
            kind: Kind::from(kind),
            version: 1,
            stage: stage(0),
            payload: Blob::from(vec![0]),
            priority: i16::try_from(self.below(3)).unwrap_or(0),
            limit: None,
            timeout: self.percent(10).then(|| Duration::from_secs(1 + self.below(20))),
            on_failure: if self.percent(40) {
                OnFailure::Compensate
            } else {
                OnFailure::Keep
            },
            detached: false,
        }
    }

    fn join(&mut self, children: u32) -> JoinPolicy {
        let place = u32::try_from(self.below(u64::from(children))).unwrap_or(0);
        match self.below(6) {
            0 => JoinPolicy::AllFinished,
            1 => JoinPolicy::AtLeast(1 + place),
            2 => JoinPolicy::Named(vec![place]),
            3 => JoinPolicy::Custom,
            _ => JoinPolicy::AllSucceeded,
        }
    }

    /// Draws what a stage says.
    pub(crate) fn outcome(&mut self, now: Timestamp) -> StageOutcome {
        let next = stage(1 + self.below(200));
        match self.below(100) {
            0..25 => StageOutcome::Next(next),
            25..45 => StageOutcome::Done(Blob::from(vec![1])),
            45..62 => {
                let mut births: Vec<Birth> = (0..self.below(5)).map(|_| self.birth()).collect();
                births.iter_mut().for_each(|birth| birth.detached = self.percent(10));
                let children = births.iter().filter(|birth| !birth.detached).count();
                let join = self.join(u32::try_from(children).unwrap_or(0));
                let width = u32::try_from(self.below(3)).unwrap_or(0);
                StageOutcome::Spawn {
                    births,
                    admissions: Vec::new(),
                    join,
                    width,
                    then: next,
                }
            }
            62..68 => StageOutcome::Sleep(now.after(Duration::from_secs(self.below(10))), next),
            68..76 => {
                let timeout = self.percent(60).then(|| Duration::from_secs(self.below(10)));
                StageOutcome::Wait(self.event(), timeout, next)
            }
            76..82 => StageOutcome::Yield,
            82..88 => StageOutcome::Retry("again".to_owned()),
            88..93 => StageOutcome::Fail("boom".to_owned()),
            93..97 => StageOutcome::Panicked("ouch".to_owned()),
            _ => StageOutcome::Refused("too much".to_owned()),
        }
    }
}

/// Encodes a stage.
pub(crate) fn stage(number: u64) -> Blob {
    Blob::from(vec![u8::try_from(number).unwrap_or(u8::MAX)])
}

/// Gives the rules of every simulation: small bounds, so that they are met.
pub(crate) fn rules() -> Rules {
    let kind = |rollback| KindRules {
        version: 1,
        rollback,
        retry: RetryPolicy::default(),
        retry_undo: RetryPolicy::default().attempts(2),
    };
    let kinds = [(UNDOABLE, true), (FINAL, false), (LIMITED, true)];
    let mut rules = Rules {
        kinds: kinds
            .into_iter()
            .map(|(name, rollback)| (Kind::from(name), kind(rollback)))
            .collect(),
        keep_after_end: Duration::from_secs(900),
        keep_after_acknowledgement: Duration::from_secs(300),
        ..Rules::default()
    };
    rules.bounds.depth = 4;
    rules.bounds.members = 24;
    rules.bounds.attempts_kept = 1;
    rules
}

/// Gives the limits of which a root of this kind needs permits.
pub(crate) fn limits_of(birth: &Birth) -> Vec<LimitKey> {
    if birth.kind.as_str() == LIMITED {
        vec![LimitKey::from(LIMITED)]
    } else {
        Vec::new()
    }
}

//! Numbers from a seed, and what is drawn with them: births, outcomes, batches.

use std::time::Duration;

use procession_kernel::{
    Birth, Blob, ChildPermits, EventName, HistoryDetail, Hold, JoinPolicy, Key, Kind, KindRules, Label, Limit,
    LimitKey, LockNeed, NextStageNeeds, OnFailure, OnTimeout, ProcedureId, RetryPolicy, Rules, SentSignal,
    StageOutcome, Timestamp,
};

/// How many signals may wait for one procedure.
pub(crate) const SIGNALS: usize = 6;

/// A kind whose stages can be undone.
pub(crate) const UNDOABLE: &str = "undoable";
/// A kind without rollback.
const FINAL: &str = "final";
/// An undoable kind with a limit, whose code cleans up; also the limit's name.
pub(crate) const LIMITED: &str = "limited";
/// A kind with a bound on one stage in a row, that keeps little history.
const STRICT: &str = "strict";
/// A limit that some name, of whatever kind.
pub(crate) const ROOM: &str = "room";
/// From this seed on, stages name limits in one of this many histories.
pub(crate) const STAGE_LIMITS_FROM: u64 = 20_000;
pub(crate) const STAGE_LIMITS_EVERY: u64 = 4;
/// From this seed on, each of these has stages that run ahead of the disk.
pub(crate) const SPECULATION_FROM: u64 = 30_000_001;
pub(crate) const SPECULATION_EVERY: u64 = 2;
/// A limit that only stages name.
pub(crate) const CALLS: &str = "calls";
/// A rate that only stages name.
const PACE: &str = "pace";
/// The limit of every root.
pub(crate) const GLOBAL: &str = "*";
/// Bytes that a value may have; a quarter of it is large.
pub(crate) const PAYLOAD: usize = 8;
/// Bytes that a note may have.
pub(crate) const NOTE: usize = 4;
/// Names of events that are waited for and sent.
const EVENTS: [&str; 2] = ["go", "stop"];
/// What is locked: few paths, so that they are met.
const PATHS: [&str; 4] = ["a", "a/1", "a/2", "b"];

/// A xorshift generator: the same seed gives the same numbers everywhere.
pub(crate) struct Draw {
    state: u64,
    /// Stages name limits. The seeds that have found a fault do not, so that they still draw what they drew then.
    names_stage_limits: bool,
    /// Stages are pure, and run ahead of the disk. The seeds that have found a fault have none.
    pub(crate) speculates: bool,
}

impl Draw {
    /// Begins with a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
            speculates: seed >= SPECULATION_FROM && (seed - SPECULATION_FROM).is_multiple_of(SPECULATION_EVERY),
            names_stage_limits: seed >= STAGE_LIMITS_FROM && seed.is_multiple_of(STAGE_LIMITS_EVERY),
        }
    }

    fn next(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    /// Returns a number below `below`.
    pub(crate) fn below(&mut self, below: u64) -> u64 {
        self.next() % below.max(1)
    }

    /// Returns a place in a list of this length.
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

    /// Draws a signal; some have keys, and few are the last of their name.
    pub(crate) fn signal(&mut self, to: ProcedureId) -> SentSignal {
        let key = self.percent(30).then(|| Key::from(format!("signal {}", self.below(3))));
        SentSignal {
            to,
            name: self.event(),
            payload: self.value(),
            key,
            last: self.percent(2),
        }
    }

    /// Draws the name of a kind.
    pub(crate) fn kind(&mut self) -> Kind {
        Kind::from(match self.below(10) {
            0..5 => UNDOABLE,
            5..6 => FINAL,
            6..8 => STRICT,
            _ => LIMITED,
        })
    }

    /// Draws a procedure.
    pub(crate) fn birth(&mut self) -> Birth {
        let on_failure = match self.below(10) {
            0..4 => OnFailure::Compensate,
            _ => OnFailure::Keep,
        };
        Birth {
            priority: i16::try_from(self.below(3)).unwrap_or(0),
            limit: self.percent(15).then(|| LimitKey::from(ROOM)),
            hold: if self.percent(40) {
                Hold::WhileActive
            } else {
                Hold::ForLife
            },
            permits: Some(match self.below(3) {
                0 => ChildPermits::Exempt,
                1 => ChildPermits::Inherited,
                _ => ChildPermits::Own,
            }),
            locks_for_life: self.percent(30),
            next_needs: self.next_needs(),
            timeout: self.percent(10).then(|| Duration::from_secs(1 + self.below(20))),
            on_timeout: if self.percent(40) {
                OnTimeout::Execute
            } else {
                OnTimeout::Fail
            },
            on_failure,
            ..labelled(Birth::new(self.kind(), 1, stage(0), self.value()))
        }
    }

    /// Draws a value; the longest is as long as is allowed.
    pub(crate) fn value(&mut self) -> Blob {
        Blob::from(vec![0; self.place(PAYLOAD + 1)])
    }

    /// Draws what the code says of the stage that runs next.
    pub(crate) fn next_needs(&mut self) -> NextStageNeeds {
        let count = match self.below(10) {
            0..6 => 0,
            6..9 => 1,
            _ => 2,
        };
        let mut locks: Vec<LockNeed> = (0..count).map(|_| self.lock()).collect();
        locks.dedup();
        NextStageNeeds {
            locks,
            limits: self.stage_limits(),
            next_is_no_return: self.percent(4).then(|| "the last bridge".to_owned()),
            is_pure: self.speculates && self.percent(70),
            ..NextStageNeeds::default()
        }
    }

    /// Draws the limits of a stage: mostly none, at times one that some hold for life.
    fn stage_limits(&mut self) -> Vec<LimitKey> {
        if !self.names_stage_limits {
            return Vec::new();
        }
        let names: &[&str] = match self.below(20) {
            0..13 => &[],
            13..16 => &[CALLS],
            16..17 => &[PACE],
            17..18 => &[ROOM],
            18..19 => &[CALLS, ROOM],
            _ => &[LIMITED],
        };
        names.iter().map(|name| LimitKey::from(*name)).collect()
    }

    fn lock(&mut self) -> LockNeed {
        let path = self.pick(&PATHS).unwrap_or("a");
        if self.percent(60) {
            LockNeed::exclusive(path)
        } else {
            LockNeed::shared(path)
        }
    }

    fn join(&mut self, births: &[Birth]) -> JoinPolicy {
        let children = births.iter().filter(|birth| !birth.detached).count() as u64;
        let place = u32::try_from(self.below(children)).unwrap_or(0);
        match self.below(6) {
            0 => JoinPolicy::AllFinished,
            1 => JoinPolicy::AtLeast(1 + place),
            2 => JoinPolicy::Named(self.places(births)),
            3 => JoinPolicy::Custom,
            _ => JoinPolicy::AllSucceeded,
        }
    }

    /// Draws places of a list, some of them twice; now and then one that nobody waits for, or that is not there.
    fn places(&mut self, births: &[Birth]) -> Vec<u32> {
        let any = self.percent(3);
        let attached = (0_u32..).zip(births).filter(|(_, birth)| any || !birth.detached);
        let mut places: Vec<u32> = attached.map(|(place, _)| place).collect();
        places.retain(|_| self.percent(60));
        let again = places.first().copied().filter(|_| self.percent(30));
        places.extend(again);
        places.extend(
            any.then_some(births.len() as u64)
                .and_then(|place| u32::try_from(place).ok()),
        );
        places
    }

    /// Draws what a stage says.
    pub(crate) fn outcome(&mut self, now: Timestamp) -> StageOutcome {
        // Now and then the same stage again.
        let stages = if self.percent(45) { 1 } else { 200 };
        let next = stage(1 + self.below(stages));
        match self.below(100) {
            0..25 => StageOutcome::Next(next),
            25..45 => StageOutcome::Done(Blob::from(vec![1])),
            45..62 => {
                let mut births: Vec<Birth> = (0..self.below(5)).map(|_| self.birth()).collect();
                births.iter_mut().for_each(|birth| birth.detached = self.percent(10));
                // Those that are collected besides are part of the list, and not known to the policy.
                let join = self.join(&births);
                let width = u32::try_from(self.below(3)).unwrap_or(0);
                StageOutcome::Spawn {
                    births,
                    join,
                    width,
                    then: next,
                }
            }
            // One of three asks a person instead, by the time alone, so that nothing else is drawn otherwise.
            62..68 if (now.0 / 1_000_000).is_multiple_of(3) => {
                let timeout = Some(Duration::from_secs(self.below(10))).filter(|time| time.as_secs() < 5);
                StageOutcome::Ask("what now?".to_owned(), timeout, next)
            }
            62..68 => StageOutcome::Sleep(now.after(Duration::from_secs(self.below(10))), next),
            68..76 => {
                let timeout = self.percent(60).then(|| Duration::from_secs(self.below(10)));
                StageOutcome::Wait(self.event(), timeout, next)
            }
            76..82 => StageOutcome::Yield,
            82..86 => StageOutcome::Retry(format!("again at {}", now.0)),
            86..88 => StageOutcome::RetryAfter(delay_at(now), format!("again at {}", now.0)),
            // Half of them keep what the stage did; the time alone decides, so that nothing else is drawn otherwise.
            88..93 if (now.0 / 1_000_000).is_multiple_of(2) => StageOutcome::GiveUp("boom".to_owned()),
            88..93 => StageOutcome::Fail("boom".to_owned()),
            93..97 => StageOutcome::Panicked("ouch".to_owned()),
            _ => StageOutcome::Refused("too much".to_owned()),
        }
    }
}

/// Chooses a delay by the time alone, so that nothing else is drawn otherwise than without it: none, or some seconds.
pub(crate) fn delay_at(now: Timestamp) -> Duration {
    Duration::from_secs(now.0 / 1_000_000 % 4)
}

/// Encodes a stage.
pub(crate) fn stage(number: u64) -> Blob {
    Blob::from(vec![u8::try_from(number).unwrap_or(u8::MAX)])
}

/// Returns the rules of every simulation: small bounds, so that they are met.
pub(crate) fn rules(speculation: bool) -> Rules {
    let undoable = KindRules {
        retry_undo: RetryPolicy::default().attempts(2),
        signals: Some(SIGNALS),
        signal_keys: 2,
        ..KindRules::new(1)
    };
    let last = KindRules {
        rollback: false,
        history: HistoryDetail::Newest(3),
        ..undoable.clone()
    };
    let limited = KindRules {
        cleanup: true,
        keep_values: 64,
        ..undoable.clone()
    };
    let strict = KindRules {
        repeat_limit: Some(2),
        history: HistoryDetail::Stack,
        ..undoable.clone()
    };
    let kinds = [
        (UNDOABLE, undoable),
        (FINAL, last),
        (LIMITED, limited),
        (STRICT, strict),
    ];
    let mut rules = Rules {
        kinds: kinds
            .into_iter()
            .map(|(name, rules)| (Kind::from(name), rules))
            .collect(),
        keep_after_end: Duration::from_secs(900),
        keep_after_acknowledgement: Duration::from_secs(300),
        keep_after_failure: Duration::from_secs(1_800),
        speculation,
        run_length: 4,
        ..Rules::default()
    };
    rules.bounds.depth = 4;
    rules.bounds.members = 24;
    rules.bounds.payload = PAYLOAD;
    rules.bounds.note = NOTE;
    rules.bounds.attempts_kept = 1;
    rules.bounds.wave = 1;
    rules.bounds.closed = 1;
    rules
}

/// Sets labels of a birth as its drawn value decides: few different ones, so that families share them.
fn labelled(birth: Birth) -> Birth {
    let size = birth.payload.len();
    let own = size
        .is_multiple_of(3)
        .then(|| Label::new("size", (size % 5).to_string()));
    Birth {
        labels: own.into_iter().collect(),
        inherits_labels: size.is_multiple_of(2),
        ..birth
    }
}

/// Returns the limits that the builder sets.
pub(crate) fn limits() -> [(LimitKey, Limit); 5] {
    [
        (LIMITED, Limit::at_once(2)),
        (ROOM, Limit::at_once(1)),
        (CALLS, Limit::at_once(1)),
        (PACE, Limit::per(2, Duration::from_secs(30))),
        (GLOBAL, Limit::at_once(5)),
    ]
    .map(|(key, limit)| (LimitKey::from(key), limit))
}

/// Returns the limits whose permits a birth needs, its kind's own first.
pub(crate) fn limits_of(birth: &Birth, is_child: bool) -> Vec<LimitKey> {
    if is_child && birth.permits != Some(ChildPermits::Own) {
        return Vec::new();
    }
    let own = (birth.kind.as_str() == LIMITED).then(|| LimitKey::from(LIMITED));
    let all = own.into_iter().chain(birth.limit.clone());
    all.chain([LimitKey::from(GLOBAL)]).collect()
}

//! When a condition is reported as a verdict: for the engine, and for kinds with thresholds of their own.

use std::collections::BTreeMap;
use std::time::Duration;

use procession_kernel::{Kind, SAME_STAGE_FROZEN, STAGES_FROZEN};

/// When a condition is reported as a verdict. A kind may have its own: see [`KindThresholds`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Thresholds {
    /// Consecutive failed attempts of a stage or an undo with the same error, numbers aside (see
    /// [`fingerprint`](procession_kernel::fingerprint)). Default 5: with the default backoff it has failed for a
    /// quarter of a minute.
    pub retries: u32,
    /// Consecutive runs of one stage. Default 100: a stage that polls every minute is reported after more than an
    /// hour.
    pub same_stage: u32,
    /// How often later requests may overtake one that waits for a permit or a lock. Default 128, half of
    /// [`MAX_OVERTAKES`](procession_kernel::MAX_OVERTAKES), at which it is served first.
    pub overtaken: u32,
    /// How long everything that a request waits for may be available without the request being served, in two health
    /// checks or more. Default 5 s. This never happens in a sound engine: it watches the limiter.
    pub free: Duration,
    /// How long the store may take for one batch. Default 5 s: a healthy disk takes milliseconds, a busy one a
    /// second.
    pub store: Duration,
    /// Shortest run of a stage that may be reported as unusual, which is four times the 99th percentile of its newest
    /// successful runs. If its kind declares an expected time, only that counts. Default 5 s: shorter runs are over
    /// before anybody looks.
    pub unusual: Duration,
    /// How many stages one procedure may commit; its history keeps all of them until its family is evicted. Default
    /// 10,000: a stage that polls every minute is reported after a week.
    pub stages: u32,
    /// How near a payload, the number of a family's members and a procedure's signals may come to the builder's
    /// bounds, in percent. Default 50. Payloads are tracked only from a quarter of the bound on.
    pub size_percent: u32,
    /// Bytes that must be free on the journal's disk, or a tenth of the disk if that is less. Default 1 GiB: the
    /// store needs room for its log, and to rewrite tables.
    pub disk_free: u64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            retries: 5,
            same_stage: 100,
            overtaken: 128,
            free: Duration::from_secs(5),
            store: Duration::from_secs(5),
            unusual: Duration::from_secs(5),
            stages: 10_000,
            size_percent: 50,
            disk_free: 1 << 30,
        }
    }
}

impl Thresholds {
    /// Sets [`retries`](Self#structfield.retries).
    #[must_use]
    pub const fn retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    /// Sets [`same_stage`](Self#structfield.same_stage).
    #[must_use]
    pub const fn same_stage(mut self, same_stage: u32) -> Self {
        self.same_stage = same_stage;
        self
    }

    /// Sets [`overtaken`](Self#structfield.overtaken).
    #[must_use]
    pub const fn overtaken(mut self, overtaken: u32) -> Self {
        self.overtaken = overtaken;
        self
    }

    /// Sets [`free`](Self#structfield.free).
    #[must_use]
    pub const fn free(mut self, free: Duration) -> Self {
        self.free = free;
        self
    }

    /// Sets [`store`](Self#structfield.store).
    #[must_use]
    pub const fn store(mut self, store: Duration) -> Self {
        self.store = store;
        self
    }

    /// Sets [`unusual`](Self#structfield.unusual).
    #[must_use]
    pub const fn unusual(mut self, unusual: Duration) -> Self {
        self.unusual = unusual;
        self
    }

    /// Sets [`stages`](Self#structfield.stages).
    #[must_use]
    pub const fn stages(mut self, stages: u32) -> Self {
        self.stages = stages;
        self
    }

    /// Sets [`size_percent`](Self#structfield.size_percent).
    #[must_use]
    pub const fn size_percent(mut self, size_percent: u32) -> Self {
        self.size_percent = size_percent;
        self
    }

    /// Sets [`disk_free`](Self#structfield.disk_free).
    #[must_use]
    pub const fn disk_free(mut self, disk_free: u64) -> Self {
        self.disk_free = disk_free;
        self
    }

    /// Returns `true` if a procedure that only waits, and has not failed, may be reported. There are many such
    /// procedures, and each must be examined for this alone.
    const fn may_tell_of_frozen(&self) -> bool {
        self.retries == 0 || self.same_stage < SAME_STAGE_FROZEN || self.stages < STAGES_FROZEN
    }
}

/// When a condition of one kind is reported as a verdict, where this differs from the engine's default. A field that
/// is `None` is taken from [`Thresholds`], and each field has the meaning that it has there.
///
/// ```
/// use procession_actors::KindThresholds;
///
/// // It polls every second whether a machine is up, for up to an hour.
/// let polls = KindThresholds::default().same_stage(3_600);
/// assert_eq!(polls.retries, None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KindThresholds {
    /// Consecutive failed attempts with the same error.
    pub retries: Option<u32>,
    /// Consecutive runs of one stage.
    pub same_stage: Option<u32>,
    /// How often later requests may overtake a procedure of this kind.
    pub overtaken: Option<u32>,
    /// Shortest run of a stage that may be reported as unusual.
    pub unusual: Option<Duration>,
    /// How many stages one procedure may commit.
    pub stages: Option<u32>,
    /// How near a payload, signals, and the members of a family with a root of this kind may come to their bounds, in
    /// percent.
    pub size_percent: Option<u32>,
}

impl KindThresholds {
    /// Sets [`retries`](Self#structfield.retries).
    #[must_use]
    pub const fn retries(mut self, retries: u32) -> Self {
        self.retries = Some(retries);
        self
    }

    /// Sets [`same_stage`](Self#structfield.same_stage).
    #[must_use]
    pub const fn same_stage(mut self, same_stage: u32) -> Self {
        self.same_stage = Some(same_stage);
        self
    }

    /// Sets [`overtaken`](Self#structfield.overtaken).
    #[must_use]
    pub const fn overtaken(mut self, overtaken: u32) -> Self {
        self.overtaken = Some(overtaken);
        self
    }

    /// Sets [`unusual`](Self#structfield.unusual).
    #[must_use]
    pub const fn unusual(mut self, unusual: Duration) -> Self {
        self.unusual = Some(unusual);
        self
    }

    /// Sets [`stages`](Self#structfield.stages).
    #[must_use]
    pub const fn stages(mut self, stages: u32) -> Self {
        self.stages = Some(stages);
        self
    }

    /// Sets [`size_percent`](Self#structfield.size_percent).
    #[must_use]
    pub const fn size_percent(mut self, size_percent: u32) -> Self {
        self.size_percent = Some(size_percent);
        self
    }

    const fn over(&self, engine: &Thresholds) -> Thresholds {
        const fn number(own: Option<u32>, engine: u32) -> u32 {
            match own {
                Some(own) => own,
                None => engine,
            }
        }
        Thresholds {
            retries: number(self.retries, engine.retries),
            same_stage: number(self.same_stage, engine.same_stage),
            overtaken: number(self.overtaken, engine.overtaken),
            unusual: match self.unusual {
                Some(own) => own,
                None => engine.unusual,
            },
            stages: number(self.stages, engine.stages),
            size_percent: number(self.size_percent, engine.size_percent),
            ..*engine
        }
    }
}

/// The thresholds of an engine, and of its kinds with thresholds of their own.
#[derive(Clone, Debug)]
pub(crate) struct Measures {
    engine: Thresholds,
    kinds: BTreeMap<Kind, Thresholds>,
}

impl Measures {
    pub(crate) fn new(engine: Thresholds, kinds: impl IntoIterator<Item = (Kind, KindThresholds)>) -> Self {
        let own = kinds.into_iter().filter(|(_, own)| *own != KindThresholds::default());
        Self {
            kinds: own.map(|(kind, own)| (kind, own.over(&engine))).collect(),
            engine,
        }
    }

    /// Returns the thresholds of the engine itself.
    pub(crate) const fn engine(&self) -> &Thresholds {
        &self.engine
    }

    /// Returns the thresholds of a kind.
    pub(crate) fn of(&self, kind: &Kind) -> &Thresholds {
        self.kinds.get(kind).unwrap_or(&self.engine)
    }

    /// Returns `true` if a procedure that only waits, and has not failed, may be reported.
    pub(crate) fn may_tell_of_frozen(&self) -> bool {
        self.engine.may_tell_of_frozen() || self.kinds.values().any(Thresholds::may_tell_of_frozen)
    }
}

#[cfg(test)]
mod tests {
    //! Which thresholds apply to which kind.

    use super::*;

    #[test]
    fn a_kind_has_its_own_where_it_says_so_and_the_engines_else() {
        let engine = Thresholds {
            retries: 7,
            ..Thresholds::default()
        };
        let polls = KindThresholds {
            same_stage: Some(1_000),
            unusual: Some(Duration::from_mins(1)),
            ..KindThresholds::default()
        };
        let (poll, plain) = (Kind::from("poll"), Kind::from("plain"));
        let measures = Measures::new(
            engine,
            [(poll.clone(), polls), (plain.clone(), KindThresholds::default())],
        );
        let expected = Thresholds {
            same_stage: 1_000,
            unusual: Duration::from_mins(1),
            ..engine
        };
        assert_eq!((measures.of(&poll), measures.of(&plain)), (&expected, &engine));
        assert_eq!(measures.of(&Kind::from("unknown")), &engine);
        assert!(!measures.may_tell_of_frozen());
        let low = KindThresholds {
            same_stage: Some(3),
            ..polls
        };
        assert!(Measures::new(engine, [(poll, low)]).may_tell_of_frozen());
    }
}

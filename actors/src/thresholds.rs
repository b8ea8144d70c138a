//! From when on something is told as a verdict: of the engine, and of kinds that have their own.

use std::collections::BTreeMap;
use std::time::Duration;

use procession_kernel::{Kind, SAME_STAGE_FROZEN, STAGES_FROZEN};

/// From when on something is told as a verdict. A kind may have its own: see [`KindThresholds`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Failed attempts of a stage, or of an undo, in a row, that said the same but for numbers
    /// (see [`fingerprint`](procession_kernel::fingerprint)). Default 5: with the default
    /// backoff it has failed for a quarter of a minute.
    pub retries: u32,
    /// Runs of one stage in a row. Default 100; one that looks again every
    /// minute is told of after more than an hour.
    pub same_stage: u32,
    /// How often later ones may go before one that waits for a permit or a
    /// lock. Default 128, half of [`PATIENCE`](procession_kernel::PATIENCE), at which it goes first.
    pub passed: u32,
    /// How long all that one waits for may have been free without its being served, in two health checks or
    /// more. Default 5 s. In a sound engine it is never so: this is a watch over the limiter.
    pub free: Duration,
    /// How long the store may take for one batch. Default 5 s: a healthy disk
    /// takes milliseconds, one that is busy a second.
    pub store: Duration,
    /// How long a stage runs at least before it is told of as taking four times as long as 99
    /// of 100 of the newest did that succeeded; where its kind says what is expected, that counts alone.
    /// Default 5 s: what takes less is over before anybody looks.
    pub unusual: Duration,
    /// How many stages one procedure may commit: all of them are in its history until its family
    /// goes. Default 10,000; one that looks again every minute is told of after a week.
    pub stages: u32,
    /// How near a payload, the members of a family and the signals of a procedure may come to what
    /// the builder's bounds allow, in percent. Default 50. Of payloads the engine knows
    /// from a quarter of the bound on.
    pub size_percent: u32,
    /// How many bytes shall be free on the journal's disk, unless a tenth of the disk is less.
    /// Default 1 GiB: the store needs room for its log, and to write tables again.
    pub disk_free: u64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            retries: 5,
            same_stage: 100,
            passed: 128,
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
    /// Tells whether one that only waits may be told of, though nothing of it
    /// has failed: such are many, and looked at one by one for that alone.
    const fn may_tell_of_frozen(&self) -> bool {
        self.retries == 0 || self.same_stage < SAME_STAGE_FROZEN || self.stages < STAGES_FROZEN
    }
}

/// From when on something of one kind is told as a verdict, where that is not as of the engine's others.
/// What is none is as in [`Thresholds`], and means what its field there means.
///
/// ```
/// use procession_actors::KindThresholds;
///
/// // It looks every second whether a machine is up, for up to an hour.
/// let polls = KindThresholds { same_stage: Some(3_600), ..KindThresholds::default() };
/// assert_eq!(polls.retries, None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindThresholds {
    /// Failed attempts in a row that said the same.
    pub retries: Option<u32>,
    /// Runs of one stage in a row.
    pub same_stage: Option<u32>,
    /// How often later ones may go before one of them.
    pub passed: Option<u32>,
    /// How long a stage runs at least before it is told of as unusual.
    pub unusual: Option<Duration>,
    /// How many stages one of them may commit.
    pub stages: Option<u32>,
    /// How near a payload, signals, and the members of a family whose root is of this kind may come to
    /// what is allowed, in percent.
    pub size_percent: Option<u32>,
}

impl KindThresholds {
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
            passed: number(self.passed, engine.passed),
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

/// The thresholds of an engine, and of those of its kinds that have their own.
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

    /// Gives what holds of the engine itself.
    pub(crate) const fn engine(&self) -> &Thresholds {
        &self.engine
    }

    /// Gives what holds of a kind.
    pub(crate) fn of(&self, kind: &Kind) -> &Thresholds {
        self.kinds.get(kind).unwrap_or(&self.engine)
    }

    /// Tells whether one that only waits may be told of, though nothing of it has failed.
    pub(crate) fn may_tell_of_frozen(&self) -> bool {
        self.engine.may_tell_of_frozen() || self.kinds.values().any(Thresholds::may_tell_of_frozen)
    }
}

#[cfg(test)]
mod tests {
    //! Which threshold holds of whom.

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

//! What a seed chooses once for its whole history: the engine's settings.

use std::time::Duration;

use procession::Builder;
use procession::health::Thresholds;

use super::draw::Draw;
use super::support::{Active, Circling, Final, Holding, Jittery, Kept, Lab, Limited, Once, Patient, Planned, Tidy};

/// A limit that procedures of all kinds name.
pub(crate) const ROOM: &str = "room";
/// Every limit that the builder may set; the last is that of everything.
pub(crate) const LIMITS: [&str; 4] = ["limited", "once", ROOM, procession::limits::GLOBAL_LIMIT];
/// Longer than any history.
const LONG: Duration = Duration::from_secs(3_600 * 24 * 365 * 20);

/// The engine's settings.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) limits: Vec<(&'static str, u32)>,
    pub(crate) after_end: Duration,
    pub(crate) after_note: Duration,
    merge: usize,
    in_flight: usize,
    seed: u64,
    /// Turns by which the store's answers are late at most.
    pub(crate) late: u32,
}

impl Settings {
    pub(crate) fn draw(draw: &mut Draw) -> Self {
        let mut limits = Vec::new();
        for (name, most) in LIMITS.into_iter().zip([3, 2, 2, 6]) {
            if draw.percent(60) {
                limits.push((name, 1 + draw.small(most)));
            }
        }
        let forgetful = draw.percent(25);
        Self {
            limits,
            after_end: if forgetful { Duration::from_secs(60) } else { LONG },
            after_note: if forgetful { Duration::from_secs(5) } else { LONG },
            merge: 1 + draw.place(6),
            in_flight: 1 + draw.place(3),
            seed: 1 + draw.below(1_000),
            late: draw.small(12),
        }
    }

    /// Tells whether results stay until the end of the history.
    pub(crate) fn keeps(&self) -> bool {
        self.after_end == LONG
    }

    pub(crate) fn build(&self, lab: &Lab, builder: Builder) -> Builder {
        let mut builder = builder
            .register::<Planned>(lab.clone())
            .register::<Patient>(lab.clone())
            .register::<Final>(lab.clone())
            .register::<Limited>(lab.clone())
            .register::<Once>(lab.clone())
            .register::<Holding>(lab.clone())
            .register::<Active>(lab.clone())
            .register::<Circling>(lab.clone())
            .register::<Jittery>(lab.clone())
            .register::<Tidy>(lab.clone())
            .register::<Kept>(lab.clone())
            .retention(self.after_end, self.after_note)
            .keep_failures(self.after_end * 2)
            .merge(self.merge)
            .in_flight(self.in_flight)
            // Nobody ever waits for what is free, as one health check after the other finds it.
            .thresholds(Thresholds::default().free(Duration::ZERO))
            .seed(self.seed);
        for (name, limit) in &self.limits {
            builder = builder.limit(name, *limit);
        }
        builder
    }
}

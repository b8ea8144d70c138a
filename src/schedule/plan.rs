//! What a schedule goes by, and whether this process can.

use procession_kernel::{Blob, Timestamp};
use serde::{Deserialize, Serialize};

use super::policy::{CatchUp, Overlap};
use super::timetable::{Ticks, Timetable};
use super::{Jobs, ScheduleStage, jobs};

/// What a schedule does: all of it can be changed while it lives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Plan {
    pub(super) job: String,
    pub(super) timetable: Timetable,
    #[serde(default, skip_serializing_if = "Blob::is_empty")]
    pub(super) input: Blob,
    #[serde(default)]
    pub(super) catch_up: CatchUp,
    #[serde(default)]
    pub(super) overlap: Overlap,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) until: Option<Timestamp>,
}

/// Why this process cannot go by a plan: another release may have made it, or another machine.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unusable {
    /// The stage that looks again.
    pub(super) stage: ScheduleStage,
    pub(super) why: String,
}

impl Plan {
    /// Returns its ticks, if this process knows its job and can read its timetable.
    pub(super) fn ticks(&self, jobs: &Jobs) -> Result<Ticks, Unusable> {
        if !jobs.knows(&self.job) {
            return Err(Unusable {
                stage: ScheduleStage::UnknownJob,
                why: jobs::unknown(&self.job, jobs),
            });
        }
        self.timetable.ticks().map_err(|error| Unusable {
            stage: ScheduleStage::UnknownTimetable,
            why: error.to_string(),
        })
    }

    /// Says what this process does not know of it.
    pub(super) fn check(&self, jobs: &Jobs) -> Result<(), String> {
        self.ticks(jobs).map(drop).map_err(|unusable| unusable.why)
    }
}

#[cfg(test)]
mod tests;

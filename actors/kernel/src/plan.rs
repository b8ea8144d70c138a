//! The consequences of an operator's request beyond the changed rows: undos, released locks and permits, procedures
//! that move next, and warnings. A dry run makes a plan.

use std::collections::BTreeMap;

use crate::audit::Reach;
use crate::effect::AdmissionEffect;
use crate::history::HistoryEntry;
use crate::id::{LimitKey, ProcedureId};
use crate::lock::LockNeed;

/// Largest number of members or undos that a plan lists. If there are more, [`Plan::truncated`] is set.
pub const PLAN_NAMED: usize = 1_000;

/// Executed stages of one member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executed {
    /// The member.
    pub id: ProcedureId,
    /// How many of its stages are on the rollback stack.
    pub stages: u32,
    /// Why they are not undone; `None` if they are.
    pub why: Option<String>,
}

/// What one member releases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Freed {
    /// The member.
    pub id: ProcedureId,
    /// Permits, one of each limit.
    pub limits: Vec<LimitKey>,
    /// Locks.
    pub locks: Vec<LockNeed>,
    /// `true` if they are released only at the end of the rollback, not in the request's own commit.
    pub later: bool,
}

/// The consequences of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Plan {
    /// Members whose executed stages would be undone.
    pub undone: Vec<Executed>,
    /// Members whose executed stages would remain, each with the reason.
    pub stays: Vec<Executed>,
    /// The permits and locks that would be released.
    pub freed: Vec<Freed>,
    /// Procedures that would move then: first members whose gates open, then members that waited for children or for a
    /// place in the width. The engine appends those that would be admitted, first come, first served, because its limiter
    /// knows the queues.
    pub moves_next: Vec<ProcedureId>,
    /// The number of the history entry whose undo is skipped, if the request skips one.
    pub skipped: Option<u32>,
    /// Warnings to consider first.
    pub warnings: Vec<String>,
    /// `true` if not everything is listed.
    pub truncated: bool,
    /// What the limiter would be told in the request's own commit.
    pub told: Vec<AdmissionEffect>,
}

/// One executed stage of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedStage<'a> {
    /// Its history entry.
    pub entry: &'a HistoryEntry,
    /// Why it is not undone; `None` if it is.
    pub why: Option<&'a str>,
}

impl Plan {
    /// Counts the executed stages that it names.
    pub(crate) fn reach(&self) -> Reach {
        let count = |executed: &[Executed]| executed.iter().map(|executed| u64::from(executed.stages)).sum();
        Reach {
            undone: count(&self.undone),
            stays: count(&self.stays),
        }
    }

    /// Cuts the list of procedures that move next to [`PLAN_NAMED`].
    pub fn cut_moves_next(&mut self) {
        self.truncated |= self.moves_next.len() > PLAN_NAMED;
        self.moves_next.truncate(PLAN_NAMED);
    }

    /// Returns the stages of the plan, given the family's history with settled standing. Stages to be undone come
    /// first, in the order of their undos, then the stages that remain.
    #[must_use]
    pub fn stages<'a>(&'a self, history: &'a [HistoryEntry]) -> Vec<PlannedStage<'a>> {
        let members: BTreeMap<(u64, u32), Option<&str>> = self
            .undone
            .iter()
            .chain(&self.stays)
            .map(|executed| ((executed.id.family, executed.id.member), executed.why.as_deref()))
            .collect();
        // The history is that of before: the skipped entry still stands in it.
        let stands = |entry: &&HistoryEntry| entry.stands && self.skipped != Some(entry.number);
        let standing = history.iter().filter(stands).filter_map(|entry| {
            let why = *members.get(&(entry.family, entry.member))?;
            Some(PlannedStage { entry, why })
        });
        let mut stages: Vec<PlannedStage<'_>> = standing.collect();
        stages.sort_by_key(|stage| (stage.why.is_some(), std::cmp::Reverse(stage.entry.number)));
        stages.truncate(PLAN_NAMED);
        stages
    }
}

//! What a request of an operator would lead to, beyond the rows that it changes: undos,
//! what is freed, who moves then, and what to think of before. A dry run makes it.

use std::collections::BTreeMap;

use crate::effect::AdmissionEffect;
use crate::history::HistoryEntry;
use crate::id::{LimitKey, ProcedureId};
use crate::lock::LockNeed;

/// Members, or undos, that one plan names at most; beyond these it says that it was cut.
pub const PLAN_NAMED: usize = 1_000;

/// Executed stages of one member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executed {
    /// Whose.
    pub id: ProcedureId,
    /// How many stand on the rollback stack.
    pub stages: u32,
    /// Why they are not undone; none if they are.
    pub why: Option<String>,
}

/// What one member gives back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Freed {
    /// Who.
    pub id: ProcedureId,
    /// Permits, one of each limit.
    pub limits: Vec<LimitKey>,
    /// Locks.
    pub locks: Vec<LockNeed>,
    /// Only when the rollback has come to its end, not in the act's own commit.
    pub later: bool,
}

/// What a request would lead to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Members whose executed stages would be undone.
    pub undone: Vec<Executed>,
    /// Members whose executed stages would stay as they are, each with why.
    pub stays: Vec<Executed>,
    /// What would be given back.
    pub freed: Vec<Freed>,
    /// Who would be admitted by that, first come first served; filled in by the engine, whose
    /// limiter knows the queues.
    pub moves_next: Vec<ProcedureId>,
    /// What to think of before, in words.
    pub warnings: Vec<String>,
    /// Not all is named.
    pub truncated: bool,
    /// What the limiter would be told in the act's own commit.
    pub told: Vec<AdmissionEffect>,
}

/// One executed stage of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedStage<'a> {
    /// Its entry in the history.
    pub entry: &'a HistoryEntry,
    /// Why it is not undone; none if it is.
    pub why: Option<&'a str>,
}

impl Plan {
    /// Names the stages of a plan by the family's history, whose standing is settled: those
    /// that would be undone in the order of their undos, then those that stay.
    #[must_use]
    pub fn stages<'a>(&'a self, history: &'a [HistoryEntry]) -> Vec<PlannedStage<'a>> {
        let members: BTreeMap<(u64, u32), Option<&str>> = self
            .undone
            .iter()
            .chain(&self.stays)
            .map(|executed| ((executed.id.family, executed.id.member), executed.why.as_deref()))
            .collect();
        let standing = history.iter().filter(|entry| entry.stands).filter_map(|entry| {
            let why = *members.get(&(entry.family, entry.member))?;
            Some(PlannedStage { entry, why })
        });
        let mut stages: Vec<PlannedStage<'_>> = standing.collect();
        stages.sort_by_key(|stage| (stage.why.is_some(), std::cmp::Reverse(stage.entry.number)));
        stages.truncate(PLAN_NAMED);
        stages
    }
}

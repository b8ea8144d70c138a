//! What an operator's request would lead to.

use std::borrow::Cow;
use std::collections::BTreeMap;

use procession_actors::journal::codec;
use procession_kernel::{Executed, Freed, HistoryEntry, Plan};
use serde::{Deserialize, Serialize};

/// What a request would lead to, beyond the rows that it changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PlanView {
    /// Undos that will run, in their order.
    pub undone: Vec<UndoView>,
    /// Executed stages that will not be undone, each member with why.
    pub stays: Vec<StaysView>,
    /// Locks and permits that are given back.
    pub freed: Vec<FreedView>,
    /// Who is admitted by that, first come first served.
    pub moves_next: Vec<String>,
    /// What to think of before, in words.
    pub warnings: Vec<String>,
    /// Not all is named.
    pub truncated: bool,
}

/// One undo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UndoView {
    /// Whose stage.
    pub id: String,
    /// The stage.
    pub stage: String,
    /// The number of its entry in the history.
    pub number: String,
}

/// Executed stages that stay as they are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StaysView {
    /// Whose.
    pub id: String,
    /// The stages, newest first.
    pub stages: Vec<String>,
    /// Why.
    pub why: String,
}

/// What one procedure gives back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FreedView {
    /// Who.
    pub id: String,
    /// Permits, one of each limit.
    pub limits: Vec<String>,
    /// Locks, each as `exclusive path`.
    pub locks: Vec<String>,
    /// `now`, or `after_rollback`.
    pub when: Cow<'static, str>,
}

impl PlanView {
    /// Shows a plan. The history of the family names the stages; its standing is settled.
    #[must_use]
    pub fn new(plan: &Plan, history: &[HistoryEntry]) -> Self {
        let mut kept: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        let mut undone = Vec::new();
        for stage in plan.stages(history) {
            let (entry, name) = (stage.entry, codec::describe(stage.entry.stage.as_slice()));
            match stage.why {
                Some(_) => kept.entry(entry.member).or_default().push(name),
                None => undone.push(UndoView {
                    id: format!("{}.{}", entry.family, entry.member),
                    stage: name,
                    number: entry.number.to_string(),
                }),
            }
        }
        let stays = |executed: &Executed| StaysView {
            id: executed.id.to_string(),
            stages: kept.get(&executed.id.member).cloned().unwrap_or_default(),
            why: executed.why.clone().unwrap_or_default(),
        };
        Self {
            undone,
            stays: plan.stays.iter().map(stays).collect(),
            freed: plan.freed.iter().map(FreedView::from).collect(),
            moves_next: plan.moves_next.iter().map(ToString::to_string).collect(),
            warnings: plan.warnings.clone(),
            truncated: plan.truncated,
        }
    }
}

impl From<&Freed> for FreedView {
    fn from(freed: &Freed) -> Self {
        Self {
            id: freed.id.to_string(),
            limits: freed.limits.iter().map(ToString::to_string).collect(),
            locks: freed.locks.iter().map(ToString::to_string).collect(),
            when: Cow::Borrowed(if freed.later { "after_rollback" } else { "now" }),
        }
    }
}

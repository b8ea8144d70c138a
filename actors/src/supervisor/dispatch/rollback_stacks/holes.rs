//! Holes in histories: describes which entry a rollback needed and did not find.

use std::collections::{BTreeMap, BTreeSet};

use procession_kernel::{HistoryEntry, Kernel, ProcedureId, Row, WaitReason, settle_standing};

use crate::journal::codec;

/// The maximum number of holes that are remembered. Each is a sentence, and nobody reads more than this many at once.
const HELD: usize = 1024;

/// What is missing for the rollbacks that have parked as quarantined, by the procedure that rolls back.
#[derive(Default)]
pub(in crate::supervisor) struct Holes(BTreeMap<ProcedureId, String>);

impl Holes {
    /// Notes what a rollback lacks. Must be called after the decision, because only rollbacks that have parked are
    /// kept.
    pub(in crate::supervisor) fn note(&mut self, kernel: &Kernel, scope: ProcedureId, hole: String) {
        if !is_parked(kernel, scope) {
            return;
        }
        tracing::warn!(procedure = %scope, hole, "the history has a hole, so the procedure cannot be rolled back");
        if self.0.len() >= HELD {
            self.0.retain(|scope, _| is_parked(kernel, *scope));
        }
        if self.0.len() < HELD {
            self.0.insert(scope, hole);
        }
    }

    /// Returns everything that is remembered; some procedures may have moved since.
    pub(in crate::supervisor) const fn all(&self) -> &BTreeMap<ProcedureId, String> {
        &self.0
    }

    /// Forgets a family that was discharged.
    pub(in crate::supervisor) fn forget_family(&mut self, family: u64) {
        self.0.retain(|scope, _| scope.family != family);
    }
}

fn is_parked(kernel: &Kernel, scope: ProcedureId) -> bool {
    kernel
        .row(scope)
        .is_some_and(|row| row.wait == Some(WaitReason::Quarantined))
}

/// Describes what the history of a family lacks for each of its rollbacks that would park with it. What ends, or is kept
/// as it is, lacks nothing, and neither does a rollback that needs no entry which was dropped.
pub(crate) fn of_family(kernel: &Kernel, number: u64, history: &[HistoryEntry]) -> BTreeMap<ProcedureId, String> {
    let Some(family) = kernel.families().get(&number) else {
        return BTreeMap::new();
    };
    let scopes = family.members.iter().filter(|row| row.is_failing());
    let scopes = scopes.filter(|row| family.scope_of(row.id.member) == Some(row.id));
    let mut stacks: BTreeMap<u32, Vec<HistoryEntry>> = scopes.map(|row| (row.id.member, Vec::new())).collect();
    for entry in history {
        for row in family.ancestry(entry.member) {
            if let Some(stack) = stacks.get_mut(&row.id.member) {
                stack.push(entry.clone());
            }
        }
    }
    let mut holes = BTreeMap::new();
    for (member, mut stack) in stacks {
        let scope = ProcedureId::new(number, member);
        if !kernel.is_stack_complete(scope, stack.clone()) {
            settle_standing(&mut stack);
            let hole = missing(kernel, scope, &stack);
            holes.insert(
                scope,
                hole.unwrap_or_else(|| "some of its entries are missing".to_owned()),
            );
        }
    }
    holes
}

/// Describes what is missing from the entries that were read for a scope; `None` if there are as many as its rows say.
pub(in crate::supervisor) fn missing(kernel: &Kernel, scope: ProcedureId, entries: &[HistoryEntry]) -> Option<String> {
    let family = kernel.families().get(&scope.family)?;
    if let Some(entry) = entries.iter().find(|entry| entry.number > family.history) {
        let stage = codec::describe(entry.stage.as_slice());
        return Some(format!(
            "its entry {} (stage {stage} of {}) is beyond the {} committed entries",
            entry.number,
            ProcedureId::new(scope.family, entry.member),
            family.history
        ));
    }
    let rows = || family.within(scope.member);
    let expected: usize = rows().map(|row| row.standing as usize).sum();
    let standing = entries.iter().filter(|entry| entry.stands).count();
    if standing > expected {
        return more_stands(rows(), entries);
    }
    if standing == expected {
        return None;
    }
    let row = rows().find_map(|row| {
        let of_row = || entries.iter().filter(|entry| entry.member == row.id.member);
        let standing = of_row().filter(|entry| entry.stands).count();
        let visits: BTreeSet<u32> = of_row()
            .filter(|entry| entry.ending.is_stage())
            .map(|entry| entry.visit)
            .collect();
        let visit = (0..=row.visit).find(|visit| !visits.contains(visit))?;
        (standing < row.standing as usize).then_some((row, visit))
    });
    let (row, visit) = row?;
    Some(named(row, visit, entries, family.history))
}

/// Names a procedure of which more stages stand than its row counts: the entry that took one of them off is missing. The
/// stages that the row counts are the first ones.
fn more_stands<'a>(mut rows: impl Iterator<Item = &'a Row>, entries: &[HistoryEntry]) -> Option<String> {
    rows.find_map(|row| {
        let standing = entries
            .iter()
            .filter(|entry| entry.stands && entry.member == row.id.member);
        let undone = standing.skip(row.standing as usize).last()?;
        let stage = codec::describe(undone.stage.as_slice());
        Some(format!(
            "the entry of the undo of stage {stage} (entry {}) of {} is missing",
            undone.number, row.id
        ))
    })
}

/// Names a visit's entry by its neighbours.
fn named(row: &Row, visit: u32, entries: &[HistoryEntry], newest: u32) -> String {
    let of_row = || entries.iter().filter(|entry| entry.member == row.id.member);
    let before = of_row().rfind(|entry| entry.visit < visit);
    let after = of_row().find(|entry| entry.visit > visit);
    let known: BTreeSet<u32> = entries.iter().map(|entry| entry.number).collect();
    let first = before.map_or(1, |entry| entry.number + 1);
    let last = after.map_or(newest, |entry| entry.number.saturating_sub(1));
    let mut numbers = (first..=last).filter(|number| !known.contains(number));
    let number = match (numbers.next(), numbers.next()) {
        (Some(number), None) => format!("its entry {number} is missing"),
        _ => format!("one of its entries {first} to {last} is missing"),
    };
    let stage = if visit == row.visit && !row.stage.is_empty() {
        format!("stage {}", codec::describe(row.stage.as_slice()))
    } else {
        let around = |how: &str, entry: &HistoryEntry| {
            let stage = codec::describe(entry.stage.as_slice());
            format!(" {how} {stage} (entry {})", entry.number)
        };
        let before = before.map(|entry| around("after", entry)).unwrap_or_default();
        let after = after.map(|entry| around("before", entry)).unwrap_or_default();
        format!("the stage{before}{after}")
    };
    format!("{number}: {stage} of {}", row.id)
}

//! Which stages of a part of a history stand on the rollback stack. An undo that is not among the entries may have taken
//! one off.

use std::collections::{BTreeMap, BTreeSet};

use procession_kernel::{Ending, HistoryEntry, Mark, ProcedureId, ProcedureState, Row, settle_standing};

use super::{OUTLINE_PAGE, Reader, StoredRow, decode_row};
use crate::error::ReadError;
use crate::journal::keys::{self, Space};

/// The rows of members; `None` of those that are gone or cannot be read.
type Rows = BTreeMap<u32, Option<Row>>;

impl Reader {
    /// Settles which of these entries of a family stand. `behind` is the number from which on there may be others.
    ///
    /// Undos go newest first, so what a row counts as standing are its first stages, and none if it counts none. Only of
    /// the stages behind these, and only if their member or an ancestor has failed, is an undo looked for in the entries
    /// that follow.
    pub(super) async fn settled(
        &self,
        family: u64,
        mut entries: Vec<HistoryEntry>,
        behind: Option<u32>,
    ) -> Result<Vec<HistoryEntry>, ReadError> {
        settle_standing(&mut entries);
        let Some(from) = behind else { return Ok(entries) };
        let standing = entries.iter().filter(|entry| entry.stands);
        let mut rows = Rows::new();
        self.read_rows(family, standing.map(|entry| entry.member), &mut rows)
            .await?;
        let mut in_doubt = BTreeSet::new();
        for entry in entries.iter_mut().filter(|entry| entry.stands) {
            let Some(row) = rows.get(&entry.member).and_then(Option::as_ref) else {
                continue;
            };
            entry.stands = row.standing > 0 && !has_newer_attempt(row, entry);
            if entry.stands && row.standing <= entry.visit {
                in_doubt.insert((entry.member, entry.visit));
            }
        }
        self.read_ancestors(family, &in_doubt, &mut rows).await?;
        in_doubt.retain(|(member, _)| may_be_undone(&rows, *member));
        let undone = self.undone_from(family, from, in_doubt).await?;
        for entry in &mut entries {
            entry.stands &= !undone.contains(&(entry.member, entry.visit));
        }
        Ok(entries)
    }

    /// Reads the ancestors of the members of these visits, level by level.
    async fn read_ancestors(
        &self,
        family: u64,
        visits: &BTreeSet<(u32, u32)>,
        rows: &mut Rows,
    ) -> Result<(), ReadError> {
        let mut level: BTreeSet<u32> = visits.iter().map(|(member, _)| *member).collect();
        while !level.is_empty() {
            let above = level.iter().filter_map(|member| parent(rows, *member));
            let above: BTreeSet<u32> = above.filter(|parent| !rows.contains_key(parent)).collect();
            self.read_rows(family, above.iter().copied(), rows).await?;
            level = above;
        }
        Ok(())
    }

    /// Reads the rows of these members, in one job.
    async fn read_rows(
        &self,
        family: u64,
        members: impl Iterator<Item = u32>,
        rows: &mut Rows,
    ) -> Result<(), ReadError> {
        let ids: BTreeSet<ProcedureId> = members.map(|member| ProcedureId::new(family, member)).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let read = self.run(move |store| {
            Box::pin(async move {
                let mut read = Vec::with_capacity(ids.len());
                for id in ids {
                    read.push((id, store.get(Space::Procedures, keys::procedure(id).to_vec()).await?));
                }
                Ok(read)
            })
        });
        for (id, bytes) in read.await? {
            // A row that cannot be read is for whoever asks for it: the entries can be shown without.
            let row = bytes.and_then(|bytes| decode_row(id, &bytes).ok());
            let row = row.map(StoredRow::without_labels);
            rows.insert(id.member, row);
        }
        Ok(())
    }

    /// Returns those of the visits that an entry from this number on takes off the stack.
    async fn undone_from(
        &self,
        family: u64,
        mut from: u32,
        mut open: BTreeSet<(u32, u32)>,
    ) -> Result<BTreeSet<(u32, u32)>, ReadError> {
        let mut undone = BTreeSet::new();
        while !open.is_empty() {
            let page = match self.entries_in(family, from, u32::MAX, OUTLINE_PAGE).await {
                // What is damaged behind the entries is no reason not to show them.
                Err(ReadError::Codec(_)) => break,
                page => page?,
            };
            for entry in page.iter().filter(|entry| entry.ending != Ending::UndoFailed) {
                let visit = (entry.member, entry.visit);
                if open.remove(&visit) {
                    undone.insert(visit);
                }
            }
            let Some(last) = page.last().filter(|_| page.len() == OUTLINE_PAGE) else {
                break;
            };
            from = last.number.saturating_add(1);
        }
        Ok(undone)
    }
}

/// Returns `true` if the entry is of a failed attempt, and its stage has been tried again since.
fn has_newer_attempt(row: &Row, entry: &HistoryEntry) -> bool {
    let has_failed = matches!(entry.ending, Ending::Retry | Ending::Fail | Ending::Panic);
    has_failed && (entry.visit, entry.attempt) < (row.visit, row.attempt)
}

fn parent(rows: &Rows, member: u32) -> Option<u32> {
    rows.get(&member)?.as_ref()?.parent
}

/// Returns `true` if the member or an ancestor has failed. One that an operator bypassed may have failed before.
fn may_be_undone(rows: &Rows, member: u32) -> bool {
    let mut at = Some(member);
    while let Some(row) = at.and_then(|member| rows.get(&member)?.as_ref()) {
        let has_failed = matches!(row.state, ProcedureState::Failed | ProcedureState::RolledBack);
        if has_failed || row.rare().mark == Some(Mark::Bypassed) {
            return true;
        }
        // A parent has a lower number than its children.
        at = row.parent.filter(|parent| *parent < row.id.member);
    }
    false
}

//! Lists that begin with the newest family: families by falling numbers, the members of each in their order.
//!
//! The store reads forward alone. So families are read some at a time, and each time the newest of those that are left;
//! how many are read at once follows from how many rows they have.

use std::ops::Bound;

use procession_actors::CommittedReader;
use procession_actors::view::FamilyScope;
use procession_kernel::ProcedureId;

use super::{Order, STORED_AT_ONCE, Search};
use crate::dashboard::problem::Problem;
use crate::dashboard::state::State;

/// Families of a list without an index that are read first: their rows mostly fit into one read.
const FAMILIES: u64 = 256;

impl Search<'_> {
    /// Looks from an id on, newest families first, until the page is full; returns where the next page begins.
    pub(in crate::dashboard) async fn fill_newest(
        &mut self,
        state: &State,
        cursor: Option<ProcedureId>,
    ) -> Result<Option<ProcedureId>, Problem> {
        self.begun = state.now();
        match self.scope() {
            None => Ok(self.in_model(state, cursor, Order::NewestFirst).await),
            Some(scope) => self.newest_in_store(state, &scope, cursor).await,
        }
    }

    /// Leaves out families that the filter does not name; none if there is no older one.
    pub(super) fn skip_newer(&self, from: Bound<ProcedureId>) -> Option<Bound<ProcedureId>> {
        let Some(families) = &self.families else {
            return Some(from);
        };
        let (Bound::Included(id) | Bound::Excluded(id)) = from else {
            return families
                .last()
                .map(|family| Bound::Included(ProcedureId::root(*family)));
        };
        let family = *families.range(..=id.family).next_back()?;
        Some(match family == id.family {
            true => from,
            false => Bound::Included(ProcedureId::root(family)),
        })
    }

    async fn newest_in_store(
        &mut self,
        state: &State,
        scope: &FamilyScope,
        cursor: Option<ProcedureId>,
    ) -> Result<Option<ProcedureId>, Problem> {
        let committed = state.engine().committed();
        let known = state.shared.read().newest_family();
        let mut newest = match cursor {
            Some(id) => id.family,
            None => newest_family(&committed, known).await?,
        };
        // An index names few families, so all of them are tried at once.
        let mut count = match scope {
            FamilyScope::All | FamilyScope::Live => FAMILIES,
            FamilyScope::Families(_)
            | FamilyScope::Labelled(_)
            | FamilyScope::KeyPrefix { .. }
            | FamilyScope::Key(_)
            | FamilyScope::Failures(_) => u64::MAX,
        };
        let oldest_of = |newest: u64, count: u64| ProcedureId::root(newest.saturating_sub(count - 1));
        let within = cursor.filter(|id| !id.is_root());
        let mut begin = within.unwrap_or(oldest_of(newest, count));
        loop {
            let mut page = committed
                .list_where(scope, Some(begin), STORED_AT_ONCE, |_| true)
                .await?;
            let rest = page.next.filter(|next| next.family <= newest);
            if rest.is_some() && begin.family < newest {
                // They have more rows than one read brings, and these are the oldest.
                count = (newest - begin.family).div_ceil(2);
                begin = oldest_of(newest, count);
                continue;
            }
            let lost = page.unreadable.iter().filter(|id| id.family <= newest);
            self.unreadable.extend(lost.map(ToString::to_string));
            page.items.retain(|row| row.id.family <= newest);
            let families = page.items.chunk_by(|one, next| one.id.family == next.id.family);
            for row in families.rev().flatten() {
                if self.scanned > 0 && self.is_full(state.now()) {
                    return Ok(Some(row.id));
                }
                self.look(row, state.now());
            }
            match (rest, begin.family.checked_sub(1)) {
                // Of one family that is larger than a read.
                (Some(next), _) => begin = next,
                (None, None) => return Ok(None),
                (None, Some(older)) => {
                    newest = older;
                    if page.items.len() < STORED_AT_ONCE / 4 {
                        count = count.saturating_mul(2);
                    }
                    begin = oldest_of(newest, count);
                    // It has come nearer to the end, however few it has found.
                    if self.is_full(state.now()) {
                        return Ok(Some(ProcedureId::root(newest)));
                    }
                }
            }
        }
    }
}

/// Finds the newest family of the store from one that is known to be there: the model forgets old ends, and with them
/// perhaps the newest birth.
async fn newest_family(committed: &CommittedReader, known: u64) -> Result<u64, Problem> {
    let (mut newest, mut step) = (known, 1_u64);
    loop {
        let from = Some(ProcedureId::root(newest.saturating_add(step)));
        let page = committed.list_where(&FamilyScope::All, from, 1, |_| true).await?;
        match page
            .items
            .first()
            .map(|row| row.id)
            .or(page.unreadable.first().copied())
        {
            Some(id) if id.family > newest => {
                newest = id.family;
                step = step.saturating_mul(2);
            }
            Some(_) | None if step > 1 => step /= 2,
            Some(_) | None => return Ok(newest),
        }
    }
}

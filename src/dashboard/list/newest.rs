//! Lists that begin with the newest family: families by falling numbers, the members of each in their order.
//!
//! The store reads forward alone. So families are read some at a time, and each time the newest of those that are left;
//! how many are read at once follows from how many rows they have.

use std::ops::Bound;
use std::sync::Arc;

use procession_actors::CommittedReader;
use procession_actors::view::{FamilyScope, Status};
use procession_kernel::ProcedureId;

use super::{AT_ONCE, STORED_AT_ONCE, Search};
use crate::dashboard::problem::Problem;
use crate::dashboard::state::State;

/// Families of a list without an index that are read first: their rows mostly fit into one read.
const FAMILIES: u64 = 256;

impl Search<'_> {
    /// Looks from an id on, newest families first, until the page is full; gives where the next page begins.
    pub(in crate::dashboard) async fn fill_newest(
        &mut self,
        state: &State,
        cursor: Option<ProcedureId>,
    ) -> Result<Option<ProcedureId>, Problem> {
        self.begun = state.now();
        match self.of_model() {
            Ok(()) => Ok(self.newest_in_model(state, cursor).await),
            Err(scope) => self.newest_in_store(state, &scope, cursor).await,
        }
    }

    async fn newest_in_model(&mut self, state: &State, cursor: Option<ProcedureId>) -> Option<ProcedureId> {
        let mut from = cursor.map_or(Bound::Unbounded, Bound::Included);
        loop {
            let from_here = self.skip_newer(from)?;
            let rows: Vec<Arc<Status>> = state.shared.read().newest(from_here, AT_ONCE);
            let last = rows.last()?.id;
            for row in rows {
                if self.is_full(state.now()) {
                    return Some(row.id);
                }
                self.look(&row, state.now());
            }
            from = Bound::Excluded(last);
            tokio::task::yield_now().await;
        }
    }

    /// Leaves out families that the filter does not name; none if there is no older one.
    fn skip_newer(&self, from: Bound<ProcedureId>) -> Option<Bound<ProcedureId>> {
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
        let mut newest = match cursor {
            Some(id) if id.is_root() => id.family,
            Some(id) => {
                let next = self.rest_of_family(state, &committed, scope, id).await?;
                match (next, id.family.checked_sub(1)) {
                    (None, Some(older)) => older,
                    (next, _) => return Ok(next),
                }
            }
            None => newest_family(&committed, state.shared.read().newest_family()).await?,
        };
        // An index names few families, so all of them are tried at once.
        let has_index = !matches!(scope, FamilyScope::All | FamilyScope::Live);
        let mut count = if has_index { u64::MAX } else { FAMILIES };
        loop {
            let oldest = newest.saturating_sub(count - 1);
            let Some(rows) = self.families(&committed, scope, oldest, newest).await? else {
                if oldest < newest {
                    count = count.min(newest - oldest + 1) / 2;
                    continue;
                }
                // One family that is larger than a read.
                let next = self
                    .rest_of_family(state, &committed, scope, ProcedureId::root(newest))
                    .await?;
                match (next, newest.checked_sub(1)) {
                    (None, Some(older)) => newest = older,
                    (next, _) => return Ok(next),
                }
                continue;
            };
            for family in rows.chunk_by(|one, next| one.id.family == next.id.family).rev() {
                for row in family {
                    if self.scanned > 0 && self.is_full(state.now()) {
                        return Ok(Some(row.id));
                    }
                    self.look(row, state.now());
                }
            }
            match oldest.checked_sub(1) {
                Some(older) => newest = older,
                None => return Ok(None),
            }
            // It has come nearer to the end, so the next page does, too.
            if self.is_full(state.now()) {
                return Ok(Some(ProcedureId::root(newest)));
            }
            if rows.len() < STORED_AT_ONCE / 4 {
                count = count.saturating_mul(2);
            }
        }
    }

    /// Reads families as a whole. Returns `None` if they have more rows than one read brings.
    async fn families(
        &mut self,
        committed: &CommittedReader,
        scope: &FamilyScope,
        oldest: u64,
        newest: u64,
    ) -> Result<Option<Vec<Status>>, Problem> {
        let from = Some(ProcedureId::root(oldest));
        let mut page = committed.list_where(scope, from, STORED_AT_ONCE, |_| true).await?;
        if page.next.is_some_and(|next| next.family <= newest) {
            return Ok(None);
        }
        let lost = page.unreadable.iter().filter(|id| id.family <= newest);
        self.unreadable.extend(lost.map(ToString::to_string));
        page.items.retain(|row| row.id.family <= newest);
        Ok(Some(page.items))
    }

    /// Looks at the members of one family from an id on; gives where the next page begins, if that is in this family.
    async fn rest_of_family(
        &mut self,
        state: &State,
        committed: &CommittedReader,
        scope: &FamilyScope,
        from: ProcedureId,
    ) -> Result<Option<ProcedureId>, Problem> {
        let mut begin = from;
        loop {
            let page = committed
                .list_where(scope, Some(begin), STORED_AT_ONCE, |_| true)
                .await?;
            let is_mine = |id: &ProcedureId| id.family == from.family;
            let lost = page.unreadable.iter().filter(|id| is_mine(id));
            self.unreadable.extend(lost.map(ToString::to_string));
            for row in page.items.iter().filter(|row| is_mine(&row.id)) {
                if self.scanned > 0 && self.is_full(state.now()) {
                    return Ok(Some(row.id));
                }
                self.look(row, state.now());
            }
            match page.next.filter(is_mine) {
                Some(next) => begin = next,
                None => return Ok(None),
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

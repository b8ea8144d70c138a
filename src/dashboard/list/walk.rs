//! Rows of the store, some at a time: by id, or the newest families first with the members of each in their order.
//!
//! The store reads forward alone. For the newest, families are read some at a time, and each time the newest of those
//! that are left; how many are read at once follows from how many rows they have.

use std::cmp::Reverse;

use procession_actors::CommittedReader;
use procession_actors::view::{FamilyScope, Status};
use procession_kernel::ProcedureId;

use super::{Order, STORED_AT_ONCE};
use crate::dashboard::problem::Problem;
use crate::dashboard::state::State;

/// Families of a list without an index that are read first: their rows mostly fit into one read.
const FAMILIES: u64 = 256;

/// A way through the rows of a scope.
pub(in crate::dashboard) struct Walk<'a> {
    committed: CommittedReader,
    scope: &'a FamilyScope,
    place: Place,
}

/// Where a walk is.
enum Place {
    /// By id, from this one on.
    ById(Option<ProcedureId>),
    NewestFirst(Back),
}

/// A walk from the newest family to the oldest.
struct Back {
    /// The newest family that is left.
    newest: u64,
    /// How many families are read at once.
    count: u64,
    /// Where the next read begins.
    begin: ProcedureId,
}

/// What one read brought.
pub(in crate::dashboard) struct Chunk {
    /// The rows, in the order of the walk.
    pub(in crate::dashboard) rows: Vec<Status>,
    pub(in crate::dashboard) unreadable: Vec<ProcedureId>,
    /// Where the walk goes on; none at its end.
    pub(in crate::dashboard) behind: Option<ProcedureId>,
}

impl<'a> Walk<'a> {
    /// Begins at a cursor, or at the beginning.
    pub(in crate::dashboard) async fn begin(
        state: &State,
        scope: &'a FamilyScope,
        cursor: Option<ProcedureId>,
        order: Order,
    ) -> Result<Self, Problem> {
        let committed = state.engine().committed();
        let place = match order {
            Order::ById => Place::ById(cursor),
            Order::NewestFirst => {
                let known = state.shared.read().newest_family();
                Place::NewestFirst(Back::begin(&committed, scope, cursor, known).await?)
            }
        };
        Ok(Self {
            committed,
            scope,
            place,
        })
    }

    /// Reads on. Not to be called behind the end.
    pub(in crate::dashboard) async fn read(&mut self) -> Result<Chunk, Problem> {
        match &mut self.place {
            Place::ById(from) => {
                let page = self
                    .committed
                    .list_where(self.scope, *from, STORED_AT_ONCE, |_| true)
                    .await?;
                *from = page.next;
                Ok(Chunk {
                    rows: page.items,
                    unreadable: page.unreadable,
                    behind: page.next,
                })
            }
            Place::NewestFirst(back) => back.read(&self.committed, self.scope).await,
        }
    }
}

impl Back {
    async fn begin(
        committed: &CommittedReader,
        scope: &FamilyScope,
        cursor: Option<ProcedureId>,
        known: u64,
    ) -> Result<Self, Problem> {
        let newest = match cursor {
            Some(id) => id.family,
            None => newest_family(committed, known).await?,
        };
        // An index names few families, so all of them are tried at once.
        let count = match scope {
            FamilyScope::All | FamilyScope::Live => FAMILIES,
            FamilyScope::Families(_)
            | FamilyScope::Labelled(_)
            | FamilyScope::KeyPrefix { .. }
            | FamilyScope::Key(_)
            | FamilyScope::Failures(_) => u64::MAX,
        };
        let within = cursor.filter(|id| !id.is_root());
        Ok(Self {
            newest,
            count,
            begin: within.unwrap_or(oldest_of(newest, count)),
        })
    }

    async fn read(&mut self, committed: &CommittedReader, scope: &FamilyScope) -> Result<Chunk, Problem> {
        loop {
            let page = committed
                .list_where(scope, Some(self.begin), STORED_AT_ONCE, |_| true)
                .await?;
            let rest = page.next.filter(|next| next.family <= self.newest);
            if rest.is_some() && self.begin.family < self.newest {
                // They have more rows than one read brings, and these are the oldest.
                self.count = (self.newest - self.begin.family).div_ceil(2);
                self.begin = oldest_of(self.newest, self.count);
                continue;
            }
            let is_left = |id: &ProcedureId| id.family <= self.newest;
            let mut rows: Vec<Status> = page.items.into_iter().filter(|row| is_left(&row.id)).collect();
            rows.sort_by_key(|row| (Reverse(row.id.family), row.id.member));
            let unreadable = page.unreadable.into_iter().filter(is_left).collect();
            let behind = self.advance(rest, rows.len());
            return Ok(Chunk {
                rows,
                unreadable,
                behind,
            });
        }
    }

    /// Goes behind what was read; returns where that is.
    fn advance(&mut self, rest: Option<ProcedureId>, rows: usize) -> Option<ProcedureId> {
        if let Some(next) = rest {
            // Of one family that is larger than a read.
            self.begin = next;
            return rest;
        }
        self.newest = self.begin.family.checked_sub(1)?;
        if rows < STORED_AT_ONCE / 4 {
            self.count = self.count.saturating_mul(2);
        }
        self.begin = oldest_of(self.newest, self.count);
        Some(ProcedureId::root(self.newest))
    }
}

/// Returns the root of the oldest of `count` families, if the newest of them is `newest`.
const fn oldest_of(newest: u64, count: u64) -> ProcedureId {
    ProcedureId::root(newest.saturating_sub(count - 1))
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

//! Guards: who works on which table or tablet, so that two procedures never
//! change one thing at once.
//!
//! A guard is taken in memory first, and its row is written in the same stage's
//! commit. It is let go by deleting the row in the commit of the holder's last
//! stage; until that commit can be read the guard counts as held, so that whoever
//! takes it next sees all that its holder wrote. After a restart the rows are
//! read back before any guard is taken or let go.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OnceCell;

use super::meta::{GUARDS, GuardRow};
use crate::{Procedure, ProcedureId, ReadError, StageContext, StageError};

/// How many guards already let go are forgotten each time one is taken: more
/// than one procedure takes, so that they do not pile up.
const FORGOTTEN_AT_ONCE: usize = 8;

/// How often taking looks again after it has found guards that were let go.
const LOOKS: usize = 8;

/// A wish to hold something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Want {
    resource: String,
    shared: bool,
}

impl Want {
    /// Wants it alone.
    #[must_use]
    pub fn exclusive(resource: impl Into<String>) -> Self {
        Self {
            resource: resource.into(),
            shared: false,
        }
    }

    /// Wants that nobody has it alone.
    #[must_use]
    pub fn shared(resource: impl Into<String>) -> Self {
        Self {
            resource: resource.into(),
            shared: true,
        }
    }
}

/// Names the guard of a table.
#[must_use]
pub fn table(name: &str) -> String {
    format!("table:{name}")
}

/// Names the guard of a tablet.
#[must_use]
pub fn tablet(id: &str) -> String {
    format!("tablet:{id}")
}

/// What came of a wish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// All of it is held.
    Held,
    /// Nothing is held, because this procedure holds some of it.
    Busy(ProcedureId),
}

#[derive(Debug, Clone, Copy)]
struct Hold {
    shared: bool,
    leaving: bool,
}

type Table = BTreeMap<(String, ProcedureId), Hold>;

/// The guards of one world. Cheap to clone; all clones are one table.
#[derive(Debug, Clone, Default)]
pub struct Guards(Arc<OnceCell<Mutex<Table>>>);

impl Guards {
    /// Takes all of it or nothing, in memory; again for what is held already.
    ///
    /// # Errors
    ///
    /// If the store cannot be read.
    pub(crate) async fn take<P: Procedure>(
        &self,
        cx: &StageContext<'_, P>,
        wants: &[Want],
    ) -> Result<Taken, StageError> {
        let table = self.table(cx).await?;
        self.forget(cx, table, leaving(table, FORGOTTEN_AT_ONCE)).await?;
        for _ in 0..LOOKS {
            let against = try_take(table, cx.id(), wants);
            let Some((_, first)) = against.first() else {
                return Ok(Taken::Held);
            };
            let first = *first;
            if !self.forget(cx, table, against).await? {
                return Ok(Taken::Busy(first));
            }
        }
        Err(StageError::retry("the guards changed hands too often"))
    }

    /// Gives back what was taken in this very stage and stands on no disk.
    pub(crate) async fn put_back<P: Procedure>(&self, cx: &StageContext<'_, P>) -> Result<(), StageError> {
        let table = self.table(cx).await?;
        locked(table).retain(|(_, owner), _| *owner != cx.id());
        Ok(())
    }

    /// Writes what is held in this stage's own commit.
    pub(crate) async fn persist<P: Procedure>(&self, cx: &mut StageContext<'_, P>) -> Result<(), StageError> {
        let table = self.table(cx).await?;
        for row in held_by(table, cx.id()) {
            cx.put(GUARDS, row.key(), &row)?;
        }
        Ok(())
    }

    /// Lets go of everything with this stage's commit.
    pub(crate) async fn leave<P: Procedure>(&self, cx: &mut StageContext<'_, P>) -> Result<(), StageError> {
        let table = self.table(cx).await?;
        for row in held_by(table, cx.id()) {
            cx.delete(GUARDS, row.key());
        }
        for ((_, owner), hold) in locked(table).iter_mut() {
            hold.leaving |= *owner == cx.id();
        }
        Ok(())
    }

    /// Gives the table, read from the store the first time.
    async fn table<P: Procedure>(&self, cx: &StageContext<'_, P>) -> Result<&Mutex<Table>, ReadError> {
        self.0
            .get_or_try_init(|| async {
                let rows: Vec<(Vec<u8>, GuardRow)> = cx.scan(GUARDS, "").await?;
                let held = |(_, row): (Vec<u8>, GuardRow)| {
                    (
                        (row.resource, row.owner),
                        Hold {
                            shared: row.shared,
                            leaving: false,
                        },
                    )
                };
                Ok(Mutex::new(rows.into_iter().map(held).collect()))
            })
            .await
    }

    /// Forgets these guards if their holders let go and that is on disk; tells
    /// whether all were.
    async fn forget<P: Procedure>(
        &self,
        cx: &StageContext<'_, P>,
        table: &Mutex<Table>,
        guards: Vec<(String, ProcedureId)>,
    ) -> Result<bool, StageError> {
        let mut all = true;
        for guard in guards {
            let hold = locked(table).get(&guard).copied();
            let gone = match hold {
                None => true,
                Some(hold) if !hold.leaving => false,
                Some(hold) => {
                    let row = GuardRow {
                        resource: guard.0.clone(),
                        owner: guard.1,
                        shared: hold.shared,
                    };
                    cx.get::<GuardRow>(GUARDS, row.key()).await?.is_none()
                }
            };
            if gone {
                locked(table).remove(&guard);
            }
            all &= gone;
        }
        Ok(all)
    }
}

fn locked(table: &Mutex<Table>) -> std::sync::MutexGuard<'_, Table> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes all of it, or names what stands against it.
fn try_take(table: &Mutex<Table>, owner: ProcedureId, wants: &[Want]) -> Vec<(String, ProcedureId)> {
    let mut table = locked(table);
    let against: Vec<_> = table
        .iter()
        .filter(|((resource, holder), hold)| {
            *holder != owner
                && wants
                    .iter()
                    .any(|want| want.resource == *resource && !(want.shared && hold.shared))
        })
        .map(|(guard, _)| guard.clone())
        .collect();
    if against.is_empty() {
        for want in wants {
            table.insert(
                (want.resource.clone(), owner),
                Hold {
                    shared: want.shared,
                    leaving: false,
                },
            );
        }
    }
    against
}

fn leaving(table: &Mutex<Table>, most: usize) -> Vec<(String, ProcedureId)> {
    let table = locked(table);
    table
        .iter()
        .filter(|(_, hold)| hold.leaving)
        .take(most)
        .map(|(guard, _)| guard.clone())
        .collect()
}

fn held_by(table: &Mutex<Table>, owner: ProcedureId) -> Vec<GuardRow> {
    let table = locked(table);
    table
        .iter()
        .filter(|((_, holder), _)| *holder == owner)
        .map(|((resource, owner), hold)| GuardRow {
            resource: resource.clone(),
            owner: *owner,
            shared: hold.shared,
        })
        .collect()
}

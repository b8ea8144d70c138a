//! What is stored of a saga: rows, values and notes, of a running engine or of a closed journal.

use std::collections::BTreeSet;

use procession_actors::offline::Offline;
use procession_actors::view::{HistoryPage, Status};
use procession_actors::{AskError, CommittedReader};
use procession_kernel::{Cause, HistoryEntry, ProcedureId, ProcedureState};
use procession_saga_language::Source;

use super::machine::Machine;
use super::reading::{self, Resting, SagaInstance};
use crate::executor::Executor;

/// Rows, or entries of a history, that are read at once.
const PAGE: usize = 1_000;

/// Reads one saga by its id, of a running engine or of a closed journal. A [`Saga`](super::Saga) decides about it as well.
#[derive(Clone)]
pub struct SagaReader {
    pub(super) committed: CommittedReader,
    pub(super) id: ProcedureId,
}

/// How much of a saga is read.
#[derive(Clone, Copy)]
pub(super) struct Most {
    pub(super) members: usize,
    /// Members that rest: of each the value is read.
    pub(super) rests: usize,
    pub(super) entries: usize,
}

impl Most {
    /// All of it, but of the history the newest page alone.
    pub(super) const INSTANCE: Self = Self {
        members: usize::MAX,
        rests: usize::MAX,
        entries: PAGE,
    };
}

/// What was read.
pub(super) struct Found {
    pub(super) root: Status,
    pub(super) machine: Machine,
    /// The member in which its failure began, if that is another one.
    pub(super) origin: Option<Machine>,
    pub(super) members: Vec<Status>,
    pub(super) rests: Vec<Resting>,
    pub(super) page: HistoryPage,
    /// The definition by which it goes; none if it has not begun.
    pub(super) source: Option<Source>,
    /// There is more of it than was read.
    #[cfg_attr(not(feature = "dashboard"), expect(dead_code, reason = "a picture alone is cut"))]
    pub(super) is_cut: bool,
}

impl SagaReader {
    /// Reads a saga of a running engine. Nothing is checked yet.
    #[must_use]
    pub fn live(executor: &Executor, id: ProcedureId) -> Self {
        let committed = executor.engine().committed();
        Self { committed, id }
    }

    /// Reads a saga of a closed journal. Nothing is checked yet.
    #[must_use]
    pub fn closed(journal: &Offline, id: ProcedureId) -> Self {
        let committed = journal.committed().clone();
        Self { committed, id }
    }

    /// Returns how it stands: status, context, the newest of its state instances, and who rests.
    ///
    /// # Errors
    ///
    /// [`AskError::Unknown`] if it is not known, or its result has gone.
    pub async fn instance(&self) -> Result<SagaInstance, AskError> {
        Ok(reading::instance(&self.read(Most::INSTANCE).await?))
    }

    pub(super) async fn read(&self, most: Most) -> Result<Found, AskError> {
        let root = self.row(self.id).await?;
        let machine = self.machine_at(root.state).await?;
        let members = self.members(most.members).await?;
        let rests = self.rests_of(&members, most.rests).await?;
        let page = self.newest(&members, most.entries).await?;
        let asks = reading::asking(&members).count();
        Ok(Found {
            is_cut: members.len() >= most.members || asks > most.rests || page.next.is_some(),
            source: reading::definition_of(&self.committed, &machine).await?,
            origin: self.origin(root.cause.as_ref()).await?,
            root,
            machine,
            members,
            rests,
            page,
        })
    }

    pub(super) async fn row(&self, id: ProcedureId) -> Result<Status, AskError> {
        self.committed.status(id).await?.ok_or(AskError::Unknown(id))
    }

    pub(super) async fn machine(&self, id: ProcedureId) -> Result<Machine, AskError> {
        let machine = self.committed.value::<Machine>(id).await.map_err(AskError::Read)?;
        machine.ok_or(AskError::Unknown(id))
    }

    /// Reads the machine, whose row is in this state. A saga that is kept for a while once it has succeeded notes its success
    /// in the stage of its last call. If it failed while that call was out, the note is wrong, and it never came to be kept.
    pub(super) async fn machine_at(&self, state: ProcedureState) -> Result<Machine, AskError> {
        let mut machine = self.machine(self.id).await?;
        let is_undone = matches!(state, ProcedureState::Failed | ProcedureState::RolledBack);
        // Any other member may have ended well before it is undone with those around it.
        if is_undone && self.id.member == 0 && machine.has_succeeded() {
            let stage = self.committed.stage::<Machine>(self.id).await?;
            if !stage.is_some_and(|stage| stage.is_kept()) {
                machine.forget_success();
            }
        }
        Ok(machine)
    }

    /// Reads the member in which a failure began, if that is another one.
    pub(super) async fn origin(&self, cause: Option<&Cause>) -> Result<Option<Machine>, AskError> {
        match cause.map(|cause| cause.origin).filter(|origin| *origin != self.id) {
            // It may be of another kind, if the saga is a child of another procedure.
            Some(origin) => Ok(self.committed.value::<Machine>(origin).await.unwrap_or_default()),
            None => Ok(None),
        }
    }

    /// Returns the members that this is about: the procedure itself, and what lies below it.
    pub(super) async fn members(&self, most: usize) -> Result<Vec<Status>, AskError> {
        let (mut members, mut below) = (Vec::new(), BTreeSet::from([self.id]));
        let mut from = self.id.member;
        loop {
            let page = self.committed.family(self.id.family, from, PAGE).await?;
            let is_last = page.len() < PAGE;
            for member in page {
                from = member.id.member + 1;
                // A parent has a smaller number than its children.
                if member.id == self.id || member.parent.is_some_and(|parent| below.contains(&parent)) {
                    below.insert(member.id);
                    members.push(member);
                }
            }
            if is_last || members.len() >= most {
                members.truncate(most);
                return Ok(members);
            }
        }
    }

    /// Reads the newest entries of the history that are about these members; in a large family there may be more of them.
    pub(super) async fn newest(&self, members: &[Status], most: usize) -> Result<HistoryPage, AskError> {
        let family = self.id.family;
        let mut page = self.committed.history_page(family, None, PAGE).await?;
        let mut read = page.entries.len();
        while let Some(before) = page.next.filter(|_| read < most) {
            let older = self.committed.history_page(family, Some(before), PAGE).await?;
            read += older.entries.len();
            page.next = older.next;
            page.entries.extend(older.entries);
        }
        self.retain(members, &mut page.entries);
        Ok(page)
    }

    /// Leaves the entries out that are about other members of the family.
    pub(super) fn retain(&self, members: &[Status], entries: &mut Vec<HistoryEntry>) {
        if self.id.member != 0 {
            let members: BTreeSet<u32> = members.iter().map(|member| member.id.member).collect();
            entries.retain(|entry| members.contains(&entry.member));
        }
    }

    pub(super) async fn rests_of(&self, members: &[Status], most: usize) -> Result<Vec<Resting>, AskError> {
        let mut rests = Vec::new();
        for member in reading::asking(members).take(most) {
            let machine: Option<Machine> = self.committed.value(member.id).await.map_err(AskError::Read)?;
            rests.extend(machine.and_then(|machine| reading::resting(member, &machine)));
        }
        Ok(rests)
    }
}

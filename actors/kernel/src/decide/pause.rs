//! Pause and resume: of one procedure with its descendants, of a kind, or of everything.

use super::draft::Draft;
use crate::effect::{NotNow, Refusal};
use crate::id::ProcedureId;
use crate::record::Record;
use crate::row::Row;
use crate::wait::{PauseScope, WaitReason};

impl Draft<'_> {
    /// Pauses a procedure, a kind or everything. From this commit on nothing of it is started; running stages finish.
    pub(super) fn pause(&mut self, what: PauseScope) -> Result<(), Refusal> {
        match what {
            PauseScope::One(id) => {
                let row = self.row(id).filter(|row| !row.is_ended());
                let row = row.ok_or(Refusal::NotLive(id))?;
                if !row.rare().paused {
                    self.change(id, |row| row.rare_mut().paused = true);
                }
            }
            PauseScope::Kind(_) | PauseScope::All => {
                if !self.kernel.pauses.contains(&what) {
                    self.record(Record::Pause(what, true));
                }
            }
        }
        Ok(())
    }

    /// Lifts a pause. For a single procedure, this also resumes a poisoned one, and one that reached its repeat limit.
    pub(super) fn resume_what(&mut self, what: &PauseScope) -> Result<(), Refusal> {
        match what {
            PauseScope::One(id) => self.resume_one(*id),
            PauseScope::Kind(_) | PauseScope::All => {
                if self.kernel.pauses.contains(what) {
                    self.record(Record::Pause(what.clone(), false));
                    self.resumed(what.clone());
                    self.let_go_on(None);
                }
                Ok(())
            }
        }
    }

    fn resume_one(&mut self, id: ProcedureId) -> Result<(), Refusal> {
        // A paused procedure that has ended meanwhile still holds back its descendants.
        let row = self.row(id).filter(|row| !row.is_ended() || row.rare().paused);
        let row = row.ok_or(Refusal::NotLive(id))?;
        if row.rare().paused {
            self.change(id, |row| row.clear_rare(|rare| rare.paused = false));
            self.let_go_on(Some(id));
            return Ok(());
        }
        if !matches!(row.wait, Some(WaitReason::Poison | WaitReason::RepeatLimit)) {
            let text = format!("{id} itself is not paused, so there is nothing to resume");
            return Err(Refusal::NotNow(NotNow::NotPaused, text));
        }
        self.run_parked(id)
    }

    /// Starts a procedure that was poisoned, or that reached its repeat limit.
    pub(super) fn run_parked(&mut self, id: ProcedureId) -> Result<(), Refusal> {
        if let Some(scope) = self.scope_of(id).filter(|_| self.is_stopped(id)) {
            let text = format!("{id} fails together with {scope}; it is rolled back, and does not run again");
            return Err(Refusal::NotNow(NotNow::Failing, text));
        }
        if let Some(mut row) = self.take(id) {
            // A person has looked at what the earlier runs left.
            row.repeated = 0;
            self.set_going(&mut row, None);
            self.put(row);
        }
        Ok(())
    }

    /// Starts everything that is no longer held back, first come, first served.
    fn let_go_on(&mut self, below: Option<ProcedureId>) {
        let kernel = self.kernel;
        // A paused family is never frozen, so the awake ones suffice.
        let one = below.and_then(|id| kernel.families.get(&id.family));
        let all = below.is_none().then(|| kernel.families.awake());
        let families = one.into_iter().chain(all.into_iter().flatten());
        let waits =
            |row: &&Row| row.wait == Some(WaitReason::Paused) && !self.is_paused(self.row(row.id).unwrap_or(row));
        let mut held: Vec<&Row> = families
            .flat_map(|family| family.members.iter().map(|row| &**row))
            .filter(waits)
            .collect();
        held.sort_by_key(|row| (row.since, row.id));
        let held: Vec<ProcedureId> = held.into_iter().map(|row| row.id).collect();
        for id in held {
            if self.scope_of(id) == Some(id) {
                self.try_undo_again(id);
            } else if self.is_stopped(id) {
                // It runs no more stages; those that it executed are undone with the rest.
            } else if let Some(mut row) = self.take(id) {
                self.set_going(&mut row, None);
                self.put(row);
            }
        }
        if kernel.alone.is_none() {
            self.let_suspect_go();
        }
    }
}

//! The calm after the storm: no faults, a helpful operator, and everything must come to its end.

use procession_kernel::{Blob, Event, JoinRuling, StageOutcome, WaitReason};

use super::check;
use super::draw::stage;
use super::play::{Play, operator};

/// Rounds of calm after which whatever still moves is taken for a loop.
const CALM_MAX: usize = 20_000;

impl Play {
    /// No more faults, no more requests but those of a helpful operator:
    /// every family must come to its end.
    pub(crate) fn settle(&mut self) -> Result<(), String> {
        self.shell.log.push("--- calm".to_owned());
        for _ in 0..CALM_MAX {
            self.shell.sync(usize::MAX)?;
            if !self.calm_step()? {
                check::at_rest(&self.shell.kernel)?;
                if self.shell.permits_left() {
                    return Err("a permit is left over".to_owned());
                }
                return Ok(());
            }
        }
        Err(format!(
            "it does not come to rest: {:?}",
            check::at_rest(&self.shell.kernel)
        ))
    }

    fn calm_step(&mut self) -> Result<bool, String> {
        if let Some((out, advance)) = self.shell.running.pop_first() {
            let outcome = if out.1.0 % 3 == 0 {
                StageOutcome::Next(stage(9))
            } else {
                StageOutcome::Done(Blob::default())
            };
            self.report(&advance, outcome)?;
        } else if let Some(undo) = self.shell.undos.pop() {
            self.undone(&undo, Ok(()))?;
        } else if !self.shell.loads.is_empty() {
            self.load_one()?;
        } else if let Some((parent, first, seen)) = self.shell.judges.pop() {
            self.shell.decide(Event::JoinRuled {
                parent,
                first,
                seen,
                ruling: JoinRuling::Met,
            })?;
        } else if !self.shell.grants.is_empty() {
            self.grant()?;
        } else if self.shell.kernel.next_deadline().is_some() {
            self.time_passes()?;
        } else {
            return self.helped();
        }
        Ok(true)
    }

    /// What waits for somebody outside gets it.
    fn helped(&mut self) -> Result<bool, String> {
        let rows = self.shell.kernel.families().values().flat_map(|family| &family.members);
        let waits: Vec<_> = rows.filter_map(|row| Some((row.id, row.wait.clone()?))).collect();
        for (id, wait) in waits {
            let ticket = self.shell.ticket();
            let event = match wait {
                WaitReason::Event(name, _) => Event::Signalled {
                    ticket,
                    id,
                    name,
                    payload: Blob::default(),
                    key: None,
                },
                WaitReason::RollbackFailed if id.family % 2 == 0 => Event::UndoSkipRequested(ticket, id, operator()),
                WaitReason::RollbackFailed => Event::UndoRetryRequested(ticket, id, operator()),
                WaitReason::Poison => Event::ResumeRequested(ticket, id, operator()),
                WaitReason::Width
                | WaitReason::Permit(_)
                | WaitReason::Children
                | WaitReason::Timer(_)
                | WaitReason::Backoff(..)
                | WaitReason::Queue
                | WaitReason::Suspect
                | WaitReason::Quarantined => continue,
            };
            self.shell.decide(event)?;
            return Ok(true);
        }
        Ok(false)
    }
}

//! Requests of operators: what must be read from the store about a verb's target before the verb is decided.

use procession_kernel::{Kernel, ProcedureId, Row, StoredTarget, Verb};

use super::Requests;
use crate::error::AskError;

/// What must be read before a verb is decided.
pub(in crate::supervisor) enum ToRead {
    /// Nothing: the kernel holds everything that the decision needs.
    Nothing,
    /// The row of this procedure, which may have finished.
    FinishedRow(ProcedureId),
    /// The row of this root, and the value that it was submitted with.
    Submitted(ProcedureId),
    /// The whole family, for its archive.
    QuarantinedFamily(u64),
}

/// Returns what must be read before a verb is decided.
pub(in crate::supervisor) const fn to_read(verb: &Verb) -> ToRead {
    match verb {
        Verb::OverrideResult(id, _) => ToRead::FinishedRow(*id),
        Verb::Acknowledge(id) => ToRead::FinishedRow(ProcedureId::root(id.family)),
        Verb::RunAgain(id) => ToRead::Submitted(ProcedureId::root(id.family)),
        Verb::Discharge(family) => ToRead::QuarantinedFamily(*family),
        Verb::Abort(_)
        | Verb::Pause(_)
        | Verb::Resume(_)
        | Verb::RetryNow(_)
        | Verb::Bypass(..)
        | Verb::RetryUndo(_)
        | Verb::SkipUndo(_)
        | Verb::SetPriority(..)
        | Verb::SetLimit(..)
        | Verb::AuditReveal(..)
        | Verb::Signal(..)
        | Verb::Decide(..)
        | Verb::Submit(_)
        | Verb::Drain(_) => ToRead::Nothing,
    }
}

impl Requests {
    /// Returns a verb together with the row that was read of procedure `id`. The verb must be decided at once.
    pub(in crate::supervisor) fn verb_on_row(
        &mut self,
        kernel: &Kernel,
        verb: Verb,
        id: ProcedureId,
        row: Option<Row>,
    ) -> Result<(Verb, StoredTarget), AskError> {
        if let Verb::Acknowledge(member) = verb {
            let row = self.result_of(kernel, member, row)?;
            // Any member names its family. The audit log names the root.
            return Ok((Verb::Acknowledge(id), StoredTarget::Row(row)));
        }
        self.overtake(id.family);
        let stored = row.map_or(StoredTarget::None, |row| StoredTarget::Row(Box::new(row)));
        Ok((verb, stored))
    }
}

//! Discharges: a quarantined family moves to the archive, and gives up everything that it holds.

use std::collections::BTreeMap;

use procession_kernel::{
    Blob, EvictedFamily, Kernel, LabelDigest, NotNow, OperatorRequest, ProcedureId, StoredTarget, Timestamp, WaitReason,
};

use super::Requests;
use crate::error::AskError;
use crate::export::{EXPORT_MAX, FamilyExport};
use crate::journal::Space;
use crate::read::CommittedReader;
use crate::supervisor::quarantine::Quarantine;

impl Requests {
    /// Begins the discharge of a quarantined family; a dry run begins none. Refuses it if another is under way, or if the
    /// caller has seen another revision: a quarantine removes the row from the kernel, and its revision with it.
    pub(in crate::supervisor) fn begin_discharge(
        &mut self,
        kernel: &Kernel,
        family: u64,
        by: &OperatorRequest,
    ) -> Result<(), AskError> {
        if self.discharging.contains(&family) {
            return Err(under_way(format!("the family {family} is being discharged")));
        }
        let row = kernel.row(ProcedureId::root(family));
        if let Some((expected, row)) = by.expected.zip(row).filter(|(expected, row)| *expected != row.revision) {
            return Err(AskError::Revised {
                expected,
                found: row.revision,
                state: row.state,
            });
        }
        if !by.dry_run {
            self.discharging.insert(family);
        }
        Ok(())
    }

    /// Reads a quarantined family whole, for its archive. Reads nothing if the family is not quarantined. Nothing of
    /// such a family moves any more, so the disk holds all of it once the newest decision has settled.
    pub(in crate::supervisor) async fn read_for_discharge(
        family: u64,
        why: Option<String>,
        settled: impl Future<Output = Result<(), AskError>>,
        committed: CommittedReader,
    ) -> Result<StoredTarget, AskError> {
        settled.await?;
        let Some(why) = why else { return Ok(StoredTarget::None) };
        let export = committed.export(family, EXPORT_MAX).await?;
        let mut export = export.ok_or(AskError::Unknown(ProcedureId::root(family)))?;
        export.quarantined = Some(why);
        let labels = committed.label_digests(&export).await?;
        let archive = Blob::from(export.to_bytes()?);
        Ok(StoredTarget::Archive(archive, Box::new(doomed(&export, labels))))
    }

    /// Records that a discharge was answered, so that another may begin.
    pub(in crate::supervisor) fn discharge_answered(&mut self, family: u64) {
        self.discharging.remove(&family);
    }

    /// Forgets a family that is in the archive.
    pub(in crate::supervisor) fn discharged(&mut self, family: u64) {
        self.discharging.remove(&family);
        self.outcomes.discharged(family);
    }
}

fn under_way(text: String) -> AskError {
    AskError::NotNow {
        kind: NotNow::UnderWay,
        text,
    }
}

/// Refuses the discharge of a family whose quarantine waits for what the limiter answers.
pub(in crate::supervisor) fn being_quarantined(family: u64) -> AskError {
    under_way(format!("the family {family} is being quarantined; ask again"))
}

/// Returns why a family is quarantined, if it is: since a start, since a failed load, or because its history has a
/// hole, which `holes` may name.
pub(in crate::supervisor) fn why_quarantined(
    kernel: &Kernel,
    quarantine: &Quarantine,
    holes: &BTreeMap<ProcedureId, String>,
    family: u64,
) -> Option<String> {
    let broken = || {
        let family = kernel.families().get(&family)?;
        let mut members = family.members.iter();
        members.find(|row| row.wait == Some(WaitReason::Quarantined))
    };
    quarantine.why(family).map(str::to_owned).or_else(|| {
        let row = broken()?;
        let hole = holes.get(&row.id);
        let hole = hole.map(|hole| format!(": {hole}")).unwrap_or_default();
        Some(format!(
            "the history of {} has a hole, so it cannot be rolled back{hole}",
            row.id
        ))
    })
}

/// Names every key of a family as it is on disk, because its rows may not be readable.
fn doomed(export: &FamilyExport, labels: Vec<LabelDigest>) -> EvictedFamily {
    let keys = export
        .entries
        .iter()
        // Its idempotency key is named in a field of its own.
        .filter(|entry| entry.space != Space::Keys.name())
        .map(|entry| (entry.space.clone(), entry.key.clone()));
    EvictedFamily {
        family: export.family,
        due: Timestamp::default(),
        members: export.members(),
        submitted: false,
        history_from: 0,
        history: 0,
        signals: Vec::new(),
        labels,
        labelled: Vec::new(),
        failed: None,
        key: export.idempotency_key(),
        key_until: None,
        raw: keys.collect(),
    }
}

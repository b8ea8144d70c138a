//! Discharges: a quarantined family moves to the archive, and gives up everything that it holds.

use std::collections::BTreeMap;

use procession_kernel::{
    Blob, EvictedFamily, Kernel, NotNow, OperatorRequest, ProcedureId, StoredTarget, Timestamp, WaitReason,
};

use super::Requests;
use crate::error::AskError;
use crate::export::{EXPORT_MAX, FamilyExport};
use crate::journal::Space;
use crate::read::CommittedReader;
use crate::supervisor::quarantine::Quarantine;

/// The next step of a discharge.
pub(in crate::supervisor) struct Discharging {
    /// Why the family must be quarantined before the verb is decided, if it is live and the request is no dry run.
    pub(in crate::supervisor) quarantine: Option<String>,
    /// The family in the form that goes into the archive, if it is quarantined.
    pub(in crate::supervisor) stored: StoredTarget,
}

impl Requests {
    /// Reads a quarantined family whole, for its archive. Reads nothing if the family is not quarantined. Nothing of
    /// such a family moves any more, so the disk holds all of it once the newest decision has settled.
    pub(in crate::supervisor) fn read_for_discharge<S>(
        &self,
        family: u64,
        why: Option<String>,
        settled: S,
        committed: CommittedReader,
    ) -> impl Future<Output = Result<StoredTarget, AskError>> + use<S>
    where
        S: Future<Output = Result<(), AskError>>,
    {
        let is_under_way = self.discharging.contains(&family);
        async move {
            settled.await?;
            match why {
                Some(_) if is_under_way => Err(AskError::NotNow {
                    kind: NotNow::UnderWay,
                    text: format!("the family {family} is being discharged"),
                }),
                Some(why) => {
                    let export = committed.export(family, EXPORT_MAX).await?;
                    let mut export = export.ok_or(AskError::Unknown(ProcedureId::root(family)))?;
                    export.quarantined = Some(why);
                    let labels = committed.label_digests(&export).await?;
                    let archive = Blob::from(export.to_bytes()?);
                    Ok(StoredTarget::Archive(archive, Box::new(doomed(&export, labels))))
                }
                None => Ok(StoredTarget::None),
            }
        }
    }

    /// Returns what to decide for a family that was read. `why` is asked again, because another request may have
    /// discharged the family during the read.
    pub(in crate::supervisor) fn discharge(
        &mut self,
        kernel: &Kernel,
        family: u64,
        read: StoredTarget,
        why: Option<String>,
        by: &OperatorRequest,
    ) -> Result<Discharging, AskError> {
        // The quarantine below removes the family from the kernel, and its revision with it.
        let row = kernel.row(ProcedureId::root(family));
        if let Some((expected, row)) = by.expected.zip(row).filter(|(expected, row)| *expected != row.revision) {
            return Err(AskError::Revised {
                expected,
                found: row.revision,
                state: row.state,
            });
        }
        let stored = if why.is_some() { read } else { StoredTarget::None };
        let why = why.filter(|_| !by.dry_run);
        if why.is_some() {
            self.discharging.insert(family);
        }
        Ok(Discharging {
            quarantine: why.filter(|_| kernel.families().contains_key(&family)),
            stored,
        })
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
fn doomed(export: &FamilyExport, labels: Vec<u64>) -> EvictedFamily {
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
        failed: None,
        key: export.idempotency_key(),
        key_until: None,
        raw: keys.collect(),
    }
}

//! Discharges: a quarantined family goes into the archive, and gives up all that it holds.

use procession_kernel::{Blob, Doomed, Kernel, OperatorRequest, ProcedureId, Timestamp, Verb, WaitReason};

use super::Requests;
use crate::error::AskError;
use crate::export::{EXPORT_MAX, FamilyExport};
use crate::journal::Space;
use crate::read::CommittedReader;
use crate::supervisor::quarantine::Quarantine;

/// A family as it was read for its discharge: its archive, and the keys that are deleted.
pub(in crate::supervisor) struct ReadFamily {
    archive: Blob,
    doomed: Box<Doomed>,
}

/// What a discharge does next.
pub(in crate::supervisor) struct Discharging {
    /// Why the family must be quarantined before the verb is decided, if it is live and the request is no dry run.
    pub(in crate::supervisor) quarantine: Option<String>,
    pub(in crate::supervisor) verb: Verb,
}

impl Requests {
    /// Reads a quarantined family whole, for its archive; `None` if it is not quarantined. Nothing of such a family
    /// moves any more, so what is on disk when the newest decision has settled is all of it.
    pub(in crate::supervisor) fn read_for_discharge<S>(
        &self,
        family: u64,
        why: Option<String>,
        settled: S,
        committed: CommittedReader,
    ) -> impl Future<Output = Result<Option<ReadFamily>, AskError>> + use<S>
    where
        S: Future<Output = Result<(), AskError>>,
    {
        let is_under_way = self.discharging.contains(&family);
        async move {
            settled.await?;
            match why {
                Some(_) if is_under_way => Err(AskError::NotNow(format!("the family {family} is being discharged"))),
                Some(why) => {
                    let export = committed.export(family, EXPORT_MAX).await?;
                    let mut export = export.ok_or(AskError::Unknown(ProcedureId::root(family)))?;
                    export.quarantined = Some(why);
                    Ok(Some(ReadFamily {
                        archive: Blob::from(export.to_bytes()?),
                        doomed: Box::new(doomed(&export)),
                    }))
                }
                None => Ok(None),
            }
        }
    }

    /// Returns what to decide for a family that was read. `why` is asked for anew: another request may have
    /// discharged the family during the read.
    pub(in crate::supervisor) fn discharge(
        &mut self,
        kernel: &Kernel,
        family: u64,
        read: Option<ReadFamily>,
        why: Option<String>,
        by: &OperatorRequest,
    ) -> Result<Discharging, AskError> {
        // The quarantine below takes the family out of the kernel, and its revision with it.
        let row = kernel.row(ProcedureId::root(family));
        if let Some((expected, row)) = by.expected.zip(row).filter(|(expected, row)| *expected != row.revision) {
            return Err(AskError::Revised {
                expected,
                found: row.revision,
            });
        }
        let (archive, doomed) = match read {
            Some(read) if why.is_some() => (read.archive, read.doomed),
            Some(_) | None => (Blob::default(), Box::new(nothing(family))),
        };
        let why = why.filter(|_| !by.dry_run);
        if why.is_some() {
            self.discharging.insert(family);
        }
        Ok(Discharging {
            quarantine: why.filter(|_| kernel.families().contains_key(&family)),
            verb: Verb::Discharge(family, archive, doomed),
        })
    }

    /// Notes that a discharge was answered, so that another may begin.
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
/// hole.
pub(in crate::supervisor) fn why_quarantined(kernel: &Kernel, quarantine: &Quarantine, family: u64) -> Option<String> {
    let broken = || {
        let family = kernel.families().get(&family)?;
        let mut members = family.members.iter();
        members.find(|row| row.wait == Some(WaitReason::Quarantined))
    };
    quarantine.why(family).map(str::to_owned).or_else(|| {
        let row = broken()?;
        Some(format!(
            "the history of {} has a hole, so it cannot be rolled back",
            row.id
        ))
    })
}

/// Names every key of a family as it is on disk: its rows may not be readable.
fn doomed(export: &FamilyExport) -> Doomed {
    let keys = export
        .entries
        .iter()
        // Its idempotency key is named in a field of its own.
        .filter(|entry| entry.space != Space::Keys.name())
        .map(|entry| (entry.space.clone(), entry.key.clone()));
    Doomed {
        members: export.members(),
        key: export.idempotency_key(),
        raw: keys.collect(),
        ..nothing(export.family)
    }
}

fn nothing(family: u64) -> Doomed {
    Doomed {
        family,
        due: Timestamp::default(),
        members: 0,
        history: 0,
        signals: Vec::new(),
        key: None,
        key_until: None,
        raw: Vec::new(),
    }
}

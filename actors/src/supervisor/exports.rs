//! The discharge of a quarantined family: it is exported, archived, and forgotten.

use actix::prelude::*;
use procession_kernel::{Blob, Doomed, Operated, OperatorRequest, ProcedureId, Verb, WaitReason};

use super::Supervisor;
use crate::error::AskError;
use crate::export::{EXPORT_MAX, FamilyExport};
use crate::journal::Space;
use crate::messages::Discharge;

/// What a discharge puts away, and what it deletes.
type PutAway = (Blob, Box<Doomed>);

impl Supervisor {
    /// Returns why a family is quarantined: by a start, since then, or because its history has a hole.
    fn why_quarantined(&self, family: u64) -> Option<String> {
        let is_broken = || {
            let family = self.kernel.families().get(&family)?;
            let mut members = family.members.iter();
            members.find(|row| row.wait == Some(WaitReason::Quarantined))
        };
        self.quarantine.why(family).map(str::to_owned).or_else(|| {
            let row = is_broken()?;
            let hole = self.holes.all().get(&row.id);
            let hole = hole.map(|hole| format!(": {hole}")).unwrap_or_default();
            Some(format!(
                "the history of {} has a hole, so it cannot be rolled back{hole}",
                row.id
            ))
        })
    }

    fn discharge(
        &mut self,
        family: u64,
        read: Result<Option<PutAway>, AskError>,
        by: OperatorRequest,
        ctx: &mut Context<Self>,
    ) -> ResponseFuture<Result<Operated, AskError>> {
        let put_away = match read {
            Ok(put_away) => put_away,
            Err(error) => return Box::pin(async move { Err(error) }),
        };
        // Another may have discharged it meanwhile.
        let why = self.why_quarantined(family);
        let (archive, doomed) = put_away
            .filter(|_| why.is_some())
            .unwrap_or_else(|| (Blob::default(), Box::new(nothing(family))));
        // Read before it is quarantined: its rows, and with them its revision, leave memory then.
        let row = self.kernel.row(ProcedureId::root(family));
        if let Some((expected, row)) = by.expected.zip(row).filter(|(expected, row)| *expected != row.revision) {
            let (found, state) = (row.revision, row.state);
            return Box::pin(async move { Err(AskError::Revised { expected, found, state }) });
        }
        if let (Some(why), false) = (why, by.dry_run) {
            if self.kernel.families().contains_key(&family) {
                self.quarantine_family(family, why, ctx);
            }
            self.discharging.insert(family);
        }
        self.operate(Verb::Discharge(family, archive, doomed), by, ctx)
    }

    /// Forgets a family that is in the archive, and frees all that it held.
    pub(super) fn discharged(&mut self, family: u64) {
        self.quarantine.remove(family);
        self.discharging.remove(&family);
        self.dispatch.forget_family(family);
        self.metrics.show_quarantined(self.quarantine.len());
        self.outcome_waiters.forget_family(family);
        self.holes.forget_family(family);
    }
}

impl Handler<Discharge> for Supervisor {
    type Result = ResponseActFuture<Self, Result<Operated, AskError>>;

    /// All of it is read first, and put into the archive as it stands on disk: nothing of it moves any more.
    fn handle(&mut self, Discharge { family, by }: Discharge, _: &mut Self::Context) -> Self::Result {
        let why = self.why_quarantined(family);
        let under_way = self.discharging.contains(&family);
        let (settled, committed) = (self.settled(), self.committed());
        let read = async move {
            settled.await?;
            match why {
                Some(_) if under_way => Err(AskError::NotNow(format!("the family {family} is being discharged"))),
                Some(why) => {
                    let export = committed.export(family, EXPORT_MAX).await?;
                    let mut export = export.ok_or(AskError::Unknown(ProcedureId::root(family)))?;
                    export.quarantined = Some(why);
                    Ok(Some((Blob::from(export.to_bytes()?), Box::new(doomed(&export)))))
                }
                None => Ok(None),
            }
        };
        Box::pin(read.into_actor(self).then(move |read, supervisor, ctx| {
            let operated = supervisor.discharge(family, read, by, ctx);
            operated.into_actor(supervisor).map(move |operated, supervisor, _| {
                supervisor.discharging.remove(&family);
                operated
            })
        }))
    }
}

/// Names every key of a family as it is: its rows may not be readable.
fn doomed(export: &FamilyExport) -> Doomed {
    let keys = export
        .entries
        .iter()
        // Its idempotency key is named as such.
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
        due: procession_kernel::Timestamp::default(),
        members: 0,
        history: 0,
        signals: Vec::new(),
        key: None,
        key_until: None,
        raw: Vec::new(),
    }
}

//! What the start has found: the report, which is kept, and the survey of all rows, which lasts until the engine
//! opens.

use std::collections::BTreeMap;
use std::time::Duration;

use actix::prelude::*;
use procession_kernel::{Kernel, Kind, ProcedureId, ProcedureState};

use super::recovery::{Loaded, Survey};
use crate::error::StartError;
use crate::view::Recovered;

/// Opens the engine for messages: recovery hooks around the restored claims, then the start's own commit.
#[derive(Message)]
#[rtype(result = "Result<(), StartError>")]
pub(crate) struct Open;

/// What the start has found.
pub(super) struct Start {
    report: Recovered,
    /// Consumed when the engine opens.
    survey: Survey,
}

impl Start {
    pub(super) fn new(loaded: &mut Loaded) -> Self {
        Self {
            report: std::mem::take(&mut loaded.report),
            survey: std::mem::take(&mut loaded.survey),
        }
    }

    pub(super) fn take_unfinished(&mut self) -> BTreeMap<(Kind, ProcedureState), u64> {
        std::mem::take(&mut self.survey.unfinished)
    }

    pub(super) fn take_claimants(&mut self) -> Vec<ProcedureId> {
        std::mem::take(&mut self.survey.claimants)
    }

    pub(super) fn quarantined(&mut self, kernel: &Kernel, family: u64, why: &str) -> bool {
        let Some(found) = kernel.families().get(&family) else {
            return false;
        };
        self.report.families -= 1;
        self.report.procedures -= found.members.iter().filter(|row| !row.is_ended()).count();
        self.report.quarantined.push((family, why.to_owned()));
        true
    }

    pub(super) fn started(&mut self, opening: Duration) -> Duration {
        let report = &mut self.report;
        report.opening = opening;
        tracing::info!(
            families = report.families,
            procedures = report.procedures,
            quarantined = report.quarantined.len(),
            read_ms = %report.took.as_millis(),
            opening_ms = %opening.as_millis(),
            "the engine has started"
        );
        report.took + opening
    }

    pub(super) const fn report(&self) -> &Recovered {
        &self.report
    }
}

//! The state of a closed journal: its live rows in a kernel as a start would read them, and in an admission as a
//! start would restore them. Nothing runs from there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use procession_kernel::{
    Admissions, HistoryEntry, Kernel, Kind, LimitKey, LimitUse, PauseScope, ProcedureId, Rules, Seq, Timestamp,
    WaitReason,
};

use super::Offline;
use crate::clock::{Clock, SystemClock};
use crate::error::{AskError, StartError};
use crate::journal::Reader;
use crate::limiter::WaitingClaim;
use crate::read::{CommittedReader, Quarantined};
use crate::supervisor::admission::claims::Claims;
use crate::supervisor::admission::requests::AdmissionRequests;
use crate::supervisor::dispatch::rollback_stacks::holes;
use crate::supervisor::health::diagnosis_input::{DiagnosisInput, Queues, limit_views, lock_views};
use crate::supervisor::health::explain::stored;
use crate::supervisor::health::failures::count;
use crate::supervisor::health::in_order;
use crate::supervisor::lifecycle::recovery::{self, Code};
use crate::thresholds::{Measures, Thresholds};
use crate::view::{Explanation, LockView, NAMED, Recovered, Status, Verdict};

/// How the unfinished procedures of a closed journal relate to each other.
///
/// The rows do not tell everything. Capacities set by code are not on disk, nor is how often a request was overtaken
/// in a queue. The next undo of a family that rolls back is not looked up.
pub struct OfflineState {
    kernel: Kernel,
    claims: Claims,
    queues: Queues,
    admissions: Admissions,
    /// Limits whose capacity is not on disk.
    unknown: BTreeSet<LimitKey>,
    quarantined: Quarantined,
    /// What the histories of those that roll back lack.
    holes: BTreeMap<ProcedureId, String>,
    report: Recovered,
    thresholds: Measures,
    /// The verdict on the failures that nobody has acknowledged.
    failures: Option<Verdict>,
    now: Timestamp,
}

impl Offline {
    /// Reads all live families, and which of them wait for each other.
    ///
    /// # Errors
    ///
    /// [`StartError`] if the store cannot be read, or its own numbers are damaged.
    pub async fn state(&self) -> Result<OfflineState, StartError> {
        let clock = Arc::new(SystemClock);
        let now = clock.now();
        let loaded = recovery::look(Arc::clone(&self.store), Rules::default(), Code::Any, clock).await?;
        let kernel = loaded.kernel;
        let limits = kernel.limits().iter().map(|(key, limit)| (key.clone(), *limit));
        let mut admissions = Admissions::new(limits);
        admissions.move_to(now);
        for (key, window) in kernel.rates().windows() {
            admissions.restore_window(key, window.clone());
        }
        let mut claims = Claims::new(Vec::new());
        let mut requests = AdmissionRequests {
            kernel: &kernel,
            claims: &mut claims,
        };
        let (held, waiting) = requests.restored(loaded.quarantined_holders, &loaded.survey.claimants);
        for request in held {
            admissions.restore(request);
        }
        let unknown = fill(&kernel, &waiting, &mut admissions);
        let failures = count(&Reader::new(&self.store)).await;
        // Which undo a rollback waits for is on its stack, which is not read here.
        for id in waiting.into_iter().filter(|id| !kernel.is_stopped(*id)) {
            if let Some(request) = requests.request_of(id) {
                admissions.request(request);
            }
        }
        let holes = self.holes(&kernel, loaded.stacks).await;
        Ok(OfflineState {
            holes,
            queues: Queues::new(WaitingClaim::all(&admissions), &claims, &kernel),
            quarantined: Arc::new(loaded.report.quarantined.iter().cloned().collect()),
            report: loaded.report,
            thresholds: Measures::new(Thresholds::default(), []),
            failures: failures.and_then(|failures| failures.verdict()),
            kernel,
            claims,
            admissions,
            unknown,
            now,
        })
    }

    /// Compares the histories of those that roll back with what their rows count, as an engine does before it goes on.
    async fn holes(&self, kernel: &Kernel, stacks: BTreeMap<u64, Vec<HistoryEntry>>) -> BTreeMap<ProcedureId, String> {
        let mut holes = BTreeMap::new();
        for (family, stack) in stacks {
            let mut found = holes::of_family(kernel, family, &stack);
            // To a start, a history with an entry that cannot be read has none at all.
            if !found.is_empty()
                && let Err(error) = self.reader.history(family, usize::MAX).await
            {
                found.values_mut().for_each(|hole| *hole = error.to_string());
            }
            holes.append(&mut found);
        }
        holes
    }

    /// Explains why a procedure is where it is, as far as the rows tell.
    ///
    /// # Errors
    ///
    /// [`AskError::Unknown`] if the journal does not know the procedure; [`AskError`] if its row cannot be read.
    pub async fn explain(&self, state: &OfflineState, id: ProcedureId) -> Result<Explanation, AskError> {
        match state.explain(id) {
            Some(explanation) => Ok(explanation),
            None => {
                let committed = CommittedReader::new(self.reader.clone(), Arc::clone(&state.quarantined));
                stored(&committed, id).await
            }
        }
    }
}

/// Capacities set by code are not on disk. If a procedure waits for a permit, all permits are assumed to be out.
fn fill(kernel: &Kernel, waiting: &[ProcedureId], admissions: &mut Admissions) -> BTreeSet<LimitKey> {
    let wanted = waiting.iter().filter_map(|id| match &kernel.row(*id)?.wait {
        Some(WaitReason::Permit(key)) if !kernel.limits().contains_key(key) => Some(key.clone()),
        Some(_) | None => None,
    });
    let unknown: BTreeSet<LimitKey> = wanted.collect();
    for key in &unknown {
        let used = admissions.usage_of(key).map_or(0, |usage| usage.used);
        admissions.set_limit(key.clone(), Some(used));
    }
    unknown
}

impl OfflineState {
    fn explain(&self, id: ProcedureId) -> Option<Explanation> {
        let lacks = self.kernel.lacks(id);
        let missing = lacks.and_then(|(asker, lacking)| self.admissions.missing(self.claims.claim(asker)?, &lacking));
        let input = DiagnosisInput {
            missing: missing.as_ref(),
            ..self.input()
        };
        let mut explanation = input.explain(id)?;
        if let Some(crate::view::Particulars::Permit(limit)) = &mut explanation.particulars {
            // The capacity is not on disk.
            limit.limit = limit.limit.filter(|_| !self.unknown.contains(&limit.key));
        }
        Some(explanation)
    }

    fn input(&self) -> DiagnosisInput<'_> {
        DiagnosisInput {
            kernel: &self.kernel,
            claims: &self.claims,
            queues: &self.queues,
            missing: None,
            quarantined: &self.quarantined,
            holes: &self.holes,
            thresholds: &self.thresholds,
            now: self.now,
            opened: self.now,
            durable: Seq(u64::MAX),
            called: &|_| "was begun, and is called again at the next start",
            usual: &|_| None,
            unserved: None,
            // The engine's own bounds are not on disk.
            bounds: &self.kernel.rules().bounds,
            knows_bounds: false,
        }
    }

    /// Returns everything that is stuck or damaged, in the order of the rules.
    #[must_use]
    pub fn verdicts(&self) -> Vec<Verdict> {
        let input = self.input();
        let mut verdicts = input.verdicts();
        verdicts.extend(input.rollbacks_that_will_park());
        verdicts.extend(self.failures.clone());
        in_order(&mut verdicts);
        verdicts
    }

    /// Marks a procedure as quarantined if a start would quarantine its family.
    #[must_use]
    pub fn shown(&self, status: Status) -> Status {
        match self.quarantined.contains_key(&status.id.family) {
            true => status.quarantined(),
            false => status,
        }
    }

    /// Returns every pause that covers a procedure: of everything, of its kind, its own, and those of its ancestors.
    #[must_use]
    pub fn pauses_of(&self, id: ProcedureId) -> Vec<PauseScope> {
        self.kernel.pauses_of(id)
    }

    /// Returns the pauses of kinds and of everything.
    #[must_use]
    pub const fn pauses(&self) -> &BTreeSet<PauseScope> {
        self.kernel.pauses()
    }

    /// Returns every lock that is held or wanted.
    #[must_use]
    pub fn locks(&self) -> Vec<LockView> {
        lock_views(self.admissions.locks(), &self.claims, &self.kernel)
    }

    /// Returns every limit with a permit that is held or wanted, or with a capacity set at run time. A capacity set
    /// by code is unknown and `None`.
    #[must_use]
    pub fn limits(&self) -> Vec<LimitUse> {
        let mut limits = limit_views(self.admissions.limit_details(NAMED), &self.claims, &self.kernel);
        for limit in &mut limits {
            if self.unknown.contains(&limit.key) {
                limit.limit = None;
            }
        }
        limits
    }

    /// Returns the number of unfinished procedures of each kind and version.
    #[must_use]
    pub fn kinds(&self) -> BTreeMap<(Kind, u16), usize> {
        let mut kinds = BTreeMap::new();
        for (_, family) in self.kernel.families().iter() {
            for row in family.members.iter().filter(|row| !row.is_ended()) {
                *kinds.entry((row.kind.clone(), row.version)).or_default() += 1;
            }
        }
        kinds
    }

    /// Returns what a start would recover, and what it would quarantine whatever kinds are registered.
    #[must_use]
    pub const fn recovered(&self) -> &Recovered {
        &self.report
    }
}

#[cfg(test)]
mod tests;

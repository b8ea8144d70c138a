//! The list of failures: each root that failed is on it until somebody acknowledges that, and never again.

use std::collections::{BTreeMap, BTreeSet};

use procession::ProcedureId;
use procession::status::{CauseKind, FailureEntry};
use procession::testkit::{Run, Trouble};
use procession_actors::journal::Space;
use procession_kernel::Row;

use super::damage::families;
use super::story::Story;

/// More failures than any history has.
const ALL: usize = 1_000;

/// What is known of failures, and of who acknowledged them.
#[derive(Default)]
pub(crate) struct Failures {
    /// Families that somebody asked to acknowledge: without an answer nobody knows whether it was done.
    asked: BTreeSet<u64>,
    /// Those whose acknowledgement was answered.
    acknowledged: BTreeSet<u64>,
    /// Families that had ended when nothing moved last, and whether their roots failed.
    ended: BTreeMap<u64, bool>,
}

impl Failures {
    /// Somebody asks for what acknowledges a failure.
    pub(crate) fn may_go(&mut self, family: u64) {
        self.asked.insert(family);
    }

    /// Nobody is told of the failure any more.
    pub(crate) fn acknowledge(&mut self, family: u64) {
        self.acknowledged.insert(family);
    }

    /// Returns `true` if a root has failed and ended for good, `false` if it succeeded, `None` if it may yet do either.
    pub(crate) fn has_failed(&self, family: u64) -> Option<bool> {
        self.ended.get(&family).copied()
    }

    /// Returns the roots that have failed, whoever knows of it.
    pub(crate) fn failed(&self) -> Vec<ProcedureId> {
        let failed = self.ended.iter().filter(|(_, failed)| **failed);
        failed.map(|(family, _)| ProcedureId::root(*family)).collect()
    }
}

impl Story {
    /// Somebody was told that a result is acknowledged.
    pub(crate) fn acknowledged(&mut self, family: u64) {
        if self.failures.has_failed(family) == Some(true) {
            self.cover("Acknowledgement");
        }
        self.failures.acknowledge(family);
    }

    /// Who asks for failures is told of those that nobody has acknowledged, as their rows have it, and of no others.
    pub(crate) async fn failures_are_listed(&mut self, run: &Run, rows: &[Row]) -> Result<(), Trouble> {
        let live = families(run, Space::Live).await?;
        let page = run.executor.failures(None, ALL).await?;
        if page.unreadable > 0 || page.next.is_some() {
            return Err(format!(
                "the list of failures has {} entries that cannot be read",
                page.unreadable
            )
            .into());
        }
        let mut listed: BTreeMap<u64, FailureEntry> = BTreeMap::new();
        for entry in page.items {
            if let Some(twice) = listed.insert(entry.family, entry) {
                return Err(format!("{twice:?} is listed twice").into());
            }
        }
        for root in rows
            .iter()
            .filter(|row| row.id.is_root() && !live.contains(&row.id.family))
        {
            let family = root.id.family;
            self.failures.ended.insert(family, root.state.is_failure());
            self.failures.agree(root, listed.remove(&family).as_ref())?;
        }
        match listed.first_key_value() {
            Some((_, entry)) => Err(format!("{entry:?} is listed, and its family has not ended").into()),
            None => Ok(()),
        }
    }
}

impl Failures {
    fn agree(&self, root: &Row, entry: Option<&FailureEntry>) -> Result<(), Trouble> {
        let family = root.id.family;
        let is_meant = root.rare().mark.is_some()
            || root
                .rare()
                .cause
                .as_ref()
                .is_none_or(|cause| cause.kind == CauseKind::Aborted);
        let is_failure = root.state.is_failure() && !is_meant;
        match entry {
            Some(entry) if !is_failure => Err(format!("{entry:?} is listed, and {} is no failure", root.id).into()),
            Some(entry) if self.acknowledged.contains(&family) => {
                Err(format!("{entry:?} was acknowledged, and is listed").into())
            }
            Some(entry) if Some(entry) != FailureEntry::of(root, entry.origin_kind.as_ref()).as_ref() => {
                Err(format!("{entry:?} is listed of {root:?}").into())
            }
            None if is_failure && !self.asked.contains(&family) => {
                Err(format!("{} has failed, nobody acknowledged that, and it is not listed", root.id).into())
            }
            Some(_) | None => Ok(()),
        }
    }
}

//! What has grown large: payloads, histories, families, and signals that nobody takes.

use procession_kernel::{Family, ProcedureId, Row};
use rustc_hash::FxHashMap;

use super::super::insight::Insight;
use super::rules::of_row;
use crate::journal::codec;
use crate::view::{Rule, Verdict};

/// Something of a row that is large.
struct Grown {
    what: &'static str,
    size: usize,
    /// What is allowed, if anything is set.
    bound: Option<usize>,
    text: String,
}

impl Grown {
    fn verdict(self, row: &Row) -> Verdict {
        let mut facts = vec![("what", self.what.to_owned()), ("size", self.size.to_string())];
        facts.extend(self.bound.map(|bound| ("bound", bound.to_string())));
        of_row(Rule::Size, row, facts, &self.text)
    }
}

impl Insight<'_> {
    /// Tells what of a family is large, of those that are on disk and have not ended.
    pub(super) fn sizes(&self, family: &Family, verdicts: &mut Vec<Verdict>) {
        let bounds = &self.kernel.rules().bounds;
        verdicts.extend(self.members(family, bounds.members));
        let crowded = self.is_near(family.signals.len(), bounds.signals);
        let rows = family.members.iter();
        for row in rows.filter(|row| !row.is_ended() && row.revision <= self.durable) {
            verdicts.extend(self.payload(row, bounds.payload));
            verdicts.extend(self.history(row));
            if crowded {
                verdicts.extend(self.signals(family, row, bounds.signals));
            }
        }
    }

    fn is_near(&self, size: usize, bound: usize) -> bool {
        let percent = self.thresholds.size_percent as usize;
        size.saturating_mul(100) >= bound.saturating_mul(percent).max(1)
    }

    /// The stage that made it so large has ended: it is named besides the one that is next.
    fn payload(&self, row: &Row, bound: usize) -> Option<Verdict> {
        let large = row.large.as_deref()?;
        let size = large.bytes as usize;
        if !self.is_near(size, bound) {
            return None;
        }
        let grown_by = match &large.stage {
            Some(stage) => format!("it grew in stage {}", codec::describe(stage.as_slice())),
            None => "it was submitted so".to_owned(),
        };
        let text = format!("has a payload of {size} bytes, of {bound} that are allowed: {grown_by}");
        let (what, bound) = ("payload", Some(bound));
        let mut verdict = Grown {
            what,
            size,
            bound,
            text,
        }
        .verdict(row);
        let stage = large.stage.as_ref().map(|stage| codec::describe(stage.as_slice()));
        verdict.facts.extend(stage.map(|stage| ("grown_by", stage)));
        Some(verdict)
    }

    fn history(&self, row: &Row) -> Option<Verdict> {
        if row.visit < self.thresholds.stages {
            return None;
        }
        let size = row.visit as usize;
        let text = format!("has committed {size} stages, and its history keeps them until its family goes");
        let (what, bound) = ("history", None);
        Some(
            Grown {
                what,
                size,
                bound,
                text,
            }
            .verdict(row),
        )
    }

    fn signals(&self, family: &Family, row: &Row, bound: usize) -> Option<Verdict> {
        let of_row = (row.id.member, 0)..=(row.id.member, u32::MAX);
        let size = family.signals.range(of_row).count();
        if !self.is_near(size, bound) {
            return None;
        }
        let text = format!("has {size} signals, of {bound} that are kept: no stage takes them");
        let (what, bound) = ("signals", Some(bound));
        Some(
            Grown {
                what,
                size,
                bound,
                text,
            }
            .verdict(row),
        )
    }

    /// It is told of whoever has most of them as children.
    fn members(&self, family: &Family, bound: usize) -> Option<Verdict> {
        let size = family.members.len();
        if !self.is_near(size, bound) {
            return None;
        }
        let mut children: FxHashMap<u32, usize> = FxHashMap::default();
        for parent in family.members.iter().filter_map(|row| row.parent) {
            *children.entry(parent).or_default() += 1;
        }
        let most = children
            .into_iter()
            .max_by_key(|(member, count)| (*count, u32::MAX - member));
        let (parent, count) = most.unwrap_or_default();
        let row = family.row(parent)?;
        let root = ProcedureId::root(row.id.family);
        let text = format!("has {count} children; the family {root} has {size} members, of {bound} that are allowed");
        let (what, bound) = ("members", Some(bound));
        let mut verdict = Grown {
            what,
            size,
            bound,
            text,
        }
        .verdict(row);
        verdict.facts.push(("children", count.to_string()));
        Some(verdict)
    }
}

//! What has grown large: payloads, histories, families, and signals that no procedure takes.

use procession_kernel::{Family, Kind, ProcedureId, Row};
use rustc_hash::FxHashMap;

use super::diagnosis_input::DiagnosisInput;
use super::rules::of_row;
use crate::journal::codec;
use crate::view::{Rule, Verdict};

/// Builds the verdict. `bound` is the allowed size, if one is set.
fn grown(row: &Row, what: &str, size: usize, bound: Option<usize>, text: &str) -> Verdict {
    let mut facts = vec![("what", what.to_owned()), ("size", size.to_string())];
    facts.extend(bound.map(|bound| ("bound", bound.to_string())));
    of_row(Rule::Size, row, facts, text)
}

impl DiagnosisInput<'_> {
    /// Reports what is large in a member, if it is on disk and has not ended.
    pub(super) fn sizes(&self, family: &Family, row: &Row, verdicts: &mut Vec<Verdict>) {
        let bounds = self.bounds;
        verdicts.extend(self.history(row));
        verdicts.extend(self.payload(row, bounds.payload));
        if !family.signals.is_empty() {
            let own = self.kernel.rules().kinds.get(&row.kind).and_then(|rules| rules.signals);
            verdicts.extend(self.signals(family, row, own.unwrap_or(bounds.signals)));
        }
    }

    /// Returns a verdict if a family has grown large.
    pub(super) fn family_size(&self, family: &Family) -> Option<Verdict> {
        self.members(family, self.bounds.members)
    }

    fn is_open(&self, row: &Row) -> bool {
        !row.is_ended() && row.revision <= self.durable
    }

    /// Returns `true` if a size is near its bound. If the bound is only a default, a size over it was written under
    /// another bound and does not count.
    fn is_near(&self, kind: &Kind, size: usize, bound: usize) -> bool {
        if !self.knows_bounds && size > bound {
            return false;
        }
        let percent = self.thresholds.of(kind).size_percent as usize;
        size.saturating_mul(100) >= bound.saturating_mul(percent).max(1)
    }

    /// Returns the words that mark a bound as the default, if the configured one is unknown.
    const fn by_default(&self) -> &'static str {
        if self.knows_bounds { "" } else { " by default" }
    }

    /// Judges the payload. The stage that made it large has ended, so it is named besides the next stage.
    fn payload(&self, row: &Row, bound: usize) -> Option<Verdict> {
        let note = row.rare().payload_size.as_deref()?;
        let size = note.bytes as usize;
        if !self.is_near(&row.kind, size, bound) {
            return None;
        }
        let stage = note.stage.as_ref().map(|stage| codec::describe(stage.as_slice()));
        let by = match &stage {
            Some(stage) => format!("it grew in stage {stage}"),
            None => "it was submitted with this size".to_owned(),
        };
        let default = self.by_default();
        let text = format!("has a payload of {size} bytes; {bound} are allowed{default}: {by}");
        let mut verdict = grown(row, "payload", size, Some(bound), &text);
        verdict.facts.extend(stage.map(|stage| ("grown_by", stage)));
        Some(verdict)
    }

    fn history(&self, row: &Row) -> Option<Verdict> {
        // A kind that keeps only the newest entries does not grow, however many stages it commits.
        if row.stages_kept() < self.thresholds.of(&row.kind).stages {
            return None;
        }
        let size = row.visit as usize;
        let text = format!("has committed {size} stages, and its history keeps them until its family is evicted");
        Some(grown(row, "history", size, None, &text))
    }

    /// Judges the untaken signals. Signals that were taken no longer count, though the keys of some are remembered.
    fn signals(&self, family: &Family, row: &Row, bound: usize) -> Option<Verdict> {
        let size = family.signals.waiting(row.id.member);
        if !self.is_near(&row.kind, size, bound) {
            return None;
        }
        let taken = family.signals.consumed(row.id.member);
        let text = format!(
            "has {size} signals that no stage has taken; {bound} may wait{}",
            self.by_default()
        );
        let mut verdict = grown(row, "signals", size, Some(bound), &text);
        verdict.facts.push(("taken", taken.to_string()));
        Some(verdict)
    }

    /// Judges the number of members. The verdict names the unfinished member with the most children.
    fn members(&self, family: &Family, bound: usize) -> Option<Verdict> {
        let durable = || family.members.iter().filter(|row| row.revision <= self.durable);
        let kind = &family.members.first()?.kind;
        if !self.is_near(kind, family.members.len(), bound) {
            return None;
        }
        let size = durable().count();
        let mut children: FxHashMap<u32, usize> = FxHashMap::default();
        for parent in durable().filter_map(|row| row.parent) {
            *children.entry(parent).or_default() += 1;
        }
        let open = |member: u32| family.row(member).filter(|row| self.is_open(row));
        let parents = children.into_iter().filter(|(member, _)| open(*member).is_some());
        let (parent, count) = parents.max_by_key(|(member, count)| (*count, u32::MAX - member))?;
        let row = open(parent).filter(|_| self.is_near(kind, size, bound))?;
        let root = ProcedureId::root(row.id.family);
        let default = self.by_default();
        let text = format!("has {count} children; the family {root} has {size} members; {bound} are allowed{default}");
        let mut verdict = grown(row, "members", size, Some(bound), &text);
        verdict.facts.push(("children", count.to_string()));
        Some(verdict)
    }
}

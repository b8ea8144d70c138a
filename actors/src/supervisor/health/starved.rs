//! Procedures that wait for the limiter longer than they have to. Either others are served before them again and
//! again, or everything they need is free and they are not served.
//!
//! The second rule watches the limiter itself. In a sound engine it finds nothing, under any load. One answer of the
//! limiter names all waiters, and what blocks each. The limiter also handles all consequences of a message before it
//! takes the next. So for every waiter it names a claim in the way, or a limit without room. Any other cause of a
//! wait counts as being in the way by these same rules: a lock of several, a permit beside a lock, an earlier place
//! in the queue, or a waiter that may not be overtaken any more.
//!
//! A claim belongs to some procedure, except for a moment. A new claim has no procedure until the answer that granted
//! it is taken, which is before any later answer. A claim given up has none until the limiter is told, which is
//! before it is asked again. So a finding counts only if a health check finds the very same again, having asked after
//! the first check had its answer. Two checks that overlap may both see one moment.

use std::collections::BTreeMap;
use std::time::Duration;

use procession_kernel::{Blocker, ClaimId, Lacking, MAX_OVERTAKES, ProcedureId, Row, Seq, Timestamp};

use super::diagnosis_input::DiagnosisInput;
use super::rules::of_row;
use crate::limiter::WaitingClaim;
use crate::supervisor::admission::claims::Claims;
use crate::view::{Rule, Verdict};

/// Procedures found waiting for something free, by procedure.
pub(crate) struct Unserved {
    found: BTreeMap<ProcedureId, UnservedWait>,
    /// How many answers were looked at.
    looks: u64,
}

/// A wait found in every check since `look`.
struct UnservedWait {
    since: Timestamp,
    /// The look that found it first.
    look: u64,
    /// An answer requested after that look shows it too.
    is_sure: bool,
    /// The commit that wrote its row. While it stays the same, nothing has happened to the procedure.
    revision: Seq,
    /// Orphaned claims that block it.
    claims: Vec<ClaimId>,
}

impl Unserved {
    pub(super) const fn new() -> Self {
        Self {
            found: BTreeMap::new(),
            looks: 0,
        }
    }

    /// Returns how many answers were looked at. An answer requested now comes after all of them.
    pub(super) const fn looks(&self) -> u64 {
        self.looks
    }

    /// Takes the findings of a health check that asked after this many looks. A procedure that was found before, and
    /// has not moved, keeps its time.
    pub(super) fn look(
        &mut self,
        found: impl Iterator<Item = (ProcedureId, Seq, Vec<ClaimId>)>,
        asked_after: u64,
        now: Timestamp,
    ) {
        self.looks += 1;
        let mut before = std::mem::take(&mut self.found);
        let look = self.looks;
        let kept = found.map(|(id, revision, claims)| {
            let same = |old: &UnservedWait| old.revision == revision && old.claims == claims;
            let old = before.remove(&id).filter(same);
            let (since, look, is_sure) = old.map_or((now, look, false), |old| {
                (old.since, old.look, old.is_sure || asked_after >= old.look)
            });
            let found = UnservedWait {
                since,
                look,
                is_sure,
                revision,
                claims,
            };
            (id, found)
        });
        self.found = kept.collect();
    }

    /// Returns since when a procedure is known to wait so, if that is certain and has lasted at least this long.
    fn since(&self, id: ProcedureId, now: Timestamp, least: Duration) -> Option<Timestamp> {
        let found = self.found.get(&id).filter(|found| found.is_sure)?;
        (now.since(found.since) >= least).then_some(found.since)
    }
}

/// Returns the claims that block a waiting claim, if none of them belongs to a procedure. Returns `None` otherwise.
pub(crate) fn free(waiting: &WaitingClaim, claims: &Claims) -> Option<Vec<ClaimId>> {
    let is_nobody = |claim: &ClaimId| claims.procedure(*claim).is_none();
    // If a limit has no room although no permit is held, only the operator can raise it.
    let is_free = |blocker: &Blocker| !blocker.by.is_empty() && blocker.by.iter().all(is_nobody);
    if !waiting.blockers.iter().all(is_free) {
        return None;
    }
    let mut unowned: Vec<ClaimId> = waiting.blockers.iter().flat_map(|blocker| blocker.by.clone()).collect();
    unowned.sort_unstable();
    Some(unowned)
}

impl DiagnosisInput<'_> {
    pub(super) fn starved(&self, row: &Row) -> Option<Verdict> {
        let asker = self.kernel.asks_as(row.id)?;
        let waiting = self.queues.of(asker)?;
        self.unserved(row, asker).or_else(|| self.overtaken(row, waiting))
    }

    fn unserved(&self, row: &Row, asker: ProcedureId) -> Option<Verdict> {
        let since = self.unserved?.since(asker, self.now, self.thresholds.engine().free)?;
        let time = self.now.since(since);
        let facts = vec![("free", format!("{time:?}")), ("priority", row.priority.to_string())];
        let text = format!(
            "is starved: everything it waits for has been free for {time:?}, but was not granted. \
             This is a defect of the engine"
        );
        let mut verdict = of_row(Rule::Starved, row, facts, &text);
        verdict.since = since;
        Some(verdict)
    }

    fn overtaken(&self, row: &Row, waiting: &WaitingClaim) -> Option<Verdict> {
        if waiting.overtaken < self.thresholds.of(&row.kind).overtaken {
            return None;
        }
        let lacking: Vec<String> = waiting.blockers.iter().map(|blocker| lacks(&blocker.lacking)).collect();
        let facts = vec![
            ("passed", waiting.overtaken.to_string()),
            ("patience", MAX_OVERTAKES.to_string()),
            ("lacks", lacking.join(", ")),
            ("priority", row.priority.to_string()),
        ];
        let text = format!("is starved: {} later requests overtook it", waiting.overtaken);
        Some(of_row(Rule::Starved, row, facts, &text))
    }
}

fn lacks(lacking: &Lacking) -> String {
    match lacking {
        Lacking::Permit(key) => format!("permit {key}"),
        Lacking::Lock(path) => format!("lock {path}"),
    }
}

#[cfg(test)]
mod tests {
    //! What counts as free, and for how long it must be seen free.

    use procession_kernel::Claim;

    use super::*;

    const WAITER: ClaimId = ClaimId(1);
    const SOMEBODY: ClaimId = ClaimId(2);
    const NOBODY: ClaimId = ClaimId(3);

    fn lock(path: &str, by: &[ClaimId]) -> Blocker {
        Blocker {
            lacking: Lacking::Lock(procession_kernel::LockPath::parse(path)),
            by: by.to_vec(),
            any: false,
            queued_ahead: false,
            at: None,
        }
    }

    fn permit(by: &[ClaimId]) -> Blocker {
        Blocker {
            lacking: Lacking::Permit("move".into()),
            any: true,
            ..lock("", by)
        }
    }

    fn found(blockers: Vec<Blocker>) -> Option<Vec<ClaimId>> {
        let mut claims = Claims::new(Vec::new());
        claims.bind(Claim::first(WAITER), ProcedureId::root(1));
        claims.bind(Claim::first(SOMEBODY), ProcedureId::root(2));
        let waiting = WaitingClaim {
            holds: false,
            claim: WAITER,
            blockers,
            overtaken: 0,
            order: 0,
        };
        free(&waiting, &claims)
    }

    #[test]
    fn who_waits_for_nothing_or_for_nobody_waits_for_what_is_free() {
        assert_eq!(found(Vec::new()), Some(Vec::new()));
        assert_eq!(found(vec![lock("a", &[NOBODY])]), Some(vec![NOBODY]));
        let both = vec![permit(&[ClaimId(9), NOBODY]), lock("a", &[ClaimId(7)])];
        assert_eq!(found(both), Some(vec![NOBODY, ClaimId(7), ClaimId(9)]));
    }

    #[test]
    fn who_waits_for_anybody_else_does_not() {
        for blockers in [
            vec![lock("a", &[SOMEBODY])],
            vec![lock("a", &[NOBODY, SOMEBODY])],
            // A lock is free, and the permit beside it is not.
            vec![permit(&[SOMEBODY])],
            vec![lock("a", &[NOBODY]), permit(&[SOMEBODY])],
            // One of the two permits is orphaned.
            vec![permit(&[NOBODY, SOMEBODY])],
            // The limit is 0.
            vec![permit(&[])],
            // It stands behind another claim in the queue.
            vec![Blocker {
                queued_ahead: true,
                ..lock("a", &[SOMEBODY])
            }],
        ] {
            assert_eq!(found(blockers.clone()), None, "{blockers:?}");
        }
    }

    const LEAST: Duration = Duration::from_secs(5);

    fn at(second: u64) -> Timestamp {
        Timestamp(second * 1_000_000)
    }

    /// Runs a health check at this second, which asked after the last look. It finds one waiter, at this revision and
    /// behind these claims.
    fn check(unserved: &mut Unserved, second: u64, revision: u64, claims: &[ClaimId]) -> Option<Timestamp> {
        let (id, after) = (ProcedureId::root(1), unserved.looks());
        let found = (id, Seq(revision), claims.to_vec());
        unserved.look(std::iter::once(found), after, at(second));
        unserved.since(id, at(second), LEAST)
    }

    #[test]
    fn it_must_be_the_same_from_check_to_check() {
        let mut unserved = Unserved::new();
        for (second, revision, claim, expected) in [
            (1, 1, NOBODY, None),
            (5, 1, NOBODY, None),
            (6, 1, NOBODY, Some(at(1))),
            // Something has happened to it.
            (12, 2, NOBODY, None),
            // Another claim, which is just being given up.
            (18, 2, SOMEBODY, None),
            (24, 2, SOMEBODY, Some(at(18))),
        ] {
            let told = check(&mut unserved, second, revision, &[claim]);
            assert_eq!(told, expected, "in second {second}");
        }
    }

    #[test]
    fn a_health_check_that_overlaps_with_the_first_makes_nothing_sure() {
        let (id, mut unserved) = (ProcedureId::root(1), Unserved::new());
        let mut look = |asked_after, second| {
            unserved.look(std::iter::once((id, Seq(1), vec![NOBODY])), asked_after, at(second));
            unserved.since(id, at(second), Duration::ZERO)
        };
        assert_eq!(look(0, 1), None);
        assert_eq!(look(0, 9), None, "it asked before the first had its answer");
        assert_eq!(look(1, 9), Some(at(1)));
        assert_eq!(look(0, 9), Some(at(1)), "it is sure already");
        unserved.look(std::iter::empty(), 4, at(10));
        assert_eq!(unserved.since(id, at(10), Duration::ZERO), None);
    }
}

//! Who has paused what, and why: found in the audit, all of it that is kept, however long ago that was.
//! It is read once; from then on only what has come since.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use procession_kernel::{AUDIT_KEPT, AuditEntry, Pause, ProcedureId};

use super::audit;
use super::problem::Problem;
use super::state::State;

/// How the words of acts begin that leave something paused.
const VERBS: [&str; 2] = ["pause ", "import "];

/// Acts that left something paused, the newest of each by its words.
#[derive(Default)]
pub(super) struct Pauses(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// All acts up to this one were looked at.
    upto: Option<u64>,
    acts: BTreeMap<String, AuditEntry>,
}

impl Known {
    /// Takes acts, in any order. What the audit has dropped is forgotten.
    fn take(&mut self, acts: Vec<AuditEntry>, upto: u64) {
        for act in acts {
            let newest = self.acts.entry(act.verb.clone()).or_insert_with(|| act.clone());
            if newest.number < act.number {
                *newest = act;
            }
        }
        self.upto = self.upto.max(Some(upto));
        let kept = |act: &AuditEntry| act.number.saturating_add(AUDIT_KEPT as u64) > upto;
        self.acts.retain(|_, act| kept(act));
    }

    /// Gives the act that paused this last: a pause, or an import, which leaves its root paused.
    fn of(&self, what: &Pause) -> Option<AuditEntry> {
        let paused = self.acts.get(&format!("pause {what}"));
        let imported = match what {
            Pause::One(id) if id.is_root() => self.acts.get(&imports(*id)),
            Pause::One(_) | Pause::Kind(_) | Pause::All => None,
        };
        let acts = paused.into_iter().chain(imported);
        acts.max_by_key(|act| act.number).cloned()
    }
}

fn imports(root: ProcedureId) -> String {
    format!("import the family {}", root.family)
}

impl Pauses {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the act that made each of these pauses; none of one of which the audit knows nothing any more.
    pub(super) async fn made(&self, state: &State, pauses: &[Pause]) -> Result<Vec<Option<AuditEntry>>, Problem> {
        if pauses.is_empty() {
            return Ok(Vec::new());
        }
        let after = self.known().upto;
        let unread = unread(state, after).await?;
        let mut known = self.known();
        if let Some((acts, upto)) = unread {
            known.take(acts, upto);
        }
        Ok(pauses.iter().map(|what| known.of(what)).collect())
    }
}

/// Reads the acts that have come after one, page by page from the newest on; none if there are no acts.
async fn unread(state: &State, after: Option<u64>) -> Result<Option<(Vec<AuditEntry>, u64)>, Problem> {
    let (mut acts, mut upto, mut before) = (Vec::new(), None, None);
    loop {
        let page = audit::page(state, before).await?;
        let (Some(first), Some(last)) = (page.first(), page.last()) else {
            break;
        };
        upto = upto.max(Some(first.number));
        let oldest = last.number;
        let is_pause = |act: &AuditEntry| VERBS.iter().any(|verb| act.verb.starts_with(verb));
        acts.extend(page.into_iter().filter(is_pause));
        if oldest == 0 || after.is_some_and(|after| oldest <= after.saturating_add(1)) {
            break;
        }
        before = Some(oldest);
    }
    Ok(upto.map(|upto| (acts, upto)))
}

#[cfg(test)]
mod tests {
    //! Which act counts, and which is forgotten.

    use super::*;

    fn act(number: u64, verb: &str) -> AuditEntry {
        AuditEntry {
            number,
            at: procession_kernel::Timestamp(number),
            who: "ann".to_owned(),
            why: String::new(),
            verb: verb.to_owned(),
            target: None,
            changes: Vec::new(),
            changed: 0,
            key: None,
            digest: None,
        }
    }

    #[test]
    fn the_newest_counts_as_long_as_the_audit_keeps_it() {
        let mut known = Known::default();
        let one = Pause::One(ProcedureId::root(7));
        let number = |known: &Known, what: &Pause| known.of(what).map(|act| act.number);
        known.take(
            vec![act(9, "pause 7.0"), act(3, "pause 7.0"), act(4, "pause everything")],
            9,
        );
        assert_eq!((number(&known, &one), number(&known, &Pause::All)), (Some(9), Some(4)));
        known.take(vec![act(12, "import the family 7")], 12);
        assert_eq!(number(&known, &one), Some(12));
        assert_eq!(number(&known, &Pause::One(ProcedureId::new(7, 1))), None);
        known.take(vec![act(5, "pause 7.0")], 8);
        assert_eq!(
            (number(&known, &one), known.upto),
            (Some(12), Some(12)),
            "an older reading"
        );
        known.take(Vec::new(), 4 + AUDIT_KEPT as u64);
        assert_eq!((number(&known, &one), number(&known, &Pause::All)), (Some(12), None));
    }
}

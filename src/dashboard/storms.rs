//! What stages say that fail again and again: a verdict counts attempts by the row alone, and the
//! words are in the history.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use procession_actors::Engine;
use procession_actors::view::{Rule, Verdict};
use procession_kernel::{Ending, HistoryEntry, ProcedureId};

use super::beyond::is_failure;
use super::procedure::HISTORY_MAX;

/// Verdicts that are told with their errors, at most: each has a history to be read.
const TOLD: usize = 20;

/// What the newest attempt said, and how many before it, in a row, said the same but for numbers.
#[derive(Clone)]
struct Said {
    error: String,
    alike: usize,
}

/// What was read of those that fail, each after so many attempts: before the next it stays true.
#[derive(Default)]
pub(super) struct Storms {
    known: Mutex<BTreeMap<(ProcedureId, String), Option<Said>>>,
}

impl Storms {
    /// Adds to each verdict of one that goes on trying what it said last.
    pub(super) async fn tell(&self, engine: &Engine, verdicts: &mut [Verdict]) {
        let mut kept = BTreeMap::new();
        let storms = verdicts.iter_mut().filter(|verdict| verdict.rule == Rule::RetryStorm);
        for verdict in storms.take(TOLD) {
            let (Some(id), Some(attempts)) = (verdict.procedure, verdict.fact("attempts")) else {
                continue;
            };
            let subject = (id, attempts.to_owned());
            let known = self.known(&subject);
            let said = match known {
                Some(said) => said,
                None => read(engine, id).await,
            };
            if let Some(said) = &said {
                add(verdict, said);
            }
            kept.insert(subject, said);
        }
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = kept;
    }

    fn known(&self, subject: &(ProcedureId, String)) -> Option<Option<Said>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(subject).cloned()
    }
}

fn add(verdict: &mut Verdict, said: &Said) {
    let alike = match said.alike {
        1 => String::new(),
        several => format!(" {several} times in a row"),
    };
    verdict.text = format!("{}; the last error{alike}: {}", verdict.text, said.error);
    verdict.facts.push(("error", said.error.clone()));
    verdict.facts.push(("alike", said.alike.to_string()));
}

/// Of the attempts of a stage, or of an undo, the last few are kept; one that cannot be read says nothing.
async fn read(engine: &Engine, id: ProcedureId) -> Option<Said> {
    let entries = engine.beside().history(id.family, HISTORY_MAX).await.ok()?;
    let is_of = |entry: &&HistoryEntry| entry.member == id.member || entry.ending == Ending::UndoFailed;
    let mut failed = entries
        .iter()
        .rev()
        .filter(is_of)
        .take_while(|entry| is_failure(entry.ending));
    let error = failed.next()?.error.clone()?;
    let same = |entry: &&HistoryEntry| entry.error.as_deref().map(print_of) == Some(print_of(&error));
    let alike = 1 + failed.take_while(same).count();
    Some(Said { error, alike })
}

/// What is the same of two errors that differ in their numbers alone.
fn print_of(error: &str) -> String {
    let parts = error.split(|letter: char| letter.is_ascii_digit());
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("0")
}

#[cfg(test)]
mod tests {
    //! Which errors are alike.

    use super::print_of;

    #[test]
    fn errors_are_alike_that_differ_in_numbers_alone() {
        assert_eq!(
            print_of("rpc timeout rs-17 after 30 s"),
            print_of("rpc timeout rs-2 after 1000 s")
        );
        assert_ne!(print_of("rpc timeout rs-17"), print_of("rpc refused rs-17"));
    }
}

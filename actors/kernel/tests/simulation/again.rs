//! What operators submit: new roots, and roots that failed and run again.

use procession_kernel::{
    Act, Again, AuditEntry, Birth, Blob, Key, KeyAsked, Labels, OperatorRequest, ProcedureId, Record, Row,
    StoredTarget, Submission, Verb,
};

use super::disk::Disk;
use super::draw::stage;
use super::operate::operator;
use super::play::Play;
use super::{AGAIN, SUBMITTED};

/// Returns the key of the run that repeats a root.
fn key_of(root: ProcedureId) -> Key {
    Key::from(format!("again {root}"))
}

impl Disk {
    /// Returns the length of the value that a root was submitted with, if it is kept.
    fn first_value(&self, root: &Row) -> Option<usize> {
        if root.as_submitted {
            self.payloads.get(&root.id).copied()
        } else {
            self.submitted.get(&root.id.family).copied()
        }
    }
}

impl Play {
    /// An operator submits a root, or runs one again; some only ask what that would do.
    pub(crate) fn submit_by(&mut self) -> Result<(), String> {
        let mut by = operator();
        by.dry_run = self.draw.percent(15);
        if self.draw.percent(40) {
            let birth = self.draw.birth();
            let submission = self.submission(birth);
            let verb = Verb::Submit(submission.birth.kind.clone());
            return self.shell.submit_by(verb, by, StoredTarget::New(Box::new(submission)));
        }
        let any = self.draw.percent(10);
        let results = self.shell.ahead.results().into_iter();
        let results: Vec<Row> = results.filter(|row| any || row.state.is_failure()).cloned().collect();
        match self.draw.pick(&results) {
            Some(root) => self.run_again(root, by),
            None => Ok(()),
        }
    }

    /// Reads what the shell reads before the decision. It refuses a root whose value is not kept.
    fn run_again(&mut self, root: Row, by: OperatorRequest) -> Result<(), String> {
        let verb = Verb::RunAgain(root.id);
        if !root.state.is_failure() {
            return self.shell.submit_by(verb, by, StoredTarget::Row(Box::new(root)));
        }
        let Some(size) = self.shell.ahead.first_value(&root) else {
            return Ok(());
        };
        let birth = Birth {
            priority: root.priority,
            labels: Labels::clone(&root.labels),
            graph: root.rare().graph.clone(),
            end_signal: root.rare().end_signal.clone(),
            next_needs: self.draw.next_needs(),
            ..Birth::new(root.kind.clone(), root.version, stage(0), Blob::from(vec![0; size]))
        };
        let key = key_of(root.id);
        let submission = Submission {
            birth,
            known: self.shell.ahead.keys.get(&key).cloned(),
            key: Some(KeyAsked {
                key,
                digest: size as u128,
                keep: root.due.map(|due| due.since(self.shell.now)),
            }),
        };
        let row = Box::new(root);
        self.shell
            .submit_by(verb, by, StoredTarget::Again(Box::new(Again { row, submission })))
    }
}

/// A root that failed, and was not born with children, still has the value that it was submitted with.
pub(crate) fn first_value_is_kept(ahead: &Disk, family: u64) -> Result<(), String> {
    let root = ahead.rows.get(&ProcedureId::root(family));
    let Some((root, first)) = root.zip(ahead.first.get(&family)) else {
        return Ok(());
    };
    let kept = ahead.first_value(root);
    if !root.state.is_failure() || kept == Some(*first) {
        return Ok(());
    }
    Err(format!(
        "{} was submitted with {first} bytes, and {kept:?} are kept of that",
        root.id
    ))
}

/// Looks at what a decision submitted for operators: each root runs again as one other, which is linked with it in both
/// directions. Returns what the histories cover by that.
pub(crate) fn submitted(ahead: &mut Disk, records: &[Record]) -> Result<Vec<String>, String> {
    let mut covered = Vec::new();
    for record in records {
        let Record::Audit(entry) = record else { continue };
        match (&entry.act, entry.submitted) {
            (Some(Act::Operate(Verb::RunAgain(_))), Some(new)) => {
                runs_again(ahead, records, entry, new)?;
                covered.push(AGAIN.to_owned());
            }
            (Some(Act::Operate(Verb::Submit(kind))), Some(new)) => {
                let is_new = began(records, new) && ahead.rows.get(&new).is_some_and(|row| row.kind == *kind);
                if !is_new {
                    return Err(format!("{entry:?} submitted nothing"));
                }
                covered.push(SUBMITTED.to_owned());
            }
            (Some(Act::Operate(Verb::RunAgain(_) | Verb::Submit(_))), None) => {
                return Err(format!("{entry:?} does not say what was submitted"));
            }
            (Some(Act::Operate(Verb::Acknowledge(id))), _) if ahead.failures.contains_key(&id.family) => {
                return Err(format!("{id} was acknowledged, and is listed as a failure"));
            }
            (Some(_) | None, _) => {}
        }
    }
    Ok(covered)
}

fn began(records: &[Record], root: ProcedureId) -> bool {
    records
        .iter()
        .any(|record| matches!(record, Record::FamilyBegan(family) if *family == root.family))
}

fn runs_again(ahead: &mut Disk, records: &[Record], entry: &AuditEntry, new: ProcedureId) -> Result<(), String> {
    let old = entry.target.ok_or_else(|| format!("{entry:?} has no target"))?;
    // It may have been evicted while the limiter was asked.
    let Some(row) = ahead.rows.get(&old) else { return Ok(()) };
    if let Some(before) = ahead.again.insert(old, new)
        && before != new
    {
        return Err(format!("{old} runs again as {before}, and as {new}"));
    }
    if ahead.failures.contains_key(&old.family) || !row.state.is_failure() {
        return Err(format!(
            "{old} runs again, and is {}, or listed as a failure",
            row.state
        ));
    }
    if !began(records, new) {
        return Ok(());
    }
    let is_alike = ahead.rows.get(&new).is_some_and(|found| {
        found.key == Some(key_of(old))
            && (&found.kind, found.priority, &found.labels) == (&row.kind, row.priority, &row.labels)
            && (&found.rare().graph, &found.rare().end_signal) == (&row.rare().graph, &row.rare().end_signal)
    });
    if !is_alike || ahead.first.get(&new.family) != ahead.first.get(&old.family) {
        return Err(format!("{new} is not {old} once more: {:?}", ahead.rows.get(&new)));
    }
    Ok(())
}

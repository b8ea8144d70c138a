//! Operators' submissions, and running a failed root again: what is read and asked before the decision.

use std::future::ready;
use std::sync::Arc;

use procession_kernel::{Again, Key, Labels, NotNow, ProcedureId, Row, StoredTarget, Submission, Timestamp};

use crate::error::AskError;
use crate::journal::Reader;
use crate::registry::Registry;
use crate::submission_key::submission_of;
use crate::submit::Submit;

/// Reads the submission of a root that has ended, and asks its value what the kernel must know of the new one.
pub(in crate::supervisor) async fn read_again(
    row: Box<Row>,
    reader: Reader,
    registry: Arc<Registry>,
    now: Timestamp,
) -> Result<StoredTarget, AskError> {
    if !row.state.is_failure() {
        // The kernel says why that is refused.
        return Ok(StoredTarget::Row(row));
    }
    let Some((value, version)) = reader.submitted(&row).await? else {
        return Err(not_kept(&row));
    };
    let kind = row.kind.clone();
    // The value's own code runs where a read may block: the engine does not wait for it.
    let ask = move || {
        let mut running = registry.revive(&kind, &value, version)?;
        running.birth().map_err(|error| error.to_string())
    };
    let birth = reader.run(move |_| Box::pin(ready(Ok(ask())))).await?;
    let mut birth = birth.map_err(|why| AskError::NotNow {
        kind: NotNow::Invalid,
        text: format!("{} cannot be submitted again: {why}", row.id),
    })?;
    birth.priority = row.priority;
    birth.labels = Labels::clone(&row.labels);
    birth.graph.clone_from(&row.rare().graph);
    birth.end_signal.clone_from(&row.rare().end_signal);
    let mut submission = submission_of(Submit {
        birth: Box::new(birth),
        key: Some(key_of(row.id)),
        key_for: row.due.map(|due| due.since(now)),
    });
    submission.known = reader.key_entry(key_of(row.id).as_str().as_bytes()).await?;
    Ok(StoredTarget::Again(Box::new(Again { row, submission })))
}

/// Returns what the kernel must know of a submission, its key looked up. The key may have `longest` bytes.
pub(in crate::supervisor) async fn read_new(
    submit: Submit,
    reader: Reader,
    longest: usize,
) -> Result<Box<Submission>, AskError> {
    let mut submission = submission_of(submit);
    if let Some(asked) = &submission.key {
        let key = asked.key.as_str();
        if key.is_empty() || key.len() > longest {
            return Err(AskError::BadKey {
                size: key.len(),
                limit: longest,
            });
        }
        submission.known = reader.key_entry(key.as_bytes()).await?;
    }
    Ok(Box::new(submission))
}

/// Returns the idempotency key of the run that repeats a root.
fn key_of(root: ProcedureId) -> Key {
    Key::from(format!("again {root}"))
}

/// Returns the refusal for a root that has not ended.
pub(in crate::supervisor) fn not_ended(root: ProcedureId) -> AskError {
    AskError::NotNow {
        kind: NotNow::NotEnded,
        text: format!("{root} has not ended; retry it, or run it again once it has failed"),
    }
}

fn not_kept(row: &Row) -> AskError {
    let id = row.id;
    let why = if row.rounds.is_empty() {
        "an earlier release submitted it, which did not keep the value"
    } else {
        "it was born with children, or an earlier release submitted it"
    };
    AskError::NotNow {
        kind: NotNow::ValueNotKept,
        text: format!("the value that {id} was submitted with is not kept: {why}; submit it anew"),
    }
}

//! What of users' data leaves the process. Everything that user code or a caller said in its
//! own words passes here first.

use serde_json::{Value, json};

use super::access::Grant;

/// Decides what of users' data is shown, and to whom.
pub trait Redact: Send + Sync + 'static {
    /// Changes a value in place before it is sent. `kind` is the procedure's; `value` is
    /// what would be shown to everybody otherwise.
    ///
    /// Of a stream, `kind` is the processor's where the node is known. Its row does not tell which processor has spoken:
    /// there this is called for `procession.stream`, and then for each kind that is registered. So is the error that a
    /// procedure shows as its cause, where another member of its family has said it.
    fn redact(&self, kind: &str, part: Part, value: &mut Value, grant: &Grant);

    /// Returns `true` if values and outputs are read for the page of a procedure, so that `redact` is given them as
    /// `value`, beside their `size`. By default they are not, and only a *Reveal* that the audit log records shows them.
    /// Of what has more than 64 KiB the size alone is given.
    fn reads_values(&self) -> bool {
        false
    }
}

/// Which part of a procedure a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// The value that was submitted.
    Payload,
    /// The output.
    Output,
    /// A signal that was sent.
    Signal,
    /// What user code noted in a stage or an undo.
    Note,
    /// A question to a person.
    Question,
    /// What user code, or who aborted, said of a failure.
    Error,
    /// An event that a stage or an undo logged with `tracing`: `message` and `fields` beside its `size`. Its level, its
    /// target and its time are always shown.
    Log,
}

/// What the dashboard does by default: error texts are shown; of everything else only
/// what sort of value it is, and its size.
#[derive(Clone, Copy, Debug, Default)]
pub struct SizesOnly;

impl Redact for SizesOnly {
    fn redact(&self, _: &str, part: Part, value: &mut Value, _: &Grant) {
        match part {
            Part::Error | Part::Question => {}
            Part::Payload | Part::Output | Part::Signal | Part::Note | Part::Log => hide(value),
        }
    }
}

/// Shows everything to whoever may look, values and outputs included: for teams whose viewers may see their users' data.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShowAll;

impl Redact for ShowAll {
    fn redact(&self, _: &str, _: Part, _: &mut Value, _: &Grant) {}

    fn reads_values(&self) -> bool {
        true
    }
}

/// Leaves the sort of a value, and its size, of what says so itself: `size`.
fn hide(value: &mut Value) {
    let size = value.get("size").cloned().unwrap_or(Value::Null);
    *value = json!({ "redacted": true, "size": size });
}

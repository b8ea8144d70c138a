//! Views as they are sent: what users said in their own words passes the redaction, and
//! families that are set aside say so.

use std::borrow::Cow;
use std::collections::BTreeSet;

use procession_actors::Procedure;
use procession_actors::view::{FamilyScope, Rule, SignalSummary, Status, Verdict};
use procession_kernel::{Blob, Cause, Ending, HistoryEntry};
use serde::Serialize;
use serde_json::{Value, json};

use super::access::Grant;
use super::problem::Problem;
use super::redact::Part;
use super::state::State;
use crate::filter::{Filter, FilterContext};
use crate::flow::{StreamRecord, StreamRoot};
use crate::views::{HistoryView, ProcedureView, RecordView, SignalView, VerdictView, note_shown, revealed};

/// A view of a procedure as it is sent.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Shown<V> {
    /// Nothing of it is hidden. It is written as it is, which takes a quarter of the time.
    Whole(V),
    /// What users said in it has been replaced.
    Redacted(Value),
}

impl<V: Serialize> Shown<V> {
    /// Returns it as a part of a larger value.
    pub(super) fn into_value(self) -> Value {
        match self {
            Self::Whole(view) => json!(view),
            Self::Redacted(value) => value,
        }
    }
}

/// What is sent to one caller.
pub(super) struct Show<'a> {
    state: &'a State,
    grant: &'a Grant,
    quarantined: BTreeSet<u64>,
}

impl<'a> Show<'a> {
    pub(super) fn new(state: &'a State, grant: &'a Grant) -> Self {
        let quarantined = state.shared.read().quarantined().clone();
        Self {
            state,
            grant,
            quarantined,
        }
    }

    /// Returns a row as it is to be shown.
    pub(super) fn as_it_stands<'s>(&self, status: &'s Status) -> Cow<'s, Status> {
        if self.quarantined.contains(&status.id.family) {
            Cow::Owned(status.clone().quarantined())
        } else {
            Cow::Borrowed(status)
        }
    }

    /// Returns the families that a list with a filter reads.
    pub(super) async fn scope(&self, filter: &Filter, live: bool) -> Result<FamilyScope, Problem> {
        self.state.scope(filter, live, self.grant).await
    }

    /// Returns `true` if a filter admits a row as its viewer sees it.
    pub(super) fn admits(&self, filter: &Filter, status: &Status, context: &FilterContext) -> bool {
        let asked = self.as_it_is_asked(status, filter);
        match self.state.is_asked_by_alias(filter, status) {
            true => filter.of_any_failure().admits(&asked, context),
            false => filter.admits(&asked, context),
        }
    }

    /// Returns a row as a filter is asked of it. What is hidden of its error cannot be found out by asking for one
    /// beginning after the other, nor for the fingerprint of a whole text.
    fn as_it_is_asked<'s>(&self, status: &'s Status, filter: &Filter) -> Cow<'s, Status> {
        let is_asked = filter.names_errors() || filter.failure_print().is_some();
        let Some(cause) = status.cause.as_ref().filter(|_| is_asked) else {
            return Cow::Borrowed(status);
        };
        let text = words(self.cause(status, cause));
        if text == cause.text {
            return Cow::Borrowed(status);
        }
        let mut status = status.clone();
        if let Some(cause) = &mut status.cause {
            cause.text = text;
        }
        Cow::Owned(status)
    }

    pub(super) fn procedure(&self, status: &Status) -> Value {
        let view = ProcedureView::from(&*self.as_it_stands(status));
        self.redacted(status, view).into_value()
    }

    /// Redacts a view that has a procedure's fields.
    pub(super) fn redacted<V: Serialize>(&self, status: &Status, view: V) -> Shown<V> {
        let cause = status
            .cause
            .as_ref()
            .map(|cause| (&cause.text, self.cause(status, cause)));
        let kind = status.kind.as_str();
        let question = status.question.as_ref();
        let question = question.map(|question| (question, self.text(kind, Part::Question, question)));
        let is_whole = |(text, shown): &(&String, Value)| shown == *text;
        if cause.iter().chain(&question).all(is_whole) {
            return Shown::Whole(view);
        }
        let mut value = json!(view);
        if let (Some((_, shown)), Some(text)) = (cause, value.pointer_mut("/cause/text")) {
            *text = shown;
        }
        if let (Some((_, shown)), Some(text)) = (question, value.get_mut("question")) {
            *text = shown;
        }
        Shown::Redacted(value)
    }

    /// Shows why a procedure failed. Another member of its family may have said that, of whatever kind, so then the rule
    /// for every kind holds.
    pub(super) fn cause(&self, status: &Status, cause: &Cause) -> Value {
        let mut value = self.error(status.kind.as_str(), &cause.text);
        if cause.origin != status.id {
            self.redact_as_any(status.kind.as_str(), Part::Error, &mut value);
        }
        value
    }

    pub(super) fn history(&self, kind: &str, entry: &HistoryEntry) -> Value {
        let mut value = json!(HistoryView::from(entry));
        let record = record_of(kind, entry);
        if let Some(shown) = value.get_mut("error") {
            *shown = self.said_of(kind, record.as_ref(), entry);
        }
        if let (Some(note), Some(shown)) = (&entry.note, value.get_mut("note")) {
            *shown = match &record {
                Some(record) => json!({ "size": note.len(), "value": self.record(record) }),
                None => self.note(kind, note),
            };
        }
        value
    }

    /// Shows what the code of an entry said when it failed or asked, if it said anything.
    pub(super) fn said(&self, kind: &str, entry: &HistoryEntry) -> Value {
        self.said_of(kind, record_of(kind, entry).as_ref(), entry)
    }

    fn said_of(&self, kind: &str, record: Option<&StreamRecord>, entry: &HistoryEntry) -> Value {
        let Some(said) = &entry.error else { return Value::Null };
        let part = if entry.ending == Ending::Asked {
            Part::Question
        } else {
            Part::Error
        };
        match record {
            Some(record) => self.state.redact_text(record.kind.as_str(), part, said, self.grant),
            None => self.text(kind, part, said),
        }
    }

    /// Shows the record of a node. Its kind is the processor's, and that is who has spoken.
    pub(super) fn record(&self, record: &StreamRecord) -> Value {
        let mut value = json!(RecordView::from(record));
        let kind = record.kind.as_str();
        if let (Some(cause), Some(shown)) = (&record.cause, value.get_mut("cause")) {
            *shown = self.state.redact_text(kind, Part::Error, cause, self.grant);
        }
        if let (Some(note), Some(shown)) = (record.note_bytes(), value.get_mut("note")) {
            *shown = self.note(kind, note);
        }
        value
    }

    fn note(&self, kind: &str, note: &Blob) -> Value {
        let mut shown = note_shown(note);
        self.state.redact.redact(kind, Part::Note, &mut shown, self.grant);
        shown
    }

    /// Redacts a text of a procedure. The row of a stream does not tell which of its processors has spoken, so the rule
    /// for every kind holds: what is hidden of one is not shown there.
    fn text(&self, kind: &str, part: Part, text: &str) -> Value {
        self.part(kind, part, Value::from(text))
    }

    /// Redacts a part of a procedure, by the same rule.
    pub(super) fn part(&self, kind: &str, part: Part, mut value: Value) -> Value {
        self.state.redact.redact(kind, part, &mut value, self.grant);
        if kind == StreamRoot::KIND {
            self.redact_as_any(kind, part, &mut value);
        }
        value
    }

    /// Redacts a part by the rules for all kinds but this one.
    fn redact_as_any(&self, kind: &str, part: Part, value: &mut Value) {
        for other in self.state.engine().kinds().filter(|other| other.as_str() != kind) {
            self.state.redact.redact(other.as_str(), part, value, self.grant);
        }
    }

    pub(super) fn signal(&self, kind: &str, signal: &SignalSummary) -> Value {
        let mut view = SignalView::from(signal);
        view.payload = self.size(kind, Part::Signal, Some(signal.size));
        json!(view)
    }

    /// Redacts what a verdict says of users' errors, in its facts and in its sentence.
    pub(super) fn verdict(&self, verdict: &Verdict) -> Value {
        let mut view = VerdictView::from(verdict);
        let kind = verdict.fact("kind").unwrap_or_default();
        // What an undo says may be of another kind than what fails.
        let sayer = verdict.fact("error_kind").unwrap_or(kind);
        let parts = [
            ("cause", kind, Part::Error),
            ("why", kind, Part::Error),
            ("error", sayer, Part::Error),
            ("question", kind, Part::Question),
        ];
        // The cause of a root is hidden where its own kind says so, too: its page has it.
        let of_root = (verdict.rule == Rule::UnacknowledgedFailures).then_some(("error", kind, Part::Error));
        for (name, kind, part) in parts.into_iter().chain(of_root) {
            if let Some(fact) = view.facts.get_mut(name) {
                let shown = words(self.text(kind, part, fact));
                // Of a cause the sentence says nothing.
                if name != "cause" {
                    view.text = told_as(&view.text, fact, &shown);
                }
                *fact = shown;
            }
        }
        json!(view)
    }

    pub(super) fn error(&self, kind: &str, text: &str) -> Value {
        self.text(kind, Part::Error, text)
    }

    /// Shows a value of users' in full, as far as the redaction lets it through.
    pub(super) fn value(&self, kind: &str, part: Part, bytes: Option<&[u8]>) -> Value {
        let Some(bytes) = bytes else { return Value::Null };
        let mut value = revealed(bytes);
        self.state.redact.redact(kind, part, &mut value, self.grant);
        value
    }

    /// Shows a value of users' of which nothing but the size is read.
    pub(super) fn size(&self, kind: &str, part: Part, size: Option<usize>) -> Value {
        let Some(size) = size else { return Value::Null };
        let mut value = json!({ "size": size });
        self.state.redact.redact(kind, part, &mut value, self.grant);
        value
    }
}

/// Returns what an entry of a stream notes of one of its nodes.
fn record_of(kind: &str, entry: &HistoryEntry) -> Option<StreamRecord> {
    let of_stream = (kind == StreamRoot::KIND).then_some(entry);
    of_stream.and_then(StreamRecord::noted)
}

/// Returns a sentence with what users said as it is shown. Where the sentence ends with that, the same words before
/// it are ours; where it does not, whichever of them are users' are hidden with ours.
fn told_as(text: &str, fact: &str, shown: &str) -> String {
    if fact.is_empty() {
        return text.to_owned();
    }
    match text.strip_suffix(fact) {
        Some(before) => format!("{before}{shown}"),
        None => text.replace(fact, shown),
    }
}

/// Returns a text as it stands within a sentence.
pub(super) fn words(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Null => "(redacted)".to_owned(),
        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => other.to_string(),
    }
}

#[cfg(test)]
mod tests;

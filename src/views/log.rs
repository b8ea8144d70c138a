//! What the attempts of a procedure logged.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What the attempts of a procedure logged, as far as it is in memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LogsView {
    /// The dashboard's host keeps logs: it has added `StageLogs` to its subscriber.
    pub kept: bool,
    /// Attempts that have logged something, the one that logged last at the end.
    pub items: Vec<AttemptLogView>,
    /// How many further attempts of the procedure there are.
    pub more: usize,
    /// How many attempts of any procedure were forgotten, so that the logs stay within their bound.
    pub forgotten: u64,
}

/// What one attempt logged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AttemptLogView {
    /// Whose attempt.
    pub id: String,
    /// What ran: `stage` or `undo`.
    pub call: String,
    /// The stage.
    pub stage: String,
    /// The visit, as in the history.
    pub visit: u32,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// Its newest events, in order.
    pub events: Vec<LogEventView>,
    /// How many older events there were.
    pub left_out: u64,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LogEventView {
    /// When it was logged.
    pub time: String,
    /// Its level: `ERROR`, `WARN`, `INFO`, `DEBUG` or `TRACE`.
    pub level: String,
    /// The part of the program that logged it.
    pub target: String,
    /// What it says: `size`, and as far as the host shows it `message`, `fields` with `name` and `value`, and whether
    /// something was `cut`.
    pub text: Value,
}

impl LogEventView {
    /// Returns what it says as one line: the message and the fields, or the size of what is hidden.
    #[must_use]
    pub fn line(&self) -> String {
        let Some(message) = self.text.get("message").and_then(Value::as_str) else {
            let size = self.text.get("size").and_then(Value::as_u64);
            return size.map_or_else(|| "(redacted)".to_owned(), |size| format!("(redacted, {size} bytes)"));
        };
        let fields = self.text.get("fields").and_then(Value::as_array).into_iter().flatten();
        let told = fields.map(|field| {
            let part = |name: &str| match field.get(name) {
                Some(Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
                None => String::new(),
            };
            format!(" {}={}", part("name"), part("value"))
        });
        let cut = self.text.get("cut") == Some(&Value::Bool(true));
        let end = if cut { " …" } else { "" };
        format!("{message}{}{end}", told.collect::<String>())
    }
}

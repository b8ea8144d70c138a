//! What a source answers: a body of the API, whichever source it came from. Programs get it as
//! it is, people what is read out of it.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::exit::Failure;
use super::print;

/// One body, with `now` and `as_of`.
#[derive(Debug, Clone)]
pub(super) struct Document(pub(super) Value);

impl Document {
    /// Makes one of what this process read itself.
    pub(super) fn of(body: impl Serialize) -> Result<Self, Failure> {
        Ok(Self(serde_json::to_value(body)?))
    }

    /// Returns a field of it; nothing if it has no such field.
    pub(super) fn get(&self, name: &str) -> &Value {
        self.0.get(name).unwrap_or(&Value::Null)
    }

    /// Puts a field in.
    pub(super) fn put(&mut self, name: &str, value: impl Into<Value>) {
        if let Value::Object(fields) = &mut self.0 {
            fields.insert(name.to_owned(), value.into());
        }
    }

    /// Takes its list out.
    pub(super) fn take_items(&mut self) -> Vec<Value> {
        match self.0.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => items,
            Some(_) | None => Vec::new(),
        }
    }

    /// Cuts its list to a limit, and says so.
    pub(super) fn cut(&mut self, limit: usize) {
        let mut items = self.take_items();
        if items.len() > limit {
            print::notice(&format!("{limit} of {} are shown; raise --limit for more", items.len()));
            items.truncate(limit);
        }
        self.put("items", items);
    }

    /// Prints it for programs.
    pub(super) fn print(&self) -> Result<(), Failure> {
        print::json(&self.0)
    }

    /// Reads what people see of it. Nothing of it steers a terminal, whoever sent it.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        read(&self.0)
    }
}

/// Reads a view, in whose texts nothing steers a terminal.
pub(super) fn read<T: DeserializeOwned>(value: &Value) -> Result<T, Failure> {
    serde_json::from_value(harmless(value.clone())).map_err(|error| {
        Failure::new(format!(
            "the answer has another shape than this release knows ({error}); use the release that the engine has"
        ))
    })
}

/// Makes every text fit to be shown. As deep as what reads JSON lets a document be.
fn harmless(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(print::plain(&text)),
        Value::Array(items) => Value::Array(items.into_iter().map(harmless).collect()),
        Value::Object(fields) => {
            let fields = fields.into_iter();
            Value::Object(
                fields
                    .map(|(name, value)| (print::plain(&name), harmless(value)))
                    .collect(),
            )
        }
        other @ (Value::Null | Value::Bool(_) | Value::Number(_)) => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Document;

    #[test]
    fn what_is_read_does_not_steer_the_terminal() {
        let sent = Document(json!({ "items": [{ "id": "1.0\u{1b}[2J" }], "now": "\n" }));
        let read: serde_json::Value = sent.read().unwrap();
        assert_eq!(read, json!({ "items": [{ "id": "1.0\\u{1b}[2J" }], "now": "\\n" }));
    }
}

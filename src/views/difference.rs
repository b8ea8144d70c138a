//! What differs between two values, place by place.

use procession_actors::view::ValueBehind;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::revealed;

/// Changes that are told, at most.
const CHANGES: usize = 500;

/// What differs between two values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DifferenceView {
    /// What has changed, in the order of the values.
    pub items: Vec<ChangeView>,
    /// There are more than are told.
    pub truncated: bool,
}

/// One place at which two values differ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ChangeView {
    /// The place, as a JSON pointer; the whole value is the empty text. Where elements of a list were removed it counts
    /// in the old list, else in the new one.
    pub path: String,
    /// `added`, `removed` or `changed`.
    pub change: String,
    /// What was there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Value>,
    /// What is there now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Value>,
}

/// Returns what differs between two values. Objects are compared field by field. Of two lists the elements at the
/// beginning and at the end that are the same are left out, and the others are compared in their order.
#[must_use]
pub fn difference(from: &Value, to: &Value) -> DifferenceView {
    let mut found = Found::default();
    found.compare(&mut String::new(), from, to);
    found.0
}

/// Returns the reply about the value behind an entry, and what differs from that behind another, if both are shown.
#[must_use]
pub fn compared(from: Option<Value>, to: Value) -> Value {
    let differs = from.as_ref().and_then(|from| {
        // Of what JSON has no words for there are bytes instead.
        let is_json = |side: &&Value| side.pointer("/value/raw").is_none_or(Value::is_null);
        let shown = |side: &Value| Some(side).filter(is_json)?.pointer("/value/value").cloned();
        Some(difference(&shown(from)?, &shown(&to)?))
    });
    json!({ "to": to, "from": from, "difference": differs })
}

/// Returns the value behind an entry in full, for those who have the journal itself.
#[must_use]
pub fn value_behind(number: u32, behind: &ValueBehind) -> Value {
    let value = behind.bytes.as_ref().map(|bytes| revealed(bytes.as_slice()));
    let too_large = behind.size.filter(|_| behind.bytes.is_none());
    json!({ "entry": number, "left_by": behind.left_by, "too_large": too_large, "value": value })
}

#[derive(Default)]
struct Found(DifferenceView);

impl Found {
    fn compare(&mut self, path: &mut String, from: &Value, to: &Value) {
        match (from, to) {
            (Value::Object(from), Value::Object(to)) => self.objects(path, from, to),
            (Value::Array(from), Value::Array(to)) => self.lists(path, from, to),
            _ if from == to => {}
            _ => self.note(path, Some(from), Some(to)),
        }
    }

    fn objects(&mut self, path: &mut String, from: &Map<String, Value>, to: &Map<String, Value>) {
        for (name, old) in from {
            self.below(path, name, |found, path| match to.get(name) {
                Some(new) => found.compare(path, old, new),
                None => found.note(path, Some(old), None),
            });
        }
        for (name, new) in to.iter().filter(|(name, _)| !from.contains_key(*name)) {
            self.below(path, name, |found, path| found.note(path, None, Some(new)));
        }
    }

    fn lists(&mut self, path: &mut String, from: &[Value], to: &[Value]) {
        let begin = same(from.iter().zip(to));
        let (from, to) = (
            from.get(begin..).unwrap_or_default(),
            to.get(begin..).unwrap_or_default(),
        );
        let end = same(from.iter().rev().zip(to.iter().rev()));
        let from = from.get(..from.len() - end).unwrap_or_default();
        let to = to.get(..to.len() - end).unwrap_or_default();
        for place in 0..from.len().max(to.len()) {
            let name = (begin + place).to_string();
            self.below(path, &name, |found, path| match (from.get(place), to.get(place)) {
                (Some(old), Some(new)) => found.compare(path, old, new),
                (old, new) => found.note(path, old, new),
            });
        }
    }

    /// Goes to a field or an element, and back.
    fn below(&mut self, path: &mut String, name: &str, look: impl FnOnce(&mut Self, &mut String)) {
        if self.0.truncated {
            return;
        }
        let here = path.len();
        path.push('/');
        path.push_str(&name.replace('~', "~0").replace('/', "~1"));
        look(self, path);
        path.truncate(here);
    }

    fn note(&mut self, path: &str, from: Option<&Value>, to: Option<&Value>) {
        if self.0.items.len() == CHANGES {
            self.0.truncated = true;
            return;
        }
        let change = match (from, to) {
            (None, _) => "added",
            (_, None) => "removed",
            (Some(_), Some(_)) => "changed",
        };
        self.0.items.push(ChangeView {
            path: path.to_owned(),
            change: change.to_owned(),
            from: from.cloned(),
            to: to.cloned(),
        });
    }
}

/// Counts the pairs at the beginning whose halves are the same.
fn same<'a>(pairs: impl Iterator<Item = (&'a Value, &'a Value)>) -> usize {
    pairs.take_while(|(old, new)| old == new).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(from: &Value, to: &Value) -> Vec<String> {
        let text = |value: &Option<Value>| value.as_ref().map(Value::to_string).unwrap_or_default();
        let items = difference(from, to).items;
        let told = items
            .iter()
            .map(|item| format!("{} {} {} {}", item.change, item.path, text(&item.from), text(&item.to)));
        told.collect()
    }

    #[test]
    fn fields_and_elements_are_compared_at_their_places() {
        let from = json!({ "a": 1, "b": { "c/d": [1, 2, 3], "e": null }, "gone": true });
        let to = json!({ "a": 1, "b": { "c/d": [1, 9, 2, 3], "e": "x" }, "new": [] });
        assert_eq!(
            told(&from, &to),
            [
                "added /b/c~1d/1  9",
                "changed /b/e null \"x\"",
                "removed /gone true ",
                "added /new  []",
            ]
        );
        assert!(told(&to, &to).is_empty());
        assert_eq!(told(&json!([1, 2, 3]), &json!([1, 3])), ["removed /1 2 "]);
        assert_eq!(told(&json!(1), &json!("1")), ["changed  1 \"1\""]);
    }

    #[test]
    fn many_changes_are_cut() {
        let list = |add: u64| Value::from((0..2_000).map(|number| number + add).collect::<Vec<u64>>());
        let found = difference(&list(0), &list(10_000));
        assert_eq!((found.items.len(), found.truncated), (CHANGES, true));
    }
}

//! `--fields`: what is asked for of each entry of a document, in the order in which it is asked for.

use serde_json::{Map, Value};

use super::document::Document;
use super::exit::Failure;
use super::nearest::nearest;
use super::print;

/// Prints these fields of each entry: as a table, or as JSON, one entry a line.
pub(super) fn print(document: &Document, fields: &[String], json: bool) -> Result<(), Failure> {
    let entries = entries(document);
    for field in fields {
        let is_there = entries.iter().any(|entry| may_have(entry, field));
        if !is_there && !entries.is_empty() {
            print::notice(&unknown(field, &entries));
        }
    }
    if json {
        for entry in &entries {
            let picked = fields.iter().map(|field| {
                let value = at(entry, field).cloned().unwrap_or_default();
                (field.clone(), value)
            });
            print::json(&picked.collect::<Map<String, Value>>())?;
        }
        return Ok(());
    }
    let mut table = vec![fields.iter().map(|field| field.to_uppercase()).collect::<Vec<String>>()];
    table.extend(entries.iter().map(|entry| {
        let cells = fields.iter().map(|field| cell(at(entry, field)));
        cells.collect()
    }));
    print::rows_of(&table);
    Ok(())
}

/// Returns the entries of a document: the items of a list, or its one procedure.
fn entries(document: &Document) -> Vec<&Value> {
    match (document.get("items"), document.get("procedure")) {
        (Value::Array(items), _) => items.iter().collect(),
        (_, procedure @ Value::Object(_)) => vec![procedure],
        _ => vec![&document.0],
    }
}

/// Returns a field by its path, such as `cause.text`.
fn at<'a>(entry: &'a Value, field: &str) -> Option<&'a Value> {
    field.split('.').try_fold(entry, |value, name| value.get(name))
}

/// Returns `true` if an entry has a field, or nothing where the field would be a part: a cause of what has not failed.
fn may_have(entry: &Value, field: &str) -> bool {
    let mut value = entry;
    for name in field.split('.') {
        match value.get(name) {
            Some(Value::Null) => return true,
            Some(part) => value = part,
            None => return false,
        }
    }
    true
}

fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "-".to_owned(),
        Some(Value::String(text)) => print::plain(text),
        Some(other) => print::plain(&other.to_string()),
    }
}

/// Says that no entry has a field: it is misspelt, or one of those that only some entries have.
fn unknown(field: &str, entries: &[&Value]) -> String {
    let first = entries.first().and_then(|entry| entry.as_object());
    let there: Vec<&str> = first.into_iter().flat_map(Map::keys).map(String::as_str).collect();
    let hint = match nearest(field, there.iter().copied()) {
        Some(meant) => format!("is {} meant?", print::plain(meant)),
        None => format!("the first has {}", there.join(", ")),
    };
    format!("no entry has a field {}; {hint}", print::plain(field))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_is_found_by_its_path() {
        let list = Document(json!({ "items": [{ "id": "1.0", "cause": { "text": "no route" } }] }));
        let entries = entries(&list);
        let [first] = entries.as_slice() else {
            panic!("{entries:?}")
        };
        assert_eq!(at(first, "cause.text"), Some(&json!("no route")));
        assert_eq!(at(first, "cause.kind"), None);
        assert_eq!(cell(at(first, "cause")), r#"{"text":"no route"}"#);
        assert!(may_have(first, "cause.text") && !may_have(first, "cause.kind"));
        let running = json!({ "id": "1.0", "cause": null });
        assert!(may_have(&running, "cause.text") && !may_have(&running, "casue.text"));
        assert!(unknown("when", &entries).contains("the first has cause, id"));
        assert!(unknown("casue", &entries).ends_with("; is cause meant?"));
    }
}

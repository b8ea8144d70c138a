//! Expressions of sagas: any text, with any value as its root.

use procession_saga_language::expression::{Place, Steps, Text, Visit};
use serde_json::Value;

use super::Checked;

/// A line that is the text, and a JSON document behind it. Without one the root is an object with a bit of everything.
pub(crate) fn check(bytes: &[u8]) -> Checked {
    let text = String::from_utf8_lossy(bytes);
    let (text, root) = text.split_once('\n').unwrap_or((text.as_ref(), ""));
    let root = serde_json::from_str(root).unwrap_or_else(|_| plain());
    for place in [Place::Value, Place::Condition] {
        match Text::parse(text, place) {
            Ok(read) => evaluated(&read, text, &root)?,
            Err(wrong) => {
                let message = wrong.to_string();
                if !message.contains("has the unknown type [") {
                    has_place(&message, text)?;
                }
            }
        }
    }
    Ok(())
}

/// The visit of a call that ended with a fault.
struct Faulted;

impl Visit for Faulted {
    fn has_fault_of(&self, class: &str) -> bool {
        class == "x.Boom"
    }

    fn sequence(&self, entity: &str, rule: &str) -> String {
        format!("{entity}|{rule}")
    }
}

/// What it gives is given again, a condition is tested as it is evaluated, and a failure has its place.
fn evaluated(read: &Text, text: &str, root: &Value) -> Checked {
    let first = read.evaluate(root, &Faulted, &mut Steps::new());
    let again = read.evaluate(root, &Faulted, &mut Steps::new());
    let tested = read.test(root, &Faulted, &mut Steps::new());
    match (first, again) {
        (Ok(first), Ok(again)) => {
            assert_eq!(first, again);
            if let Ok(tested) = tested {
                assert_eq!(first, Value::Bool(tested));
            }
        }
        (Err(first), Err(again)) => {
            assert_eq!(first.to_string(), again.to_string());
            has_place(&first.to_string(), text)?;
        }
        _ => return Err("it is evaluated in two ways".into()),
    }
    Ok(())
}

/// Every message begins with a column of the text, unless the text has a wrong type.
fn has_place(message: &str, text: &str) -> Checked {
    let column = message
        .strip_prefix("column ")
        .and_then(|rest| rest.split_once(':'))
        .and_then(|(column, _)| column.parse::<usize>().ok())
        .ok_or_else(|| format!("it has no column: {message}"))?;
    assert!((1..=text.chars().count() + 1).contains(&column), "{message}");
    Ok(())
}

fn plain() -> Value {
    serde_json::json!({
        "a": 1, "f": 0.5, "s": "text", "t": true, "n": null, "list": [1, 2, { "x": 3 }], "o": { "a": { "b": [] } },
        "collection": Vec::from_iter(0..1000), "large": u64::MAX, "least": i64::MIN,
    })
}

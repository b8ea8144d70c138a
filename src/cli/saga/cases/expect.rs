//! Expectations: what a case names is compared, and nothing else.

use procession::testkit::Trouble;
use serde_json::{Map, Value, json};

use super::found::Found;
use super::life::Compared;

/// What is the same after a crash. Commits, calls and times are not, and siblings may have gone in another order.
const AFTER_A_CRASH: [&str; 7] = [
    "standing",
    "status",
    "compensation",
    "code",
    "error",
    "context",
    "skipped",
];

/// Compares what a step names. All that differs is told at once.
pub(super) fn compare(expected: &Map<String, Value>, found: &Found, compared: Compared) -> Result<(), Trouble> {
    let mut wrong: Vec<String> = found.disagreement().into_iter().collect();
    let is_compared = |name: &str| compared == Compared::All || AFTER_A_CRASH.contains(&name);
    for (name, expected) in expected.iter().filter(|(name, _)| is_compared(name)) {
        let found = value(name, found).ok_or_else(|| format!("a case cannot expect \"{name}\""))?;
        let is_as_expected = match name.as_str() {
            "calls" | "rests" | "states" | "skipped" => list_fits(expected, &found),
            "refused" => contains(expected, &found),
            _ => fits(expected, &found),
        };
        if !is_as_expected {
            wrong.push(format!("{name}: expected {expected}, found {found}"));
        }
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(format!("{}\n  in {:#}", wrong.join("\n  "), found.end()).into()),
    }
}

fn value(name: &str, found: &Found) -> Option<Value> {
    Some(match name {
        "calls" => found.calls.iter().map(|call| call.shown(found)).collect(),
        "standing" => found.standing().into(),
        "status" => found.status().into(),
        "compensation" => found.compensation().into(),
        "code" => found.error().get("code").cloned().unwrap_or_default(),
        "error" => found.error(),
        "rests" => found.rests().into(),
        "commits" => found.commits.into(),
        "at_ms" => (found.at.0 / 1_000).into(),
        "context" => found.context().into(),
        "states" => found.states().into(),
        "skipped" => found.skipped().into(),
        "sentence" => found.instance.sentence().into(),
        "at" => found.instance.at.clone().into(),
        "refused" => found.refused.clone().into(),
        _ => return None,
    })
}

/// A list of names, or of objects: their named members are compared.
fn list_fits(expected: &Value, found: &Value) -> bool {
    match (expected.as_array(), found.as_array()) {
        (Some(expected), Some(found)) => {
            expected.len() == found.len()
                && expected
                    .iter()
                    .zip(found)
                    .all(|(expected, found)| item_fits(expected, found))
        }
        _ => false,
    }
}

fn item_fits(expected: &Value, found: &Value) -> bool {
    match expected.as_str() {
        Some(name) => name == short(found),
        None => fits(expected, found),
    }
}

/// Returns how cases write an item in short: `State`, `State-loop-2`, `State SU`.
fn short(item: &Value) -> String {
    let text = |key| item.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let index = item.get("index").and_then(Value::as_u64);
    let loops = index.map(|index| format!("-loop-{index}")).unwrap_or_default();
    let status = item
        .get("status")
        .map(|_| format!(" {}", text("status")))
        .unwrap_or_default();
    format!("{}{loops}{status}", text("state"))
}

/// An object names some of the members; a member that is null is not there. Instead of a text, `{"contains": ..}` names a
/// part of it.
fn fits(expected: &Value, found: &Value) -> bool {
    match (expected, found) {
        (Value::Object(expected), Value::String(_)) => {
            expected.len() == 1 && expected.get("contains").is_some_and(|part| contains(part, found))
        }
        (Value::Object(expected), Value::Object(found)) => expected
            .iter()
            .all(|(name, expected)| fits(expected, found.get(name).unwrap_or(&Value::Null))),
        (Value::Array(expected), Value::Array(found)) => {
            expected.len() == found.len()
                && expected
                    .iter()
                    .zip(found)
                    .all(|(expected, found)| fits(expected, found))
        }
        (expected, found) => expected == found || *expected == json!(found.as_f64()),
    }
}

fn contains(expected: &Value, found: &Value) -> bool {
    match (expected.as_str(), found.as_str()) {
        (Some(expected), Some(found)) => found.contains(expected),
        _ => false,
    }
}

//! Texts that are compiled while a file is checked. One that cannot be compiled is told of at its place.

use super::path::Path;
use super::problem::Problems;
use crate::expression::{Place, Text};

/// Compiles a text that lies at this path.
pub(super) fn compile(
    text: &str,
    place: Place,
    path: &Path<'_>,
    state: Option<&str>,
    problems: &mut Problems,
) -> Option<Text> {
    let wrong = match Text::parse(text, place) {
        Ok(text) => return Some(text),
        Err(wrong) => wrong,
    };
    let said = wrong.said();
    let hint = wrong.hint.unwrap_or_else(|| otherwise(place).to_owned());
    problems.error_in(state, &path.to_string(), said, hint);
    None
}

/// As `compile`, of a condition. Without one the file is refused, so it does not matter which stands for it.
pub(super) fn condition(text: &str, path: &Path<'_>, state: Option<&str>, problems: &mut Problems) -> Text {
    compile(text, Place::Condition, path, state, problems).unwrap_or_else(nothing)
}

/// Stands for a text that is missing, in a file that is refused for it.
pub(super) fn nothing() -> Text {
    Text::Literal("".into())
}

/// What to do where an error does not say it.
fn otherwise(place: Place) -> &'static str {
    match place {
        Place::Value => "write an expression, for instance $.[a], or a text that does not begin with $",
        Place::Condition => "write a condition, for instance [a] == 1",
    }
}

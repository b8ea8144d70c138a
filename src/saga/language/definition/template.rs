//! Values of a definition whose texts are compiled: what `Input`, `Output` and a `Collection` say.

use serde_json::{Map, Number, Value};

use super::json::Json;
use super::path::Path;
use super::problem::{Problems, shown};
use super::texts;
use crate::expression::{Failed, Place, Steps, Text, Visit};

/// A value out of a file: a literal, except for texts that begin with `$`, which are expressions.
#[derive(Clone, Debug, PartialEq)]
pub enum Template {
    /// Null, also in place of a text that is wrong.
    Null,
    /// A truth value.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A text, or an expression.
    Text(Text),
    /// A list.
    List(Vec<Template>),
    /// An object, its members in the order of the file.
    Object(Vec<(String, Template)>),
}

impl Template {
    /// Returns the value for this root. Nulls stay in lists and are left out of objects.
    ///
    /// # Errors
    ///
    /// If an expression in it has no value. All of them share these steps: a file may name one large value many times.
    /// The text of the error ends with the expression.
    pub fn evaluate(&self, root: &Value, visit: &dyn Visit, steps: &mut Steps) -> Result<Value, Failed> {
        Ok(match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(*value),
            Self::Number(number) => Value::Number(number.clone()),
            Self::Text(text) => text
                .evaluate(root, visit, steps)
                .map_err(|failed| in_expression(failed, text))?,
            Self::List(items) => {
                let values = items.iter().map(|item| item.evaluate(root, visit, steps));
                Value::Array(values.collect::<Result<_, _>>()?)
            }
            Self::Object(members) => {
                let mut map = Map::new();
                for (key, member) in members {
                    let value = member.evaluate(root, visit, steps)?;
                    if !value.is_null() {
                        map.insert(key.clone(), value);
                    }
                }
                Value::Object(map)
            }
        })
    }

    /// Compiles a value of a file, which lies at this path. A text that cannot be compiled is told of, and counts as null.
    pub(super) fn compile(
        json: &Json,
        types: Types,
        path: &Path<'_>,
        state: Option<&str>,
        problems: &mut Problems,
    ) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => Self::Number(number.clone()),
            Json::Text(text) => {
                let text = texts::compile(text, Place::Value, path, state, problems);
                text.map_or(Self::Null, Self::Text)
            }
            Json::List(items) => match (types, items.as_slice()) {
                (Types::OfJava, [Json::Text(class), list @ Json::List(_)]) if is_class(class) => {
                    Self::compile(list, types, &path.index(1), state, problems)
                }
                (Types::OfJava | Types::None, items) => {
                    let items = items.iter().enumerate();
                    let compiled = items.map(|(at, item)| Self::compile(item, types, &path.index(at), state, problems));
                    Self::List(compiled.collect())
                }
            },
            Json::Object(members) => {
                let members = members.iter().filter(|(key, _)| types == Types::None || key != "@type");
                let compiled = members.map(|(key, value)| {
                    let value = Self::compile(value, types, &path.key(key), state, problems);
                    (key.clone(), value)
                });
                Self::Object(compiled.collect())
            }
        }
    }
}

/// Whether a value names the Java classes of its parts, as Jackson and Fastjson write it: `"@type"` in an object,
/// and `["java.util.List", [..]]` for a list. Here types are those of Rust, so both are taken away.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Types {
    None,
    OfJava,
}

/// Returns whether a text names a class of Java with its package, or a class of arrays.
fn is_class(text: &str) -> bool {
    let elements = text.trim_start_matches('[');
    if elements.len() == text.len() {
        return is_qualified(text);
    }
    let class = elements.strip_prefix('L').and_then(|rest| rest.strip_suffix(';'));
    class.map_or_else(
        || matches!(elements, "B" | "C" | "D" | "F" | "I" | "J" | "S" | "Z"),
        is_qualified,
    )
}

fn is_qualified(name: &str) -> bool {
    let is_word = |word: &str| {
        let begins = word.starts_with(|first: char| first.is_alphabetic() || first == '_');
        begins
            && word
                .chars()
                .all(|next| next.is_alphanumeric() || matches!(next, '_' | '$'))
    };
    name.contains('.') && name.split('.').all(is_word)
}

/// A value has many expressions, so an error in one of them says in which.
fn in_expression(failed: Failed, text: &Text) -> Failed {
    let written = text.to_string();
    Failed {
        column: failed.column,
        text: format!("{} in \"{}\"", failed.text, shown(&written)),
    }
}

#[cfg(test)]
mod tests;

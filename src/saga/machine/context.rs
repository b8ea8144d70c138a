//! The context of a machine: start params, and what states have put out.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::{Map, Value};

/// An object of variables. A variable that is null is not in it.
#[derive(Clone, Debug)]
pub(in crate::saga) struct Context {
    variables: Value,
    /// How often a variable was set since the context was read: two readings of it tell whether one was.
    sets: u32,
}

/// Variables for which room is made at once: a stored number may be wrong.
const EXPECTED: usize = 64;

/// It is written with each value that changes, so it is not copied for that.
impl Serialize for Context {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.variables.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Context {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Variables;
        impl<'de> Visitor<'de> for Variables {
            type Value = Context;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of variables")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Context, A::Error> {
                let mut variables = Vec::with_capacity(map.size_hint().unwrap_or_default().min(EXPECTED));
                while let Some(variable) = map.next_entry::<String, Value>()? {
                    variables.push(variable);
                }
                // They are stored in order, and a map of what is in order is made without a search for each.
                Ok(Map::from_iter(variables).into())
            }
        }
        deserializer.deserialize_map(Variables)
    }
}

impl Default for Context {
    fn default() -> Self {
        Self::from(Map::new())
    }
}

impl From<Map<String, Value>> for Context {
    fn from(mut variables: Map<String, Value>) -> Self {
        variables.retain(|_, value| !value.is_null());
        Self {
            variables: Value::Object(variables),
            sets: 0,
        }
    }
}

impl From<Context> for Map<String, Value> {
    fn from(context: Context) -> Self {
        object(context.variables).unwrap_or_default()
    }
}

impl Context {
    /// Returns it as expressions see it: an object.
    pub(in crate::saga) const fn root(&self) -> &Value {
        &self.variables
    }

    pub(in crate::saga) fn variables(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.variables.as_object().into_iter().flatten()
    }

    pub(in crate::saga) fn get(&self, name: &str) -> Option<&Value> {
        self.variables.get(name)
    }

    pub(in crate::saga) fn is_empty(&self) -> bool {
        self.variables().next().is_none()
    }

    pub(in crate::saga) fn set(&mut self, name: &str, value: Value) {
        let Value::Object(variables) = &mut self.variables else {
            return;
        };
        self.sets = self.sets.saturating_add(1);
        if value.is_null() {
            variables.remove(name);
        } else {
            variables.insert(name.to_owned(), value);
        }
    }

    /// Returns how often a variable was set. It does not say whether the value was another one.
    pub(super) const fn sets(&self) -> u32 {
        self.sets
    }

    /// Puts values over those that are there.
    pub(in crate::saga) fn lay(&mut self, values: Map<String, Value>) {
        for (name, value) in values {
            self.set(&name, value);
        }
    }

    /// Returns about how many bytes it takes in a row. It is counted, because a stage cannot leave more than it may.
    pub(in crate::saga) fn size(&self) -> usize {
        size(&self.variables)
    }

    /// Returns about how many bytes a variable takes.
    pub(super) fn size_of(&self, name: &str) -> usize {
        self.get(name).map_or(0, |value| size_of(name, value))
    }
}

/// Returns the members of an object.
pub(super) fn object(value: Value) -> Option<Map<String, Value>> {
    if let Value::Object(members) = value {
        return Some(members);
    }
    None
}

/// Returns about how many bytes a variable takes with this value. One that is null is not there.
pub(super) fn size_of(name: &str, value: &Value) -> usize {
    match value {
        Value::Null => 0,
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            name.len() + 5 + size(value)
        }
    }
}

/// Returns about how many bytes a value takes. Values and the templates around them have a deepest nesting, so recursion is
/// bounded.
pub(super) fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 1,
        Value::Number(_) => 9,
        Value::String(text) => text.len() + 5,
        Value::Array(items) => items.iter().map(size).sum::<usize>() + 5,
        Value::Object(members) => {
            members
                .iter()
                .map(|(key, value)| key.len() + 5 + size(value))
                .sum::<usize>()
                + 5
        }
    }
}

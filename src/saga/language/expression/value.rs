//! A value while an expression is evaluated.
//!
//! It borrows from the root, or is shared: a copy costs no more than a pointer, however large the value is.

use std::fmt;
use std::rc::Rc;

use serde_json::{Map, Number, Value};

use super::Mistake;
use super::steps::Steps;
use super::tree::Constant;

/// Characters of a text that an error shows.
const SHOWN: usize = 60;

#[derive(Clone, Debug)]
pub(super) enum Item<'a> {
    Null,
    Boolean(bool),
    /// From `i64::MIN` to `u64::MAX`, as JSON has them.
    Integer(i128),
    /// Finite, but for a number of `serde_json` in arbitrary precision, which nothing equals.
    Float(f64),
    Text(&'a str),
    /// A text that the evaluation made.
    Made(Rc<str>),
    List(&'a [Value]),
    /// A list that the evaluation made.
    Elements(Rc<[Item<'a>]>),
    Object(&'a Map<String, Value>),
}

impl<'a> Item<'a> {
    pub(super) fn of(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Boolean(*value),
            Value::Number(number) => Self::of_number(number),
            Value::String(text) => Self::Text(text),
            Value::Array(list) => Self::List(list),
            Value::Object(map) => Self::Object(map),
        }
    }

    fn of_number(number: &Number) -> Self {
        let negative = number.as_i64().map(i128::from);
        match negative.or_else(|| number.as_u64().map(i128::from)) {
            Some(integer) => Self::Integer(integer),
            None => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
        }
    }

    pub(super) fn constant(constant: &'a Constant) -> Self {
        match constant {
            Constant::Null => Self::Null,
            Constant::Boolean(value) => Self::Boolean(*value),
            Constant::Integer(value) => Self::Integer(*value),
            Constant::Float(value) => Self::Float(*value),
            Constant::Text(text) => Self::Text(text),
        }
    }

    pub(super) fn count(count: usize) -> Self {
        // What lies in memory has fewer than 2^64 parts.
        Self::Integer(i128::try_from(count).unwrap_or(i128::MAX))
    }

    pub(super) const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Made(text) => Some(text),
            Self::Null
            | Self::Boolean(_)
            | Self::Integer(_)
            | Self::Float(_)
            | Self::List(_)
            | Self::Elements(_)
            | Self::Object(_) => None,
        }
    }

    /// Returns the number of elements of a list.
    pub(super) fn length(&self) -> Option<usize> {
        match self {
            Self::List(list) => Some(list.len()),
            Self::Elements(list) => Some(list.len()),
            Self::Null
            | Self::Boolean(_)
            | Self::Integer(_)
            | Self::Float(_)
            | Self::Text(_)
            | Self::Made(_)
            | Self::Object(_) => None,
        }
    }

    /// Returns the number of elements of a list, or of keys of an object.
    pub(super) fn size(&self) -> Option<usize> {
        if let Self::Object(map) = self {
            return Some(map.len());
        }
        self.length()
    }

    /// Returns an element of a list.
    pub(super) fn element(&self, place: usize) -> Option<Self> {
        match self {
            Self::List(list) => list.get(place).map(Self::of),
            Self::Elements(list) => list.get(place).cloned(),
            Self::Null
            | Self::Boolean(_)
            | Self::Integer(_)
            | Self::Float(_)
            | Self::Text(_)
            | Self::Made(_)
            | Self::Object(_) => None,
        }
    }

    /// Returns the value of a key. A missing key is null; a value that has no keys is an error, null as well.
    pub(super) fn key(&self, name: &str, at: usize, steps: &mut Steps) -> Result<Self, Mistake> {
        if let Self::Object(map) = self {
            // The map compares the name with its keys.
            steps.take_bytes(name.len(), at)?;
            return Ok(map.get(name).map_or(Self::Null, Self::of));
        }
        let mut what = format!("{} has no key \"{}\"", self.said(), name.escape_debug());
        if self.length().is_some() {
            what += "; the elements of a list have numbers";
        }
        Err((at, what))
    }

    /// Returns the element at an index, or the value of a key that has been computed.
    pub(super) fn at(&self, index: &Self, at: usize, steps: &mut Steps) -> Result<Self, Mistake> {
        let Some(length) = self.length() else {
            return match index.text() {
                Some(name) => self.key(name, at, steps),
                None => Err((at, format!("{} has no element {}", self.said(), index.said()))),
            };
        };
        let place = index.place();
        let element = place.and_then(|place| self.element(place));
        element.ok_or_else(|| {
            let index = index.said();
            (
                at,
                format!("the list has {length} elements, counted from 0, and none at {index}"),
            )
        })
    }

    /// Returns it as an index: counters of loops are floats.
    fn place(&self) -> Option<usize> {
        match self {
            Self::Integer(place) => usize::try_from(*place).ok(),
            Self::Float(place) => super::compare::whole(*place).and_then(|place| usize::try_from(place).ok()),
            Self::Null
            | Self::Boolean(_)
            | Self::Text(_)
            | Self::Made(_)
            | Self::List(_)
            | Self::Elements(_)
            | Self::Object(_) => None,
        }
    }

    /// Returns a boolean, or says what takes one.
    pub(super) fn boolean(&self, whose: &dyn fmt::Display, at: usize) -> Result<bool, Mistake> {
        if let Self::Boolean(value) = self {
            return Ok(*value);
        }
        Err((at, format!("{whose} takes true or false, and this is {}", self.said())))
    }

    /// Names it in an error.
    pub(super) fn said(&self) -> String {
        let of_list = |count: usize| format!("a list of {count}");
        match self {
            Self::Null => "null".to_owned(),
            Self::Boolean(value) => value.to_string(),
            Self::Integer(value) => value.to_string(),
            Self::Float(value) => float_text(*value),
            Self::Text(text) => quoted(text),
            Self::Made(text) => quoted(text),
            Self::List(list) => of_list(list.len()),
            Self::Elements(list) => of_list(list.len()),
            Self::Object(map) => format!("an object of {}", map.len()),
        }
    }

    /// Returns it as JSON. Copies take steps before they are made.
    pub(super) fn into_value(self, steps: &mut Steps, at: usize) -> Result<Value, Mistake> {
        Ok(match self {
            Self::Null => Value::Null,
            Self::Boolean(value) => Value::Bool(value),
            Self::Integer(value) => Value::Number(integer(value).ok_or_else(|| super::arithmetic::overflow(at))?),
            Self::Float(value) => Number::from_f64(value).map_or(Value::Null, Value::Number),
            Self::Text(text) => {
                steps.take_bytes(text.len(), at)?;
                Value::String(text.to_owned())
            }
            Self::Made(text) => {
                steps.take_bytes(text.len(), at)?;
                Value::String(text.as_ref().to_owned())
            }
            Self::List(list) => {
                weigh(list.iter().collect(), steps, at)?;
                Value::Array(list.to_vec())
            }
            Self::Object(map) => {
                weigh(map.values().collect(), steps, at)?;
                steps.take_bytes(map.keys().map(String::len).sum(), at)?;
                Value::Object(map.clone())
            }
            Self::Elements(list) => {
                steps.take(list.len(), at)?;
                let values = list.iter().map(|item| item.clone().into_value(steps, at));
                Value::Array(values.collect::<Result<_, _>>()?)
            }
        })
    }
}

/// Takes the steps for a copy of these values and all that is in them.
fn weigh(mut open: Vec<&Value>, steps: &mut Steps, at: usize) -> Result<(), Mistake> {
    steps.take(open.len(), at)?;
    while let Some(value) = open.pop() {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
            Value::String(text) => steps.take_bytes(text.len(), at)?,
            Value::Array(list) => {
                steps.take(list.len(), at)?;
                open.extend(list);
            }
            Value::Object(map) => {
                steps.take(map.len(), at)?;
                steps.take_bytes(map.keys().map(String::len).sum(), at)?;
                open.extend(map.values());
            }
        }
    }
    Ok(())
}

/// Returns an integer as JSON has it, if it is within its bounds.
pub(super) fn integer(value: i128) -> Option<Number> {
    let unsigned = u64::try_from(value).map(Number::from);
    unsigned.or_else(|_| i64::try_from(value).map(Number::from)).ok()
}

/// Returns a number as JSON writes it: 1.0, not 1.
pub(super) fn float_text(value: f64) -> String {
    Number::from_f64(value).map_or_else(|| value.to_string(), |number| number.to_string())
}

fn quoted(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        None => format!("\"{}\"", text.escape_debug()),
        Some((end, _)) => format!("\"{}…\"", text.get(..end).unwrap_or_default().escape_debug()),
    }
}

//! The methods that an expression can call. They do what Java's do: sizes of texts count UTF-16 units, and `trim` takes
//! away control characters and blanks.

use super::compare::equal;
use super::steps::Steps;
use super::value::Item;
use super::{Misread, Mistake};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Size,
    Length,
    IsEmpty,
    Contains,
    ContainsKey,
    Get,
    Equals,
    StartsWith,
    EndsWith,
    ToLowerCase,
    ToUpperCase,
    Trim,
}

/// Every method, with its name and the number of its arguments.
const METHODS: [(&str, usize, Method); 12] = [
    ("size", 0, Method::Size),
    ("length", 0, Method::Length),
    ("isEmpty", 0, Method::IsEmpty),
    ("contains", 1, Method::Contains),
    ("containsKey", 1, Method::ContainsKey),
    ("get", 1, Method::Get),
    ("equals", 1, Method::Equals),
    ("startsWith", 1, Method::StartsWith),
    ("endsWith", 1, Method::EndsWith),
    ("toLowerCase", 0, Method::ToLowerCase),
    ("toUpperCase", 0, Method::ToUpperCase),
    ("trim", 0, Method::Trim),
];

impl Method {
    /// Finds a method, with the number of its arguments, or says which there are.
    pub(super) fn find(name: &str, at: usize) -> Result<(Self, usize), Misread> {
        let found = METHODS.into_iter().find(|(own, _, _)| *own == name);
        found.map(|(_, arity, method)| (method, arity)).ok_or_else(|| {
            let known = METHODS.map(|(name, _, _)| name).join(", ");
            let name = name.escape_debug();
            let what = format!("\"{name}\" is no method that an expression may call");
            Misread::new(at, what).hint(format!("these are: {known}"))
        })
    }

    fn name(self) -> &'static str {
        let found = METHODS.into_iter().find(|(_, _, own)| *own == self);
        found.map_or("", |(name, _, _)| name)
    }
}

/// Calls a method of a value that is not null. An argument that is missing is null.
pub(super) fn call<'a>(
    method: Method,
    of: &Item<'a>,
    argument: &Item<'a>,
    at: usize,
    steps: &mut Steps,
) -> Result<Item<'a>, Mistake> {
    let text = || of.text().ok_or_else(|| lacks(method, of, at));
    let other = || argument.text().ok_or_else(|| unfit(method, "a text", argument, at));
    Ok(match method {
        Method::Size => Item::count(of.size().ok_or_else(|| lacks(method, of, at))?),
        Method::Length => {
            let text = text()?;
            steps.take_bytes(text.len(), at)?;
            Item::count(text.encode_utf16().count())
        }
        Method::IsEmpty => {
            let of_text = || of.text().map(str::len);
            let size = of.size().or_else(of_text).ok_or_else(|| lacks(method, of, at))?;
            Item::Boolean(size == 0)
        }
        Method::Contains => match of.text() {
            Some(text) => {
                steps.take_bytes(text.len(), at)?;
                Item::Boolean(text.contains(other()?))
            }
            None => Item::Boolean(has_element(of, argument, at, steps)?),
        },
        Method::ContainsKey => match (of, argument.text()) {
            (Item::Object(map), Some(key)) => {
                steps.take_bytes(key.len(), at)?;
                Item::Boolean(map.contains_key(key))
            }
            (Item::Object(_), None) => return Err(unfit(method, "a text", argument, at)),
            _ => return Err(lacks(method, of, at)),
        },
        Method::Get => return of.at(argument, at, steps),
        Method::Equals => Item::Boolean(equal(of, argument, at, steps)?),
        Method::StartsWith | Method::EndsWith => {
            let (text, other) = (text()?, other()?);
            steps.take_bytes(other.len(), at)?;
            Item::Boolean(if method == Method::StartsWith {
                text.starts_with(other)
            } else {
                text.ends_with(other)
            })
        }
        Method::ToLowerCase => changed(text()?, str::to_lowercase, at, steps)?,
        Method::ToUpperCase => changed(text()?, str::to_uppercase, at, steps)?,
        Method::Trim => changed(text()?, trimmed, at, steps)?,
    })
}

fn trimmed(text: &str) -> String {
    text.trim_matches(|character| character <= ' ').to_owned()
}

fn changed<'a>(text: &str, change: fn(&str) -> String, at: usize, steps: &mut Steps) -> Result<Item<'a>, Mistake> {
    steps.take_bytes(text.len(), at)?;
    Ok(Item::Made(change(text).into()))
}

fn has_element(of: &Item<'_>, argument: &Item<'_>, at: usize, steps: &mut Steps) -> Result<bool, Mistake> {
    let count = of.length().ok_or_else(|| lacks(Method::Contains, of, at))?;
    for place in 0..count {
        steps.take(1, at)?;
        if let Some(element) = of.element(place)
            && equal(&element, argument, at, steps)?
        {
            return Ok(true);
        }
    }
    Ok(false)
}

fn lacks(method: Method, of: &Item<'_>, at: usize) -> Mistake {
    (at, format!("{} has no method {}()", of.said(), method.name()))
}

fn unfit(method: Method, wanted: &str, argument: &Item<'_>, at: usize) -> Mistake {
    let (name, argument) = (method.name(), argument.said());
    (at, format!("{name}() takes {wanted}, and this is {argument}"))
}

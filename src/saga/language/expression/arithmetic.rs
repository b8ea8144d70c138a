//! Numbers, and texts that are joined.

use std::fmt;

use super::Mistake;
use super::operator::{Arithmetic, Operator, Sign};
use super::steps::Steps;
use super::value::{Item, float_text, integer};

/// Returns the value of an operator of sums and products.
pub(super) fn compute<'a>(
    operator: Arithmetic,
    left: &Item<'a>,
    right: &Item<'a>,
    at: usize,
    steps: &mut Steps,
) -> Result<Item<'a>, Mistake> {
    if operator == Arithmetic::Add && (left.text().is_some() || right.text().is_some()) {
        return joined(left, right, at, steps);
    }
    if let (Item::Integer(left), Item::Integer(right)) = (left, right) {
        return integers(operator, *left, *right, at).map(Item::Integer);
    }
    match (float(left), float(right)) {
        (Some(left), Some(right)) => floats(operator, left, right, at).map(Item::Float),
        (None, _) => Err(no_number(&Operator::Arithmetic(operator), left, at)),
        (_, None) => Err(no_number(&Operator::Arithmetic(operator), right, at)),
    }
}

/// Returns a number with a sign.
pub(super) fn signed<'a>(sign: Sign, operand: &Item<'a>, at: usize) -> Result<Item<'a>, Mistake> {
    match (sign, operand) {
        (Sign::Not, operand) => operand.boolean(&"\"!\"", at).map(|value| Item::Boolean(!value)),
        (Sign::Plus, Item::Integer(_) | Item::Float(_)) => Ok(operand.clone()),
        (Sign::Plus, operand) => Err(no_number(&"\"+\"", operand, at)),
        (Sign::Minus, Item::Integer(value)) => bounded(value.checked_neg(), at).map(Item::Integer),
        (Sign::Minus, Item::Float(value)) => Ok(Item::Float(-value)),
        (Sign::Minus, operand) => Err(no_number(&"\"-\"", operand, at)),
    }
}

fn integers(operator: Arithmetic, left: i128, right: i128, at: usize) -> Result<i128, Mistake> {
    let is_division = matches!(operator, Arithmetic::Divide | Arithmetic::Remainder);
    if is_division && right == 0 {
        return Err(by_zero(at));
    }
    let value = match operator {
        Arithmetic::Add => left.checked_add(right),
        Arithmetic::Subtract => left.checked_sub(right),
        Arithmetic::Multiply => left.checked_mul(right),
        Arithmetic::Divide => left.checked_div(right),
        Arithmetic::Remainder => left.checked_rem(right),
    };
    bounded(value, at)
}

fn floats(operator: Arithmetic, left: f64, right: f64, at: usize) -> Result<f64, Mistake> {
    let is_division = matches!(operator, Arithmetic::Divide | Arithmetic::Remainder);
    if is_division && right == 0.0 {
        return Err(by_zero(at));
    }
    let value = match operator {
        Arithmetic::Add => left + right,
        Arithmetic::Subtract => left - right,
        Arithmetic::Multiply => left * right,
        Arithmetic::Divide => left / right,
        Arithmetic::Remainder => left % right,
    };
    if value.is_finite() {
        Ok(value)
    } else {
        Err(overflow(at))
    }
}

/// An integer beside a float is computed as a float, as in Java.
fn float(item: &Item<'_>) -> Option<f64> {
    match item {
        Item::Integer(value) => Some(*value as f64),
        Item::Float(value) => Some(*value),
        Item::Null
        | Item::Boolean(_)
        | Item::Text(_)
        | Item::Made(_)
        | Item::List(_)
        | Item::Elements(_)
        | Item::Object(_) => None,
    }
}

/// Two values as one text. At least one of them is a text.
fn joined<'a>(left: &Item<'a>, right: &Item<'a>, at: usize, steps: &mut Steps) -> Result<Item<'a>, Mistake> {
    let length = |item: &Item<'_>| item.text().map_or(0, str::len);
    steps.take_bytes(length(left).saturating_add(length(right)), at)?;
    let mut text = String::new();
    for item in [left, right] {
        match item {
            Item::Null => text.push_str("null"),
            Item::Boolean(value) => text.push_str(if *value { "true" } else { "false" }),
            Item::Integer(value) => text.push_str(&value.to_string()),
            Item::Float(value) => text.push_str(&float_text(*value)),
            Item::Text(part) => text.push_str(part),
            Item::Made(part) => text.push_str(part),
            Item::List(_) | Item::Elements(_) | Item::Object(_) => {
                return Err((at, format!("{} cannot be joined to a text", item.said())));
            }
        }
    }
    Ok(Item::Made(text.into()))
}

/// Refuses integers that JSON does not have.
fn bounded(value: Option<i128>, at: usize) -> Result<i128, Mistake> {
    value
        .filter(|value| integer(*value).is_some())
        .ok_or_else(|| overflow(at))
}

fn no_number(whose: &dyn fmt::Display, operand: &Item<'_>, at: usize) -> Mistake {
    (at, format!("{whose} takes numbers, and this is {}", operand.said()))
}

fn by_zero(at: usize) -> Mistake {
    (at, "a division by zero".to_owned())
}

pub(super) fn overflow(at: usize) -> Mistake {
    (at, "the number is out of range".to_owned())
}

//! Which values are equal, and which comes first.

use std::cmp::Ordering;

use super::Mistake;
use super::operator::Relation;
use super::steps::Steps;
use super::value::Item;

/// Returns `true` if two values are related in this way.
pub(super) fn related(
    relation: Relation,
    left: &Item<'_>,
    right: &Item<'_>,
    at: usize,
    steps: &mut Steps,
) -> Result<bool, Mistake> {
    match relation {
        Relation::Equal => equal(left, right, at, steps),
        Relation::Differ => equal(left, right, at, steps).map(|is_equal| !is_equal),
        Relation::Ordered(wanted) => order(left, right, at, steps).map(|order| wanted.holds(order)),
    }
}

/// Returns `true` if two values are equal: numbers by value, others if they have one type. It walks through lists and
/// objects without recursion: their depth is the caller's.
pub(super) fn equal(left: &Item<'_>, right: &Item<'_>, at: usize, steps: &mut Steps) -> Result<bool, Mistake> {
    let mut open = Vec::new();
    let mut pair = Some((left.clone(), right.clone()));
    while let Some((left, right)) = pair {
        if let (Some(length), Some(other)) = (left.length(), right.length()) {
            if length != other {
                return Ok(false);
            }
            steps.take(length, at)?;
            open.extend((0..length).filter_map(|place| Some((left.element(place)?, right.element(place)?))));
        } else if let (Item::Object(left), Item::Object(right)) = (&left, &right) {
            if left.len() != right.len() {
                return Ok(false);
            }
            steps.take(left.len(), at)?;
            for (key, value) in *left {
                steps.take_bytes(key.len(), at)?;
                let Some(other) = right.get(key) else {
                    return Ok(false);
                };
                open.push((Item::of(value), Item::of(other)));
            }
        } else if !equal_alone(&left, &right, at, steps)? {
            return Ok(false);
        }
        pair = open.pop();
    }
    Ok(true)
}

/// Compares values without parts.
fn equal_alone(left: &Item<'_>, right: &Item<'_>, at: usize, steps: &mut Steps) -> Result<bool, Mistake> {
    if let (Some(left), Some(right)) = (left.text(), right.text()) {
        steps.take_bytes(left.len().min(right.len()), at)?;
        return Ok(left == right);
    }
    Ok(match (left, right) {
        (Item::Null, Item::Null) => true,
        (Item::Boolean(left), Item::Boolean(right)) => left == right,
        (left, right) => numbers(left, right).is_some_and(Ordering::is_eq),
    })
}

/// Returns which of two values is first: null before all, else two numbers or two texts.
fn order(left: &Item<'_>, right: &Item<'_>, at: usize, steps: &mut Steps) -> Result<Ordering, Mistake> {
    if left.is_null() || right.is_null() {
        return Ok(right.is_null().cmp(&left.is_null()));
    }
    if let (Some(left), Some(right)) = (left.text(), right.text()) {
        steps.take_bytes(left.len().min(right.len()), at)?;
        return Ok(left.cmp(right));
    }
    numbers(left, right).ok_or_else(|| {
        let (left, right) = (left.said(), right.said());
        let what = format!("{left} and {right} have no order; numbers have one, and texts, and null is before all");
        (at, what)
    })
}

/// Compares two numbers by value; none if one is no number.
fn numbers(left: &Item<'_>, right: &Item<'_>) -> Option<Ordering> {
    match (left, right) {
        (Item::Integer(left), Item::Integer(right)) => Some(left.cmp(right)),
        (Item::Float(left), Item::Float(right)) => left.partial_cmp(right),
        (Item::Integer(left), Item::Float(right)) => exactly(*left, *right),
        (Item::Float(left), Item::Integer(right)) => exactly(*right, *left).map(Ordering::reverse),
        _ => None,
    }
}

/// Compares without rounding: as a float, 2^53 + 1 would be 2^53.
fn exactly(integer: i128, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    let behind = 0.0_f64.partial_cmp(&float.fract())?;
    Some(integer.cmp(&truncated(float)).then(behind))
}

/// Returns a float without its fraction.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the fraction goes; a float beyond i128 becomes its bound, which is beyond the integers of JSON as well"
)]
const fn truncated(float: f64) -> i128 {
    float as i128
}

/// Returns a float that is an integer as one.
pub(super) fn whole(float: f64) -> Option<i128> {
    (float.fract() == 0.0).then_some(truncated(float))
}

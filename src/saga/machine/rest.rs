//! Rests: a member stands still where it is, and a person decides how it goes on.

use procession_actors::{CallContext, CodecError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::error::SagaError;
use super::instance::{is_false, is_zero};

/// Where and why a member rests, or sleeps until it goes on by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Rest {
    #[serde(rename = "e")]
    pub(super) error: SagaError,
    /// It came to an end, and rests there for what its states came to.
    #[serde(rename = "n", default, skip_serializing_if = "is_false")]
    pub(super) is_at_end: bool,
    /// What its state does is done, and only its Output is left out: a forward goes on behind it.
    #[serde(rename = "b", default, skip_serializing_if = "is_false")]
    pub(super) is_behind: bool,
    /// A task rests here, or an end does: a skip is possible.
    #[serde(rename = "s", default, skip_serializing_if = "is_false")]
    pub(super) can_skip: bool,
    /// How often it has gone on by itself.
    #[serde(rename = "f", default, skip_serializing_if = "is_zero")]
    pub(super) forwards: u32,
    /// The saga's own time was up before it rested, and it has been told so: time that ends this rest is the rest's own.
    #[serde(rename = "t", default, skip_serializing_if = "is_false")]
    pub(super) is_overdue: bool,
}

impl Rest {
    /// Says that what its state does is done.
    pub(super) fn behind(self) -> Self {
        Self {
            is_behind: true,
            ..self
        }
    }
}

/// How a member that rests goes on: the answer to its question, for [`Decide`](crate::messages::Operate::decide).
///
/// [`Saga::forward`](crate::saga::Saga::forward) and [`Saga::skip`](crate::saga::Saga::skip) send it to all members of a
/// saga that rest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Decision {
    /// It goes on at the state where it stopped, after these params have replaced variables of its context.
    Forward(Map<String, Value>),
    /// The state where it stopped counts as skipped. These results replace variables of its context, and what follows the
    /// state is next.
    Skip(Map<String, Value>),
}

/// What woke a member.
pub(super) enum Woken {
    /// It did not rest.
    Freshly,
    /// It goes on where it rested, with these params.
    Forward(Rest, Map<String, Value>),
    /// What rested counts as skipped, with these results.
    Skip(Rest, Map<String, Value>),
    /// The time is up after which a rest is compensated.
    Compensate(Rest),
    /// The answer was no decision, or one that is not possible here.
    Astray(Rest),
}

/// Reads what a member is to do that may have rested.
pub(super) fn woken(rest: Option<Rest>, cx: &CallContext<'_>) -> Woken {
    let Some(rest) = rest else { return Woken::Freshly };
    // The saga's own time-out wakes it too. If it is told of that, it goes on by itself.
    let is_told = cx.out_of_time() && !rest.is_overdue;
    if cx.timed_out() && !is_told {
        return Woken::Compensate(rest);
    }
    let answer: Result<Option<Decision>, CodecError> = cx.answer();
    match answer {
        Ok(None) => Woken::Forward(rest, Map::new()),
        Ok(Some(Decision::Forward(params))) => Woken::Forward(rest, params),
        Ok(Some(Decision::Skip(results))) if rest.can_skip => Woken::Skip(rest, results),
        Ok(Some(Decision::Skip(_))) | Err(_) => Woken::Astray(rest),
    }
}

//! Calls that services have seen.

use std::collections::BTreeMap;

use procession::ProcedureId;
use procession::procedure::Timestamp;
use procession::saga::Call;
use procession::testkit::Trouble;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::found::Found;

/// One call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Called {
    pub(super) step: usize,
    /// The member of the saga that made it.
    pub member: ProcedureId,
    /// The state.
    pub state: String,
    /// Of a Loop's element.
    pub index: Option<usize>,
    /// The number of the try, from 1.
    pub attempt: u32,
    /// Whether it undoes another state.
    pub compensates: bool,
    /// The state's Input, evaluated.
    pub arguments: Vec<Value>,
    /// What identifies the visit to the state.
    pub token: String,
    /// When it was made.
    pub at: Timestamp,
}

/// One try of a state, which a crash may repeat: member, state, the visit in the token, attempt.
pub(super) type Try = (u32, String, String, u32);

pub(super) fn try_of(call: &Call) -> Try {
    Called::new(call, &[], Timestamp(0)).of_try()
}

impl Called {
    pub(super) fn new(call: &Call, arguments: &[Value], at: Timestamp) -> Self {
        Self {
            step: 0,
            member: call.member(),
            state: call.state().to_owned(),
            index: call.index(),
            attempt: call.attempt(),
            compensates: call.compensates(),
            arguments: arguments.to_vec(),
            token: call.token().to_string(),
            at,
        }
    }

    /// Returns the token's beginning, which names the store and the family.
    pub(super) fn family(&self) -> &str {
        let end = self.token.find('.').unwrap_or(self.token.len());
        self.token.get(..end).unwrap_or_default()
    }

    /// Returns whether another call is the same try, after a process has ended.
    pub(super) fn is_repeated_by(&self, other: &Self) -> bool {
        self.member == other.member && self.of_try() == other.of_try() && self.step == other.step
    }

    fn of_try(&self) -> Try {
        let visit = self.token.strip_prefix(self.family()).unwrap_or_default();
        (self.member.member, self.state.clone(), visit.to_owned(), self.attempt)
    }

    pub(super) fn shown(&self, found: &Found) -> Value {
        json!({
            "state": self.state,
            "index": self.index,
            "attempt": self.attempt,
            "compensates": self.compensates,
            "arguments": found.without_family(&self.arguments.clone().into()),
            "token": found.without_family(&self.token.clone().into()),
            "at_ms": self.at.0 / 1_000,
        })
    }
}

/// Returns what each member has called, in order, without the repeats of calls that crashes cut off.
fn by_member(log: &[Called]) -> BTreeMap<(bool, u32), Vec<(Try, String)>> {
    let saga = log.first().map(|called| called.member.family);
    let mut calls: BTreeMap<(bool, u32), Vec<(Try, String)>> = BTreeMap::new();
    for called in log {
        let member = (Some(called.member.family) == saga, called.member.member);
        let arguments = Value::from(called.arguments.clone()).to_string();
        let tried = (called.of_try(), arguments.replace(called.family(), "saga"));
        let calls = calls.entry(member).or_default();
        if !calls.contains(&tried) {
            calls.push(tried);
        }
    }
    calls
}

/// What was called without a crash was called with crashes, by each member in the same order, and each call again only if a
/// crash cut it off.
///
/// # Errors
///
/// The calls that differ.
pub fn compare(plain: &[Called], crashed: &[Called], crashes: usize) -> Result<(), Trouble> {
    let (expected, found) = (by_member(plain), by_member(crashed));
    if expected != found {
        return Err(format!("other calls.\n expected {expected:#?}\n    found {found:#?}").into());
    }
    let count = |log: &[Called]| {
        let mut times: BTreeMap<(ProcedureId, Try), usize> = BTreeMap::new();
        for called in log {
            *times
                .entry((ProcedureId::new(0, called.member.member), called.of_try()))
                .or_default() += 1;
        }
        times
    };
    let (plain, crashed) = (count(plain), count(crashed));
    for (call, times) in crashed {
        let most = plain.get(&call).copied().unwrap_or_default() + crashes;
        if times > most {
            return Err(format!("{call:?} was called {times} times, and may be {most} times").into());
        }
    }
    Ok(())
}

//! One thing that is stuck or wrong: its rule, with whom, since when, and the facts it was told by.

use std::borrow::Cow;
use std::collections::BTreeMap;

use procession_actors::view::Verdict;
use procession_kernel::Deadlock;
use serde::{Deserialize, Serialize};

use super::{LinkView, time};

/// One verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct VerdictView {
    /// Name of its rule.
    pub rule: Cow<'static, str>,
    /// With whom; none if with the engine.
    pub procedure: Option<String>,
    /// Since when that lasts which the rule names.
    pub since: String,
    /// What it was told by.
    pub facts: BTreeMap<Cow<'static, str>, String>,
    /// Who waits for whom in a circle, of a deadlock.
    pub deadlock: Option<CycleView>,
    /// All that in one sentence.
    pub text: String,
}

/// A deadlock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CycleView {
    /// Each link leads to the next, the last to the first.
    pub cycle: Vec<LinkView>,
    /// The root that the policy would abort; where that has ended, the highest below it that has not.
    pub victim: String,
    /// What resolves it: an abort of the victim, or where none reaches it, a bypass of it and all below it.
    #[serde(default)]
    pub remedy: String,
}

impl From<&Verdict> for VerdictView {
    fn from(verdict: &Verdict) -> Self {
        let fact = |(name, value): &(&'static str, String)| (Cow::Borrowed(*name), value.clone());
        Self {
            rule: Cow::Borrowed(verdict.rule.as_str()),
            procedure: verdict.procedure.map(|id| id.to_string()),
            since: time(verdict.since),
            facts: verdict.facts.iter().map(fact).collect(),
            deadlock: verdict.deadlock.as_ref().map(CycleView::from),
            text: verdict.text.clone(),
        }
    }
}

impl From<&Deadlock> for CycleView {
    fn from(deadlock: &Deadlock) -> Self {
        Self {
            cycle: deadlock.cycle.iter().map(LinkView::from).collect(),
            victim: deadlock.victim.to_string(),
            remedy: deadlock.remedy(),
        }
    }
}

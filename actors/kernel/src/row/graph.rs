//! A child's place in the graph of its list: its name, and the siblings that come before it. A root has at most a name.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{JoinPolicy, Row};
use crate::wait::WaitReason;

/// Longest name of a procedure, in characters: enough for a path or a sentence, little enough for every row of a list.
pub const CHILD_NAME_MAX: usize = 200;

/// What a list says about one child besides the child itself. A child without any of it has none. Of a root a submission
/// says at most the name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphNode {
    /// The name by which people find it.
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What must come before it.
    #[serde(rename = "g", default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gate>,
    /// If it fails, or its gate shuts, while its parent waits for the list, the parent fails at once, whatever its join
    /// policy says.
    #[serde(rename = "v", default, skip_serializing_if = "std::ops::Not::not")]
    pub vital: bool,
}

/// What must come before a child. The child begins when the policy is met by the siblings that are named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gate {
    /// The siblings, in the order given. In a [`Birth`](crate::Birth) these are places among the children of the list
    /// that are waited for, counted from 0; in a row they are member numbers.
    #[serde(rename = "a")]
    pub after: Vec<u32>,
    /// When the gate opens. A named set counts positions in `after`, from 0. A custom gate opens when the child's own
    /// rule says so.
    #[serde(rename = "o", default, skip_serializing_if = "is_all_succeeded")]
    pub opens: JoinPolicy,
    /// A child whose gate can no longer open waits for an operator, instead of ending.
    #[serde(rename = "w", default, skip_serializing_if = "std::ops::Not::not")]
    pub or_wait: bool,
}

impl GraphNode {
    /// Returns how many characters the name has if they are too many.
    pub(crate) fn name_over_limit(&self) -> Option<usize> {
        let characters = self.name.as_ref()?.chars().count();
        (characters > CHILD_NAME_MAX).then_some(characters)
    }

    /// Returns `true` if it says nothing but a name.
    pub(crate) const fn is_only_a_name(&self) -> bool {
        self.name.is_some() && self.gate.is_none() && !self.vital
    }
}

impl Gate {
    /// Returns `true` if the policy names this sibling.
    #[must_use]
    pub fn names(&self, sibling: u32) -> bool {
        let JoinPolicy::Named(places) = &self.opens else {
            return false;
        };
        places
            .iter()
            .any(|place| self.after.get(*place as usize) == Some(&sibling))
    }

    /// Returns the number of siblings that the policy names.
    #[must_use]
    pub fn named(&self) -> u32 {
        let JoinPolicy::Named(places) = &self.opens else {
            return 0;
        };
        let places: BTreeSet<u32> = places.iter().copied().collect();
        u32::try_from(places.len()).unwrap_or(u32::MAX)
    }

    /// Checks the policy against the number of siblings.
    ///
    /// # Errors
    ///
    /// What is wrong with it, as a clause.
    pub(crate) fn check_policy(&self) -> Result<(), String> {
        let most = self.after.len();
        match &self.opens {
            JoinPolicy::AllSucceeded | JoinPolicy::AllFinished | JoinPolicy::Custom => Ok(()),
            JoinPolicy::AtLeast(least) if (1..=most).contains(&(*least as usize)) => Ok(()),
            JoinPolicy::AtLeast(least) => Err(format!("AtLeast needs 1 to {most}, got {least}")),
            JoinPolicy::Named(places) if places.is_empty() => Err("Named lists no place".to_owned()),
            JoinPolicy::Named(places) => match places.iter().find(|place| **place as usize >= most) {
                Some(place) => Err(format!(
                    "Named lists place {place} of the {most} before it, counted from 0"
                )),
                None => Ok(()),
            },
        }
    }
}

impl Row {
    /// Returns its name, which its parent's list or its submission gave it, if it has one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.rare().graph.as_ref()?.name.as_deref()
    }

    /// Returns its gate, open or not.
    #[must_use]
    pub fn gate(&self) -> Option<&Gate> {
        self.rare().graph.as_ref()?.gate.as_ref()
    }

    /// Returns its gate, if it waits there.
    #[must_use]
    pub fn closed_gate(&self) -> Option<&Gate> {
        self.gate().filter(|_| self.wait == Some(WaitReason::Gate))
    }

    /// Returns `true` if its failure fails its parent at once.
    #[must_use]
    pub fn is_vital(&self) -> bool {
        self.rare().graph.as_ref().is_some_and(|node| node.vital)
    }
}

fn is_all_succeeded(policy: &JoinPolicy) -> bool {
    *policy == JoinPolicy::AllSucceeded
}

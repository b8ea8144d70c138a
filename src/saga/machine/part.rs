//! What a machine's procedure is of its machine, if it is not the whole of it.

use procession_kernel::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::error::SagaError;
use super::tally::Tally;
use crate::saga::service;

/// A part of a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Part {
    /// A machine that another one runs.
    #[serde(rename = "s")]
    Sub,
    /// A branch of a Fork. It has a copy of the context.
    #[serde(rename = "b")]
    Branch {
        /// The Fork, by its place in the definition.
        #[serde(rename = "f")]
        fork: usize,
        /// The variables that it has written.
        #[serde(rename = "w", default, skip_serializing_if = "Vec::is_empty")]
        written: Vec<String>,
    },
    /// One element of a Loop. Its context has what its Output wrote, and nothing else.
    #[serde(rename = "e")]
    Element {
        #[serde(rename = "e")]
        element: Element,
        /// The member of the family that runs the Loop.
        #[serde(rename = "p")]
        parent: u32,
        /// Its Input.
        #[serde(rename = "a")]
        arguments: Vec<Value>,
        /// The visit of that member from which the ids in its Input are made, if it has some.
        #[serde(rename = "q", default, skip_serializing_if = "Option::is_none")]
        ids_of: Option<u32>,
    },
    /// A call that nobody waits for.
    #[serde(rename = "c")]
    Call {
        #[serde(rename = "s")]
        state: String,
        #[serde(rename = "a")]
        arguments: Vec<Value>,
    },
}

/// An element of a Loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Element {
    #[serde(rename = "i")]
    pub(super) index: usize,
    #[serde(rename = "v")]
    pub(super) value: Value,
}

impl Element {
    pub(super) fn called(&self) -> service::Element {
        service::Element {
            index: self.index,
            value: self.value.clone(),
        }
    }
}

/// The time limit of a Fork in which a member is. A member has those of all Forks around it, the outermost first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Window {
    #[serde(rename = "f")]
    pub(super) fork: String,
    #[serde(rename = "l")]
    pub(super) length_ms: u64,
    #[serde(rename = "u")]
    pub(super) until: Timestamp,
}

/// A sub machine that a task of the machine above it undoes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Kept {
    /// The member of the family that runs it.
    #[serde(rename = "p")]
    pub(super) parent: u32,
    /// The visit that began the parent's state instance.
    #[serde(rename = "b")]
    pub(super) began: u32,
}

/// What a part leaves to the machine that runs it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Left {
    /// What its tasks have come to.
    #[serde(rename = "t", default, skip_serializing_if = "Tally::is_default")]
    pub(super) tally: Tally,
    /// Of an element that caught a fault: the state at which the machine goes on, by its place in the definition.
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub(super) next: Option<usize>,
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<SagaError>,
    /// Windows that began anew.
    #[serde(rename = "w", default, skip_serializing_if = "Vec::is_empty")]
    pub(super) windows: Vec<Window>,
    /// Variables that it has made null, which its context cannot say.
    #[serde(rename = "d", default, skip_serializing_if = "Vec::is_empty")]
    pub(super) removed: Vec<String>,
}

impl Left {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Results of a Loop so far: of each element what its Output wrote, or nothing if it has to run again.
pub(super) type Results = Vec<Option<Map<String, Value>>>;

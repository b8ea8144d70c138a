//! The stages of a machine, named by its states.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// A stage of a machine: a state, and what is done there. Lists, timelines and metrics name it by the state.
#[derive(Clone, PartialEq, Eq)]
pub struct SagaStage {
    state: Box<str>,
    mode: Mode,
}

/// What a stage does at its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) enum Mode {
    /// Fixes the definition, and begins at the `StartState` of that.
    #[serde(rename = "start")]
    Start,
    /// Runs the task.
    #[serde(rename = "run")]
    Run,
    /// Goes on from here, where no task is called: at a Choice, a Fork, a Loop, a sub machine, an end.
    #[serde(rename = "route")]
    Route,
    /// The children of a Loop, a sub machine or a Fork have ended.
    #[serde(rename = "back")]
    Back,
    /// The time has passed in which a saga that succeeded could still be compensated.
    #[serde(rename = "keep")]
    Keep,
}

impl SagaStage {
    pub(super) fn new(state: &str, mode: Mode) -> Self {
        Self {
            state: state.into(),
            mode,
        }
    }

    /// Returns the name of the state.
    #[must_use]
    pub fn state(&self) -> &str {
        &self.state
    }

    /// Returns whether a saga that has succeeded waits here for its end.
    pub(in crate::saga) const fn is_kept(&self) -> bool {
        matches!(self.mode, Mode::Keep)
    }

    pub(super) const fn mode(&self) -> Mode {
        self.mode
    }
}

impl fmt::Debug for SagaStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.state)
    }
}

/// A map of one entry is shown by its key.
impl Serialize for SagaStage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(&*self.state, &self.mode)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for SagaStage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entry;
        impl<'de> Visitor<'de> for Entry {
            type Value = SagaStage;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a state with what is done there")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SagaStage, A::Error> {
                let entry = map.next_entry::<Box<str>, Mode>()?;
                let (state, mode) = entry.ok_or_else(|| de::Error::custom("the stage names no state"))?;
                Ok(SagaStage { state, mode })
            }
        }
        deserializer.deserialize_map(Entry)
    }
}

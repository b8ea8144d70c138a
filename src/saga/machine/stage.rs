//! The stages of a machine, named by its states.

use std::fmt;

use procession_saga_language::definition::Definition;
use serde::de::value::StrDeserializer;
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::task::named;

/// A stage of a machine: a state, and what is done there. Lists, timelines and metrics name it by the state.
#[derive(Clone, PartialEq, Eq)]
pub struct SagaStage {
    state: Box<str>,
    mode: Mode,
    /// The Fork whose branches end before this stage, by its place in the definition. The stage says so because it is
    /// written anyway: a machine whose value stays as it is writes none at its Forks and Joins.
    joins: Option<usize>,
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
            joins: None,
        }
    }

    /// Lets the stage begin with the writes of a Fork's branches.
    pub(super) fn joining(self, fork: usize) -> Self {
        let joins = Some(fork);
        Self { joins, ..self }
    }

    pub(super) const fn joins(&self) -> Option<usize> {
        self.joins
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

    /// Returns whether a task is called here. Of the first stage of a member, its definition says so.
    pub(in crate::saga) fn is_task(&self, definition: Option<&Definition>) -> bool {
        match self.mode {
            Mode::Run => true,
            Mode::Start => definition.is_some_and(|definition| named(definition, &self.state).is_some()),
            Mode::Route | Mode::Back | Mode::Keep => false,
        }
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

/// A map of one entry is shown by its key. The value is the mode, or a list of the mode and the Fork.
impl Serialize for SagaStage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        match self.joins {
            Some(fork) => map.serialize_entry(&*self.state, &(self.mode, fork))?,
            None => map.serialize_entry(&*self.state, &self.mode)?,
        }
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
                let entry = map.next_entry::<Box<str>, Does>()?;
                let (state, Does { mode, joins }) =
                    entry.ok_or_else(|| de::Error::custom("the stage names no state"))?;
                Ok(SagaStage { state, mode, joins })
            }
        }
        deserializer.deserialize_map(Entry)
    }
}

/// What a stage does at its state, as it is stored.
struct Does {
    mode: Mode,
    joins: Option<usize>,
}

impl<'de> Deserialize<'de> for Does {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Does;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mode, or a mode and a Fork")
            }

            fn visit_str<E: de::Error>(self, mode: &str) -> Result<Does, E> {
                let mode = Mode::deserialize(StrDeserializer::new(mode))?;
                Ok(Does { mode, joins: None })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Does, A::Error> {
                let mode = seq.next_element()?;
                let mode = mode.ok_or_else(|| de::Error::invalid_length(0, &self))?;
                let joins = seq.next_element()?;
                Ok(Does { mode, joins })
            }
        }
        deserializer.deserialize_any(Either)
    }
}

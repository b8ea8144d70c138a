//! A definition with the text that it was read from: what a host stores of a machine, and reads again.

use std::sync::Arc;

use crate::definition::{Call, Definition, Files, Parsed};
use crate::digest::Digest;

/// A definition with the text of its file.
#[derive(Debug)]
pub struct Source {
    /// The definition.
    pub definition: Arc<Definition>,
    /// The whole file.
    pub text: String,
    /// The digest of the text.
    pub digest: Digest,
}

impl Source {
    /// Keeps the text with the definition that was read from it.
    #[must_use]
    pub fn new(definition: Definition, text: String) -> Self {
        let digest = Digest::of(text.as_bytes());
        Self {
            definition: Arc::new(definition),
            text,
            digest,
        }
    }

    /// Reads a file that a store has kept.
    ///
    /// # Errors
    ///
    /// A sentence with the digest and the first problem, if this release refuses the file.
    pub fn stored(text: String) -> Result<Self, String> {
        let mut files = Files::default();
        files.add_stored("a stored definition", text.as_bytes());
        let parsed = files.into_parsed().pop();
        let problem = match parsed {
            Some(Parsed {
                definition: Some(definition),
                ..
            }) => return Ok(Self::new(definition, text)),
            Some(Parsed { problems, .. }) => problems.first().map(ToString::to_string),
            None => None,
        };
        let digest = Digest::of(text.as_bytes());
        Err(format!(
            "this release does not understand definition {digest}: {}",
            problem.unwrap_or_default()
        ))
    }

    /// Returns the machines that it runs as sub machines, one for each state that calls one.
    pub fn called(&self) -> impl Iterator<Item = &str> {
        let tasks = self.definition.states.iter().filter_map(|state| state.task());
        tasks.filter_map(|task| match &task.call {
            Call::Machine { machine } => Some(machine.as_str()),
            Call::Service { .. } | Call::Script { .. } | Call::CompensateMachine => None,
        })
    }
}

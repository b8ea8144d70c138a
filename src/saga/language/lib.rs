//! The state language of sagas, as the package `procession` runs it: files are read, checked, and become definitions,
//! whose expressions are evaluated and whose states are drawn.
//!
//! Applications use the feature `saga` of that package, which has [`Definitions`] and what belongs to it under the same
//! names. The modules here are for what runs machines; they change with any version.
//!
//! - [`definition`] is the parsed form of a machine, and the checks that lead to it.
//! - [`expression`] is the language of its texts.
//! - [`draw`] is its picture.
//!
//! It knows no engine: no actor, no journal, no clock, no thread. Its only input beside its arguments is a definition
//! file whose path it was given.

pub mod definition;
mod definitions;
mod digest;
pub mod draw;
pub mod expression;
mod source;
#[cfg(test)]
mod tests;

pub use definition::problem::{Problem, Severity};
pub use definitions::{CheckedDefinitions, DefinitionErrors, Definitions, MachineOutline, refuse_errors};
pub use digest::Digest;
pub use source::Source;

//! Texts of sagas, for the fuzzer and the benchmark. A definition reads texts, and only a machine that runs evaluates
//! them: with an engine around it no benchmark sees the evaluation, and a fuzzer few of them.

use procession_saga_language::expression::{Place, Steps, Text, Visit};
use serde_json::Value;

use super::Trouble;

/// A text of a definition, without its definition.
pub struct SagaText(Text);

impl SagaText {
    /// Reads a text that is a literal unless it begins with `$`.
    ///
    /// # Errors
    ///
    /// If it begins with `$` and is no expression.
    pub fn value(text: &str) -> Result<Self, Trouble> {
        Ok(Self(Text::parse(text, Place::Value)?))
    }

    /// Reads a text that is an expression in any case.
    ///
    /// # Errors
    ///
    /// If it is none.
    pub fn condition(text: &str) -> Result<Self, Trouble> {
        Ok(Self(Text::parse(text, Place::Condition)?))
    }

    /// Returns the value for a root, after a fault of that class if one is given.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn evaluate(&self, root: &Value, fault: Option<&str>) -> Result<Value, Trouble> {
        Ok(self.0.evaluate(root, &Faulted(fault), &mut Steps::new())?)
    }

    /// Returns whether the condition holds.
    ///
    /// # Errors
    ///
    /// If it is neither true nor false.
    pub fn test(&self, root: &Value, fault: Option<&str>) -> Result<bool, Trouble> {
        Ok(self.0.test(root, &Faulted(fault), &mut Steps::new())?)
    }
}

struct Faulted<'a>(Option<&'a str>);

impl Visit for Faulted<'_> {
    fn has_fault_of(&self, class: &str) -> bool {
        self.0 == Some(class)
    }

    fn sequence(&self, entity: &str, rule: &str) -> String {
        format!("{entity}|{rule}")
    }
}

//! Expressions of sagas: the part of Spring's expression language that definitions use.
//!
//! ```text
//! expression = or [ "?" expression ":" expression | "?:" expression ]
//! or         = and { ("||" | "or") and }
//! and        = relation { ("&&" | "and") relation }
//! relation   = sum [ ("==" | "!=" | "<" | "<=" | ">" | ">=" | "eq" | "ne" | "lt" | "le" | "gt" | "ge") sum ]
//! sum        = product { ("+" | "-") product }
//! product    = unary { ("*" | "/" | "%") unary }
//! unary      = ("-" | "+" | "!" | "not") unary | path
//! path       = start { "[" index "]" | ("." | "?.") name [ "(" [ expression { "," expression } ] ")" ]
//!                    | ".?[" expression "]" | ".![" expression "]" }
//! start      = number | string | "true" | "false" | "null" | "#root" | "#this" | name | "[" index "]"
//!            | "(" expression ")"
//! index      = name | expression
//! ```
//!
//! - A name reads a key of the current object, and so does a name alone between brackets. `#this` is the current value:
//!   the root, or the element inside `.?[ ]` (select) and `.![ ]` (map). `#root` is the root everywhere.
//! - A missing key is null. A key or method of null is an error, and null behind `?.`.
//! - Words of the language are read in any case, as Spring does. Behind `?:` stands what replaces null and `""`.
//! - Numbers compare by value; other values are equal only if they have one type. Null sorts before everything.
//!
//! An expression reaches no code: it has twelve methods on texts, lists and objects, and nothing else.
//! Reading one takes time linear in its length. Evaluation is bounded in steps, and each step in memory, so neither a
//! definition nor the values of a saga can hold up a worker.

mod arithmetic;
mod compare;
mod evaluate;
mod method;
mod operator;
mod parse;
mod scan;
mod steps;
mod text;
mod tree;
mod value;

pub use steps::Steps;
pub use text::{Place, Text, Visit};

use std::fmt;

use serde_json::Value;

use evaluate::Evaluation;
use tree::Node;

/// Longest expression in bytes. Those of Seata's own definitions have fewer than 100.
pub(crate) const LENGTH: usize = 4096;

/// Deepest nesting of brackets, signs and conditions: it bounds the stack that reading and evaluation take.
pub(crate) const DEPTH: usize = 64;

/// Steps of one evaluation at most. A step is an operation, an element that is looked at, or eight bytes that are
/// compared or copied, so an evaluation takes some ten milliseconds and some ten MiB at worst.
pub(crate) const STEPS: usize = 1_000_000;

/// Steps of all evaluations of one stage at most. The Inputs of a Loop may have 16 MiB, which take two million steps to copy;
/// as many are left for what its elements compute. A stage cannot hold up its worker for more than some 40 milliseconds.
pub(crate) const STEPS_OF_STAGE: usize = 4 * STEPS;

/// What an evaluation cannot do: where, as an offset in bytes, and what.
type Mistake = (usize, String);

/// Why a text cannot be read, and where, as an offset in bytes. It is small, for it returns through all that is nested.
struct Misread {
    at: usize,
    wrong: Box<Wrong>,
}

impl Misread {
    fn new(at: usize, text: impl Into<String>) -> Self {
        let wrong = Wrong {
            column: None,
            text: text.into(),
            hint: None,
        };
        Self {
            at,
            wrong: Box::new(wrong),
        }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.wrong.hint = Some(hint.into());
        self
    }

    fn in_text(self, text: &str) -> Wrong {
        Wrong {
            column: Some(column(text, self.at)),
            ..*self.wrong
        }
    }
}

/// A text that is no expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The character where the text stops making sense, counted from 1; none if the text as a whole is wrong.
    pub column: Option<usize>,
    /// What is wrong there, and perhaps what is missing.
    pub text: String,
    /// What to write instead, where that does not go without saying.
    pub hint: Option<String>,
}

impl Wrong {
    /// Returns what is wrong, with its column, without the hint.
    pub(crate) fn said(&self) -> String {
        match self.column {
            Some(column) => format!("column {column}: {}", self.text),
            None => self.text.clone(),
        }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.said())?;
        self.hint.iter().try_for_each(|hint| write!(f, "; {hint}"))
    }
}

impl std::error::Error for Wrong {}

/// An expression that has no value for this root.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {text}")]
pub struct Failed {
    /// The character at which the operation stands, counted from 1.
    pub column: usize,
    /// What cannot be done, with the value that it cannot be done with.
    pub text: String,
}

/// An expression, read once and evaluated any number of times.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    /// The whole text, in which columns are counted.
    text: Box<str>,
    begin: usize,
    node: Node,
}

impl Expression {
    /// Reads a text that is an expression from its first to its last character.
    ///
    /// # Errors
    ///
    /// If it is none, with the column.
    pub fn parse(text: &str) -> Result<Self, Wrong> {
        Self::within(text, 0, text.len())
    }

    /// Reads the part of a text between two offsets.
    fn within(text: &str, begin: usize, end: usize) -> Result<Self, Wrong> {
        let node = length(text)
            .and_then(|()| parse::parse(text, begin, end))
            .map_err(|misread| misread.in_text(text))?;
        Ok(Self {
            text: text.into(),
            begin,
            node,
        })
    }

    /// Returns the value for this root, `#root` in the text. Several expressions may share their steps.
    ///
    /// # Errors
    ///
    /// If an operation has no value for its operands, or it takes more steps than are left.
    pub fn evaluate(&self, root: &Value, steps: &mut Steps) -> Result<Value, Failed> {
        let item = Evaluation::new(root, steps).run(&self.node);
        let value = item.and_then(|item| item.into_value(steps, self.begin));
        value.map_err(|mistake| self.failed(mistake))
    }

    /// Returns whether a condition holds for this root. It makes no copy of any value.
    ///
    /// # Errors
    ///
    /// As [`Expression::evaluate`], and if the value is neither true nor false.
    pub fn test(&self, root: &Value, steps: &mut Steps) -> Result<bool, Failed> {
        let item = Evaluation::new(root, steps).run(&self.node);
        let holds = item.and_then(|item| item.boolean(&"a condition", self.begin));
        holds.map_err(|mistake| self.failed(mistake))
    }

    fn failed(&self, (offset, what): Mistake) -> Failed {
        Failed {
            column: column(&self.text, offset),
            text: what,
        }
    }
}

impl fmt::Display for Expression {
    /// As it stands in its definition, with its `$`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn length(text: &str) -> Result<(), Misread> {
    if text.len() <= LENGTH {
        return Ok(());
    }
    let what = format!("it has {} bytes, and {LENGTH} are the limit", text.len());
    Err(Misread::new(text.floor_char_boundary(LENGTH), what).hint("let a service compute it"))
}

/// Returns the number of the character at an offset.
fn column(text: &str, offset: usize) -> usize {
    text.get(..offset).unwrap_or(text).chars().count() + 1
}

#[cfg(test)]
mod tests;

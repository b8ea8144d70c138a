//! Where a value lies in its document, as a JSON pointer (RFC 6901).

use std::fmt::{self, Write};

/// A place in a document, made of the places above it. It borrows, so a walk over a document allocates nothing.
#[derive(Clone, Copy)]
pub(super) struct Path<'a> {
    above: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Document,
    Key(&'a str),
    Index(usize),
}

impl<'a> Path<'a> {
    /// The document itself.
    pub(super) const DOCUMENT: Self = Self {
        above: None,
        step: Step::Document,
    };

    pub(super) fn key(&'a self, key: &'a str) -> Self {
        Self {
            above: Some(self),
            step: Step::Key(key),
        }
    }

    pub(super) fn index(&'a self, index: usize) -> Self {
        Self {
            above: Some(self),
            step: Step::Index(index),
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(above) = self.above {
            above.fmt(f)?;
        }
        match self.step {
            Step::Document => Ok(()),
            Step::Index(index) => write!(f, "/{index}"),
            Step::Key(key) => {
                f.write_char('/')?;
                key.chars().try_for_each(|character| match character {
                    '~' => f.write_str("~0"),
                    '/' => f.write_str("~1"),
                    other => f.write_char(other),
                })
            }
        }
    }
}

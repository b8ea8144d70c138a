//! What a property found: where, what, and how to see it again.

use std::fmt;

/// Names the environment variable that has properties run one case alone.
pub(super) const ONLY: &str = "PROCESSION_CASE";

/// A fault in a procedure, as a property found it.
///
/// Its text says which call or commit was disturbed how, what came of it, which calls
/// were made, and how to see that case again alone. A test that passes it up shows it.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The property that does not hold, by the name of its method.
    pub property: &'static str,
    /// What was done to the procedure.
    pub case: String,
    /// What came of it.
    pub what: String,
    /// The calls of user code that were made, in their order.
    pub calls: String,
    /// The seed of the run.
    pub seed: u64,
}

impl std::error::Error for Finding {}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} found a fault: {}", self.property, self.what)?;
        writeln!(f, "   case: {}", self.case)?;
        writeln!(f, "  calls: {}", self.calls)?;
        writeln!(f, "   seed: {}", self.seed)?;
        write!(f, "  again: {ONLY}='{}' cargo test", self.case)
    }
}

/// As [`Display`](fmt::Display): it is what a failed test prints.
impl fmt::Debug for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

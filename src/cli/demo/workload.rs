//! The workload: a list of operations, and the world they must end in.
//!
//! Both are a function of the seed and the sizes, and do not depend on the order
//! in which operations happen to run. The operations of one table are a lane:
//! groups that follow each other. Only operations that leave the rows as they are
//! (moves, splits, merges) share a group and run at once.

mod generate;
mod model;
mod operation;
mod points;

pub use generate::{Plan, Sizes, generate};
pub use model::{Expected, ExpectedTable};
pub use operation::{Action, Operation};

/// The operations of one table, or of the users: each group begins when the one
/// before it has ended.
#[derive(Debug, Default)]
pub struct Lane {
    /// The groups.
    pub groups: Vec<Group>,
}

/// Operations that run at once.
#[derive(Debug, Default)]
pub struct Group {
    /// The operations.
    pub operations: Vec<Operation>,
    /// Whether more may join.
    pub open: bool,
}

//! Procedures as data, and the log outside the engine: those of the scenarios.

#![expect(dead_code, unused_imports, reason = "the scenarios use more of it")]

#[path = "../engine/support/kinds.rs"]
mod kinds;
#[path = "../engine/support/lab.rs"]
mod lab;
#[path = "../engine/support/plan.rs"]
mod plan;

pub(crate) use kinds::{
    Active, Circling, Final, Holding, Jittery, Kept, Limited, Once, Patient, Planned, Tidy, purely,
};
pub(crate) use lab::{Call, Lab};
pub(crate) use plan::{Act, Plan, UndoAct, plan};

use procession::testkit::Trouble;

/// What a test gives.
pub(crate) type Tested = Result<(), Trouble>;

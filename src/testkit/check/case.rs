//! One way to disturb a scenario. What it is called is also what it is asked for by,
//! to see one fault again alone.

use std::fmt;

use procession_actors::journal::memory::{Fault, FaultPlan};

use crate::testkit::calls::Failure;

/// When the engine crashes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Crashes {
    /// Never.
    #[default]
    Never,
    /// Once in each of the first lives: before or after a commit.
    At(Vec<(u64, Fault)>),
    /// Before each commit the first time, and not the second: each call is made twice.
    EachOnce,
}

impl Crashes {
    /// Returns the plan of one life, from 0.
    pub(super) fn plan(&self, life: usize) -> FaultPlan {
        match self {
            Self::Never => FaultPlan::none(),
            Self::At(faults) => faults
                .get(life)
                .map_or_else(FaultPlan::none, |(commit, fault)| FaultPlan::at(*commit, *fault)),
            // The start's own commit is number 0; the one that was lost passes as number 1.
            Self::EachOnce => FaultPlan::at(if life == 0 { 1 } else { 2 }, Fault::CrashBefore),
        }
    }
}

/// One way to disturb a scenario.
#[derive(Clone, Debug, Default)]
pub(in crate::testkit) struct Case {
    pub(super) crashes: Crashes,
    pub(in crate::testkit) stage: Option<Failure>,
    pub(in crate::testkit) undo: Option<Failure>,
    /// Each pure stage is computed several times before it runs.
    pub(in crate::testkit) examines: bool,
}

impl Case {
    pub(super) fn failing(stage: Failure) -> Self {
        Self {
            stage: Some(stage),
            ..Self::default()
        }
    }

    pub(super) fn with(&self, crashes: Crashes) -> Self {
        Self {
            crashes,
            ..self.clone()
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if let Some((spot, moment)) = &self.stage {
            parts.push(format!("{spot} fails {moment}"));
        }
        if let Some((spot, moment)) = &self.undo {
            parts.push(format!("{spot} fails once {moment}"));
        }
        match &self.crashes {
            Crashes::Never => {}
            Crashes::EachOnce => parts.push("a crash before each commit, once".to_owned()),
            Crashes::At(faults) => {
                let crash = |(commit, fault): &(u64, Fault)| {
                    let when = if *fault == Fault::CrashBefore {
                        "before"
                    } else {
                        "after"
                    };
                    format!("a crash {when} commit {commit}")
                };
                parts.push(
                    faults
                        .iter()
                        .map(crash)
                        .collect::<Vec<_>>()
                        .join(" and in the next life "),
                );
            }
        }
        if self.examines {
            parts.push("pure stages computed several times".to_owned());
        }
        if parts.is_empty() {
            return f.write_str("undisturbed");
        }
        f.write_str(&parts.join("; "))
    }
}

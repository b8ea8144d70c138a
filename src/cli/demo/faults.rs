//! Faults on purpose: the operation that is to fail, in which stage, and whether
//! before or after that stage's effects. All of it is a function of the seed and
//! the operation's number, so that a restart meets the same fault again.

use std::fmt::Debug;

use serde::{Deserialize, Serialize};

use super::draw::Draw;
use procession::StageError;

/// How the cause of an injected fault begins.
pub const INJECTED: &str = "injected fault";

/// Whether a stage fails with its effects done, or with nothing done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Moment {
    /// Before it has any effect.
    Before,
    /// After all its effects outside the engine.
    After,
}

/// A stage that fails for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Kind of the procedure, root or child.
    pub kind: String,
    /// Name of the stage.
    pub stage: String,
    /// Which of the children; taken modulo their number.
    pub ordinal: u32,
    /// When in the stage.
    pub moment: Moment,
}

/// Which operation of the workload a procedure belongs to, and its fate.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lot {
    /// Number of the operation.
    pub operation: u64,
    /// The fault that this operation meets.
    pub fault: Option<Fault>,
    /// Whether this is the child that meets it, if the fault is a child's.
    chosen: bool,
}

impl Lot {
    /// Returns the lot of an operation that meets no fault.
    #[must_use]
    pub fn fair(operation: u64) -> Self {
        Self {
            operation,
            fault: None,
            chosen: true,
        }
    }

    /// Returns the lot of an operation that meets this fault.
    #[must_use]
    pub fn doomed(operation: u64, fault: Fault) -> Self {
        Self {
            operation,
            fault: Some(fault),
            chosen: true,
        }
    }

    /// Draws the lot of an operation: in this share of all it meets a fault at
    /// one of these stages.
    #[must_use]
    pub fn draw(seed: u64, operation: u64, share: f64, points: &[(&str, &str)]) -> Self {
        let mut draw = Draw::of(seed, operation);
        if !draw.chance(share) {
            return Self::fair(operation);
        }
        let ordinal = u32::try_from(draw.below(64)).unwrap_or(0);
        let moment = if draw.chance(0.5) {
            Moment::Before
        } else {
            Moment::After
        };
        match draw.one(points) {
            None => Self::fair(operation),
            Some((kind, stage)) => Self::doomed(
                operation,
                Fault {
                    kind: (*kind).to_owned(),
                    stage: (*stage).to_owned(),
                    ordinal,
                    moment,
                },
            ),
        }
    }

    /// Returns the lot of child `place` of `siblings`.
    #[must_use]
    pub fn of_child(&self, place: usize, siblings: usize) -> Self {
        let met = self.fault.as_ref().is_some_and(|fault| {
            usize::try_from(fault.ordinal)
                .ok()
                .and_then(|ordinal| ordinal.checked_rem(siblings))
                .is_some_and(|ordinal| ordinal == place)
        });
        Self {
            chosen: self.chosen && met,
            ..self.clone()
        }
    }

    /// Finds the fault of one stage, which then has two moments to strike.
    pub(crate) fn at(&self, kind: &str, stage: &impl Debug) -> Strike {
        let met = self
            .fault
            .as_ref()
            .filter(|fault| self.chosen && fault.kind == kind && fault.stage == format!("{stage:?}"));
        Strike(met.cloned())
    }
}

/// The fault of one stage, if it meets one.
pub(crate) struct Strike(Option<Fault>);

impl Strike {
    /// Fails the stage before it has any effect.
    pub(crate) fn before(&self) -> Result<(), StageError> {
        self.strike(Moment::Before)
    }

    /// Fails the stage after its effects.
    pub(crate) fn after(&self) -> Result<(), StageError> {
        self.strike(Moment::After)
    }

    fn strike(&self, moment: Moment) -> Result<(), StageError> {
        match &self.0 {
            Some(fault) if fault.moment == moment => Err(StageError::fail(format!(
                "{INJECTED} in {}, stage {}",
                fault.kind, fault.stage
            ))),
            Some(_) | None => Ok(()),
        }
    }
}

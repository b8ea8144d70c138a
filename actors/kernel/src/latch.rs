//! Counts the children that a parent, or a gate, still waits for. Counts are rebuilt from the rows and never stored.

use crate::lifecycle::ProcedureState;
use crate::row::{Gate, JoinPolicy, Round, Row};
use crate::wait::WaitReason;

/// State of one child as its latch counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatchState {
    /// Waits at its gate, or asks a person. It takes no place in the width.
    Idle,
    /// Held back by the width.
    Held,
    /// Running or parked.
    Active,
    /// Failed, and being rolled back.
    Failing,
    /// Ended without success.
    Failed,
    /// Succeeded.
    Succeeded,
}

impl LatchState {
    /// Returns the state that a row implies.
    #[must_use]
    pub const fn of(row: &Row) -> Self {
        match (row.state, row.is_ended()) {
            (ProcedureState::Success, _) => Self::Succeeded,
            (ProcedureState::RolledBack, _) | (ProcedureState::Failed, true) => Self::Failed,
            (ProcedureState::Failed, false) => Self::Failing,
            (
                ProcedureState::Initializing
                | ProcedureState::Runnable
                | ProcedureState::Waiting
                | ProcedureState::WaitingTimeout,
                _,
            ) => {
                if matches!(row.wait, Some(WaitReason::Width)) {
                    Self::Held
                } else if is_idle(row) {
                    Self::Idle
                } else {
                    Self::Active
                }
            }
        }
    }

    /// Returns `true` if it has failed, whether its rollback is over or not.
    #[must_use]
    pub const fn is_unsuccessful(self) -> bool {
        matches!(self, Self::Failing | Self::Failed)
    }
}

const fn is_idle(row: &Row) -> bool {
    match &row.wait {
        Some(WaitReason::Gate) => true,
        Some(WaitReason::Decision(question)) => !question.keeps_place,
        Some(_) | None => false,
    }
}

/// What a join policy says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    /// The parent may go on.
    Met,
    /// The policy is not met yet.
    Pending,
    /// The policy can no longer be met.
    Unmeetable,
    /// User code must be asked.
    Ask,
}

/// Counts of one list of children.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latch {
    /// Number of children in the list.
    pub count: u32,
    /// Held back by the width.
    pub held: u32,
    /// Running, parked, or rolling back.
    pub active: u32,
    /// Failed or failing, ended or not.
    pub unsuccessful: u32,
    /// Ended, with or without success.
    pub ended: u32,
    /// Succeeded.
    pub succeeded: u32,
    /// Named children that have not succeeded yet.
    pub named_left: u32,
    /// Named children that have failed or are failing.
    pub named_lost: u32,
}

impl Latch {
    /// Creates the latch of a list whose children are not counted yet.
    #[must_use]
    pub fn new(round: &Round) -> Self {
        Self {
            count: round.count,
            named_left: round.named(),
            ..Self::default()
        }
    }

    /// Creates the latch of a gate whose siblings are not counted yet.
    #[must_use]
    pub fn of_gate(gate: &Gate) -> Self {
        Self {
            count: u32::try_from(gate.after.len()).unwrap_or(u32::MAX),
            named_left: gate.named(),
            ..Self::default()
        }
    }

    /// Moves one child from one state to another; `from` is `None` if it was not counted yet.
    pub fn count(&mut self, round: &Round, member: u32, from: Option<LatchState>, to: LatchState) {
        self.count_one(round.names(member), from, to);
    }

    /// Moves one sibling of a gate from one state to another; `from` is `None` if it was not counted yet.
    pub fn count_before(&mut self, gate: &Gate, sibling: u32, from: Option<LatchState>, to: LatchState) {
        self.count_one(gate.names(sibling), from, to);
    }

    fn count_one(&mut self, named: bool, from: Option<LatchState>, to: LatchState) {
        if let Some(from) = from {
            self.apply(from, named, false);
        }
        self.apply(to, named, true);
    }

    fn apply(&mut self, standing: LatchState, named: bool, enters: bool) {
        let step = |count: &mut u32| {
            *count = if enters { *count + 1 } else { count.saturating_sub(1) };
        };
        match standing {
            LatchState::Idle => {}
            LatchState::Held => step(&mut self.held),
            LatchState::Active => step(&mut self.active),
            LatchState::Failing => {
                step(&mut self.active);
                step(&mut self.unsuccessful);
            }
            LatchState::Failed => {
                step(&mut self.ended);
                step(&mut self.unsuccessful);
            }
            LatchState::Succeeded => {
                step(&mut self.ended);
                step(&mut self.succeeded);
            }
        }
        if named {
            match standing {
                LatchState::Succeeded if enters => self.named_left = self.named_left.saturating_sub(1),
                LatchState::Succeeded => self.named_left += 1,
                LatchState::Failing | LatchState::Failed => step(&mut self.named_lost),
                LatchState::Idle | LatchState::Held | LatchState::Active => {}
            }
        }
    }

    /// Returns whether the parent may go on.
    #[must_use]
    pub fn join(&self, policy: &JoinPolicy) -> Join {
        let (met, unmeetable) = match policy {
            JoinPolicy::AllSucceeded => (self.succeeded == self.count, self.unsuccessful > 0),
            JoinPolicy::AllFinished => (self.ended == self.count, false),
            JoinPolicy::AtLeast(least) => (self.succeeded >= *least, self.count - self.unsuccessful < *least),
            JoinPolicy::Named(_) => (self.named_left == 0, self.named_lost > 0),
            JoinPolicy::Custom => return Join::Ask,
        };
        if met {
            Join::Met
        } else if unmeetable {
            Join::Unmeetable
        } else {
            Join::Pending
        }
    }

    /// Returns `true` if the width lets another child start.
    #[must_use]
    pub const fn has_room(&self, round: &Round) -> bool {
        self.held > 0 && self.has_place(round)
    }

    /// Returns `true` if the width has a free place.
    #[must_use]
    pub const fn has_place(&self, round: &Round) -> bool {
        round.width == 0 || self.active < round.width
    }

    /// Returns `true` if all children have ended.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.ended == self.count
    }
}

#[cfg(test)]
mod tests;

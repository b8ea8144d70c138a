//! Counts the children that a parent still waits for. Counts are rebuilt from the rows and never stored.

use crate::lifecycle::ProcedureState;
use crate::row::{JoinPolicy, Round, Row};
use crate::wait::WaitReason;

/// State of one child as its latch counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatchState {
    /// Asks a person. It takes no place in the width.
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
                } else if matches!(&row.wait, Some(WaitReason::Decision(question)) if !question.keeps_place) {
                    Self::Idle
                } else {
                    Self::Active
                }
            }
        }
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

    /// Moves one child from one state to another; `from` is `None` if it was not counted yet.
    pub fn count(&mut self, round: &Round, member: u32, from: Option<LatchState>, to: LatchState) {
        let named = round.names(member);
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

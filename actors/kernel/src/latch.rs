//! How many children a parent still waits for: recounted from their rows, never stored.

use crate::lifecycle::ProcedureState;
use crate::row::{JoinPolicy, Round, Row};
use crate::wait::WaitReason;

/// Where one child stands, as its latch counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Held back by the width.
    Held,
    /// Going, or parked.
    Active,
    /// Failed, and being rolled back.
    Failing,
    /// Ended without success.
    Failed,
    /// Succeeded.
    Succeeded,
}

impl Standing {
    /// Reads it off a row.
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
    /// Not yet.
    Pending,
    /// It can no longer be met.
    Unmeetable,
    /// User code must be asked.
    Ask,
}

/// Counts of one list of children.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latch {
    /// Children in the list.
    pub count: u32,
    /// Held back by the width.
    pub held: u32,
    /// Going, parked, or rolling back.
    pub active: u32,
    /// Failed or failing, ended or not.
    pub unsuccessful: u32,
    /// Ended, however.
    pub ended: u32,
    /// Succeeded.
    pub succeeded: u32,
    /// Of the named ones: not yet succeeded.
    pub named_left: u32,
    /// Of the named ones: failed or failing.
    pub named_lost: u32,
}

impl Latch {
    /// Starts the counts of a list of which no child is counted yet.
    #[must_use]
    pub fn new(round: &Round) -> Self {
        Self {
            count: round.count,
            named_left: round.named(),
            ..Self::default()
        }
    }

    /// Moves one child from one standing to another; none is not yet counted.
    pub fn count(&mut self, round: &Round, member: u32, from: Option<Standing>, to: Standing) {
        let named = round.names(member);
        if let Some(from) = from {
            self.apply(from, named, false);
        }
        self.apply(to, named, true);
    }

    fn apply(&mut self, standing: Standing, named: bool, enters: bool) {
        let step = |count: &mut u32| {
            *count = if enters { *count + 1 } else { count.saturating_sub(1) };
        };
        match standing {
            Standing::Held => step(&mut self.held),
            Standing::Active => step(&mut self.active),
            Standing::Failing => {
                step(&mut self.active);
                step(&mut self.unsuccessful);
            }
            Standing::Failed => {
                step(&mut self.ended);
                step(&mut self.unsuccessful);
            }
            Standing::Succeeded => {
                step(&mut self.ended);
                step(&mut self.succeeded);
            }
        }
        if named {
            match standing {
                Standing::Succeeded if enters => self.named_left = self.named_left.saturating_sub(1),
                Standing::Succeeded => self.named_left += 1,
                Standing::Failing | Standing::Failed => step(&mut self.named_lost),
                Standing::Held | Standing::Active => {}
            }
        }
    }

    /// Says whether the parent may go on.
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

    /// Tells whether the width lets another child start.
    #[must_use]
    pub const fn has_room(&self, round: &Round) -> bool {
        self.held > 0 && (round.width == 0 || self.active < round.width)
    }

    /// Tells whether all children have ended.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.ended == self.count
    }
}

#[cfg(test)]
mod tests;

//! Invariants that must hold after every decision.

use crate::family::{Family, Gates};
use crate::kernel::Kernel;
use crate::latch::{Latch, LatchState};
use crate::lifecycle::ProcedureState;
use crate::row::Row;
use crate::wait::WaitReason;

impl Kernel {
    /// Checks the state against itself.
    ///
    /// # Errors
    ///
    /// One sentence about the first rule that is broken.
    pub fn validate(&self) -> Result<(), String> {
        for (number, family) in self.families.iter() {
            family.validate().map_err(|why| format!("family {number}: {why}"))?;
        }
        let in_flight: usize = self.families.awake().map(|family| family.in_flight as usize).sum();
        if in_flight != self.in_flight {
            return Err(format!(
                "{in_flight} stages are out, but {} are counted",
                self.in_flight
            ));
        }
        Ok(())
    }
}

impl Family {
    pub(crate) fn validate(&self) -> Result<(), String> {
        if self.members.is_empty() {
            return Err("it has no member".to_owned());
        }
        for (number, row) in (0_u32..).zip(&self.members) {
            self.validate_row(number, row)
                .map_err(|why| format!("member {number}: {why}"))?;
        }
        let live = self.members.iter().filter(|row| !row.is_over()).count();
        if live != self.live as usize {
            return Err(format!("{live} members are live, but {} are counted", self.live));
        }
        for row in &self.members {
            for round in &row.rounds {
                let mut latch = Latch::new(round);
                let children = self
                    .members
                    .iter()
                    .skip(round.first as usize)
                    .take(round.count as usize);
                for child in children {
                    latch.count(round, child.id.member, None, LatchState::of(child));
                }
                if self.latches.get(&round.first) != Some(&latch) {
                    return Err(format!(
                        "the latch of member {} differs from its children",
                        row.id.member
                    ));
                }
            }
        }
        let mut gates = Gates::default();
        for row in &self.members {
            gates.put(&self.members, row);
        }
        if gates != *self.gates {
            return Err("the counts of its gates differ from the rows".to_owned());
        }
        Ok(())
    }

    fn validate_row(&self, number: u32, row: &Row) -> Result<(), String> {
        let broken = |why: &str| Err(why.to_owned());
        if row.id.member != number {
            return broken("its number does not match its position");
        }
        if number == 0 && row.parent.is_some() {
            return broken("the root has a parent");
        }
        if number > 0 && row.parent.is_none_or(|parent| parent >= number) {
            return broken("its parent was not born before it");
        }
        let ended_state = matches!(
            row.state,
            ProcedureState::Success | ProcedureState::RolledBack | ProcedureState::Failed
        );
        // A child that is being compensated takes its locks again, and the permits of its stages.
        let compensated = row.parent.is_some() && self.scope_of(number).is_some();
        let takes_again = !row.locked.is_empty() || row.stage_permits;
        let holds = row.holds || (takes_again && !compensated);
        if row.is_ended() && (!ended_state || holds || row.in_flight.is_some() || row.wait.is_some()) {
            return broken("it has ended, but still holds or waits for something");
        }
        let stopping = self.scope_of(number).is_some();
        let may_run = row.in_flight.is_some() || matches!(row.wait, Some(WaitReason::Queue | WaitReason::Suspect));
        if row.stage_permits && (row.stage_limits.is_empty() || !(may_run || stopping)) {
            return broken("it holds the permits of a stage that neither runs nor is about to");
        }
        let idle = row.in_flight.is_none() && row.wait.is_none();
        if !row.is_ended() && idle && !stopping {
            return broken("nothing will ever move it");
        }
        let runs = matches!(row.state, ProcedureState::Runnable | ProcedureState::Failed) && row.wait.is_none();
        if row.in_flight.is_some() && !runs {
            return broken("its stage is out, but it waits or has not begun");
        }
        if row.state == ProcedureState::Waiting && !stopping && row.wait != Some(WaitReason::Children) {
            return broken("it is Waiting, but not for children");
        }
        Ok(())
    }
}

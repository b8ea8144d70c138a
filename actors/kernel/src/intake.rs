//! Takes in a family that a start has read: as a whole, or not at all.

use crate::family::{Family, Members};
use crate::kernel::Kernel;
use crate::record::Record;

/// A family that violates a rule: the reason, and its rows, which may still hold locks or permits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedFamily {
    /// The first rule that is broken.
    pub why: String,
    /// The rows that were rejected.
    pub rows: Members,
}

impl Kernel {
    /// Takes in a family that was just read: its rows ordered by member, already accepted by
    /// [`check_rows`](crate::check_rows), and its signals.
    ///
    /// # Errors
    ///
    /// Returns the first rule that is broken, and the rows. Nothing of the family is left in the kernel.
    pub fn take_in(&mut self, number: u64, rows: Members, signals: &[Record]) -> Result<(), RejectedFamily> {
        if let Err(why) = self.check_given(number, &rows) {
            return Err(RejectedFamily { why, rows });
        }
        self.evolve(&Record::FamilyBegan(number));
        for row in rows {
            self.row_put(row);
        }
        for signal in signals {
            self.evolve(signal);
        }
        let checked = self.families.get(&number).map_or(Ok(()), Family::validate);
        if let Err(why) = checked {
            let rows = self.family_ended(number).map(|family| family.members);
            let rows = rows.unwrap_or_default();
            return Err(RejectedFamily { why, rows });
        }
        Ok(())
    }

    /// Skips a family that cannot be taken in, so that no other family gets its number.
    ///
    /// # Errors
    ///
    /// No engine assigned that number, so numbering does not continue from it. Any other fault of the family follows
    /// from that.
    pub fn pass_over(&mut self, number: u64) -> Result<(), String> {
        self.check_number(number)?;
        self.next_family = self.next_family.max(number + 1);
        Ok(())
    }
}

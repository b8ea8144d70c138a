//! A family that a start has read: it is taken in whole, or not at all.

use crate::family::{Family, Members};
use crate::kernel::Kernel;
use crate::record::Record;

/// A family that cannot be: why, and its rows, of which some may hold something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// The first rule that is broken.
    pub why: String,
    /// What was to be taken in.
    pub rows: Members,
}

impl Kernel {
    /// Takes a family in that was just read: its rows in the order of their members, which
    /// [`check_rows`](crate::check_rows) found sound, and its signals.
    ///
    /// # Errors
    ///
    /// The first rule that is broken, and the rows: nothing of the family is left in the kernel.
    pub fn take_in(&mut self, number: u64, rows: Members, signals: &[Record]) -> Result<(), Unfit> {
        if let Err(why) = self.check_given(number, &rows) {
            return Err(Unfit { why, rows });
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
            return Err(Unfit { why, rows });
        }
        Ok(())
    }

    /// Passes over a family that cannot be: no other gets its number.
    ///
    /// # Errors
    ///
    /// No engine gave it that number, so it is not counted on from; whatever else is wrong with it comes of that.
    pub fn pass_over(&mut self, number: u64) -> Result<(), String> {
        self.check_number(number)?;
        self.next_family = self.next_family.max(number + 1);
        Ok(())
    }
}

//! Writes a row: one map, in the order in which its fields came. Derived, it would ask each field twice whether it is
//! written, first to count; and what is in the box would come last.

use std::ops::Not;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::{Hold, OnFailure, OnTimeout, Rare, Row, is_none, is_normal, is_zero};
use crate::label::RowLabels;
use crate::list::List;

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match &self.rare {
            None => write::<_, false>(&mut map, self, self.rare())?,
            Some(rare) => write::<_, true>(&mut map, self, rare)?,
        }
        map.end()
    }
}

/// Makes `write` and the list of names out of a table of fields: the name on disk, whose field it is, and the test by which
/// it is left out, because it reads so where it is missing.
macro_rules! table {
    ($($name:literal $whose:ident.$field:ident $(unless $is_default:path)?,)*) => {
        impl Row {
            /// The names of a row's fields on disk.
            pub const FIELDS: &'static [&'static str] = &[$($name),*];
        }

        /// Writes the fields of a row, with those of the box in between if there is one. Nearly all rows have none, and
        /// what writes these does not ask for it.
        fn write<M: SerializeMap, const HAS_RARE: bool>(map: &mut M, row: &Row, rare: &Rare) -> Result<(), M::Error> {
            $(entry!(HAS_RARE, map, row, rare; $name $whose.$field $(unless $is_default)?);)*
            Ok(())
        }
    };
}

/// Writes one field, unless its test says that it is left out.
macro_rules! entry {
    ($has_rare:ident, $map:ident, $row:ident, $rare:ident; $name:literal row.$field:ident $(unless $is_default:path)?) => {
        $(if !$is_default(&$row.$field))? {
            $map.serialize_entry($name, &$row.$field)?;
        }
    };
    ($has_rare:ident, $map:ident, $row:ident, $rare:ident; $name:literal rare.$field:ident unless $is_default:path) => {
        if $has_rare && !$is_default(&$rare.$field) {
            $map.serialize_entry($name, &$rare.$field)?;
        }
    };
}

table! {
    "q" row.revision,
    "k" row.kind,
    "v" row.version,
    "p" row.parent unless Option::is_none,
    "f" row.on_failure unless OnFailure::is_keep,
    "s" row.state,
    "w" row.wait unless Option::is_none,
    "n" row.since,
    "g" row.stage,
    "i" row.visit,
    "a" row.attempt unless is_zero,
    "o" row.in_flight unless Option::is_none,
    "h" row.history,
    "x" row.standing,
    "y" rare.attempts_kept unless List::is_empty,
    "P" row.as_submitted unless Not::not,
    "e" row.wake unless Option::is_none,
    "r" row.rounds unless List::is_empty,
    "l" row.limits unless List::is_empty,
    "m" row.holds unless Not::not,
    "1" row.hold unless Hold::is_for_life,
    "X" row.stage_limits unless List::is_empty,
    "Y" row.stage_permits unless Not::not,
    "2" row.locks unless List::is_empty,
    "3" row.locked unless List::is_empty,
    "J" row.locked_at unless List::is_empty,
    "4" row.locks_for_life unless Not::not,
    "5" row.ready unless Option::is_none,
    "6" row.next_is_no_return unless Option::is_none,
    "7" rare.past_no_return unless Option::is_none,
    "A" row.same_stage unless is_zero,
    "B" row.expected unless Option::is_none,
    "U" row.is_pure unless Not::not,
    "C" rare.on_timeout unless OnTimeout::is_fail,
    "D" row.out_of_time unless Not::not,
    "E" rare.paused unless Not::not,
    "F" rare.mark unless Option::is_none,
    "G" rare.output unless Option::is_none,
    "H" rare.cleaning unless Not::not,
    "d" row.priority unless is_normal,
    "c" rare.cause unless Option::is_none,
    "u" rare.undo_attempts unless is_zero,
    "z" rare.not_undone unless List::is_empty,
    "j" row.signals unless is_zero,
    "Q" rare.closed unless List::is_empty,
    "I" rare.trace unless Option::is_none,
    "M" rare.graph unless Option::is_none,
    "K" rare.payload_size unless Option::is_none,
    "L" rare.failure_streak unless Option::is_none,
    "W" row.waits_after unless is_none,
    "R" rare.retry_after unless Option::is_none,
    "S" row.repeated unless is_zero,
    "N" row.history_from unless is_zero,
    "T" row.labels unless RowLabels::is_left_out,
    "O" rare.end_signal unless Option::is_none,
    "b" row.key unless Option::is_none,
    "t" row.deadline unless Option::is_none,
    "0" row.submitted,
    "9" row.ended unless Option::is_none,
    "8" row.due unless Option::is_none,
}

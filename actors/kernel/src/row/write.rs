//! Writes a row: one map, in the order in which its fields came. Derived, it would ask each field twice whether it is
//! written, first to count; and what is in the box would come last.

use std::ops::Not;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::{Hold, OnFailure, OnTimeout, Rare, Row, is_none, is_normal, is_zero};
use crate::label::Labels;
use crate::list::List;

/// Writes fields under their names on disk, each unless it is as it would be read if it was missing.
macro_rules! fields {
    ($map:ident, $of:ident; $($name:literal $field:ident $(unless $is_default:path)?,)*) => {$(
        $(if !$is_default(&$of.$field))? {
            $map.serialize_entry($name, &$of.$field)?;
        }
    )*};
}

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

/// Writes the fields of a row, with those of the box in between if there is one. Nearly all rows have none, and what writes
/// these does not ask for it.
fn write<M: SerializeMap, const HAS_RARE: bool>(map: &mut M, row: &Row, rare: &Rare) -> Result<(), M::Error> {
    fields!(map, row;
        "q" revision,
        "k" kind,
        "v" version,
        "p" parent unless Option::is_none,
        "f" on_failure unless OnFailure::is_keep,
        "s" state,
        "w" wait unless Option::is_none,
        "n" since,
        "g" stage,
        "i" visit,
        "a" attempt unless is_zero,
        "o" in_flight unless Option::is_none,
        "h" history,
        "x" standing,
    );
    if HAS_RARE {
        fields!(map, rare;
            "y" attempts_kept unless List::is_empty,
        );
    }
    fields!(map, row;
        "P" as_submitted unless Not::not,
        "e" wake unless Option::is_none,
        "r" rounds unless List::is_empty,
        "l" limits unless List::is_empty,
        "m" holds unless Not::not,
        "1" hold unless Hold::is_for_life,
        "X" stage_limits unless List::is_empty,
        "Y" stage_permits unless Not::not,
        "2" locks unless List::is_empty,
        "3" locked unless List::is_empty,
        "J" locked_at unless List::is_empty,
        "4" locks_for_life unless Not::not,
        "5" ready unless Option::is_none,
        "6" next_is_no_return unless Option::is_none,
    );
    if HAS_RARE {
        fields!(map, rare;
            "7" past_no_return unless Option::is_none,
        );
    }
    fields!(map, row;
        "A" same_stage unless is_zero,
        "B" expected unless Option::is_none,
        "U" is_pure unless Not::not,
    );
    if HAS_RARE {
        fields!(map, rare;
            "C" on_timeout unless OnTimeout::is_fail,
        );
    }
    fields!(map, row;
        "D" out_of_time unless Not::not,
    );
    if HAS_RARE {
        fields!(map, rare;
            "E" paused unless Not::not,
            "F" mark unless Option::is_none,
            "G" output unless Option::is_none,
            "H" cleaning unless Not::not,
        );
    }
    fields!(map, row;
        "d" priority unless is_normal,
    );
    if HAS_RARE {
        fields!(map, rare;
            "c" cause unless Option::is_none,
            "u" undo_attempts unless is_zero,
            "z" not_undone unless List::is_empty,
        );
    }
    fields!(map, row;
        "j" signals unless is_zero,
    );
    if HAS_RARE {
        fields!(map, rare;
            "Q" closed unless List::is_empty,
            "I" trace unless Option::is_none,
            "M" graph unless Option::is_none,
            "K" payload_size unless Option::is_none,
            "L" failure_streak unless Option::is_none,
        );
    }
    fields!(map, row;
        "W" waits_after unless is_none,
    );
    if HAS_RARE {
        fields!(map, rare;
            "R" retry_after unless Option::is_none,
        );
    }
    fields!(map, row;
        "S" repeated unless is_zero,
    );
    if HAS_RARE {
        fields!(map, rare;
            "N" history_from unless is_zero,
        );
    }
    fields!(map, row;
        "T" labels unless Labels::is_empty,
    );
    if HAS_RARE {
        fields!(map, rare;
            "O" end_signal unless Option::is_none,
        );
    }
    fields!(map, row;
        "b" key unless Option::is_none,
        "t" deadline unless Option::is_none,
        "0" submitted,
        "9" ended unless Option::is_none,
        "8" due unless Option::is_none,
    );
    Ok(())
}

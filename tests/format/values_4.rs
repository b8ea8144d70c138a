//! Every shape of record that came with format 4, as bytes and back.

use procession_actors::testkit::format;
use procession_kernel::Record;

use crate::Tested;
use crate::samples_4 as samples;
use crate::values::{compare, read_rows, value};

#[test]
fn rows_are_as_in_version_4() -> Tested {
    read_rows("v4/rows.hex", &samples::rows())
}

#[test]
fn all_other_records_and_the_layout_of_keys_are_as_in_version_4() -> Tested {
    let samples = samples::others();
    let golden = compare("v4/others.hex", &samples)?;
    for (line, (name, record)) in golden.iter().zip(&samples) {
        if let Record::Broadcast(_, broadcast) = record {
            assert_eq!(format::broadcast(value(line)?)?, **broadcast, "{name}");
        }
    }
    Ok(())
}

//! Every shape of record that came with format 2, as bytes and back.

use procession_actors::testkit::format;
use procession_kernel::Record;

use crate::Tested;
use crate::samples::Sample;
use crate::samples_2 as samples;
use crate::values::{compare, read_rows, value};

#[test]
fn rows_are_as_in_version_2() -> Tested {
    read_rows("v2/rows.hex", &samples::rows())
}

#[test]
fn a_row_with_a_trace_is_as_it_was_when_that_came() -> Tested {
    read_rows("v2/traces.hex", &samples::traces())
}

#[test]
fn a_row_that_says_since_when_it_holds_locks_is_as_it_was_when_that_came() -> Tested {
    read_rows("v2/held.hex", &samples::held())
}

#[test]
fn a_row_that_says_how_large_its_value_is_is_as_it_was_when_that_came() -> Tested {
    read_rows("v2/large.hex", &samples::large())
}

#[test]
fn a_row_that_says_what_failed_last_is_as_it_was_when_that_came() -> Tested {
    read_rows("v2/said.hex", &samples::said())
}

#[test]
fn what_has_a_key_is_as_it_was_when_it_got_a_digest() -> Tested {
    let samples = samples::digests();
    for (line, (name, record)) in compare("v2/digests.hex", &samples)?.iter().zip(&samples) {
        match record {
            Record::Signal(_, _, entry, payload) => {
                let expected = (entry.clone(), payload.clone());
                assert_eq!(format::signal(value(line)?)?, expected, "{name}");
            }
            Record::Audit(entry) => assert_eq!(format::audit(entry.number, value(line)?)?, **entry, "{name}"),
            _ => return Err(format!("{name} has no digest").into()),
        }
    }
    Ok(())
}

#[test]
fn history_is_as_in_version_2() -> Tested {
    read_back("v2/history.hex", &samples::history())
}

#[test]
fn an_entry_with_locks_is_as_it_was_when_these_came() -> Tested {
    read_back("v2/locks.hex", &samples::stage_locks())
}

fn read_back(golden: &str, samples: &[Sample]) -> Tested {
    for (line, (name, record)) in compare(golden, samples)?.iter().zip(samples) {
        let Record::History(entry) = record else {
            return Err(format!("{name} is no entry").into());
        };
        let read = format::history(entry.family, entry.number, value(line)?)?;
        assert_eq!(read, **entry, "{name}");
    }
    Ok(())
}

#[test]
fn all_other_records_and_the_layout_of_keys_are_as_in_version_2() -> Tested {
    let samples = samples::others();
    let golden = compare("v2/others.hex", &samples)?;
    for (name, record) in &samples {
        let of_record = golden.iter().find(|line| line.name == *name);
        let first = of_record.ok_or_else(|| format!("{name} leaves nothing"))?;
        match record {
            Record::Key(_, entry) => assert_eq!(format::key_entry(value(first)?)?, *entry, "{name}"),
            Record::Audit(entry) => assert_eq!(format::audit(entry.number, value(first)?)?, **entry, "{name}"),
            Record::Pause(what, true) => assert_eq!(format::pause(value(first)?)?, *what, "{name}"),
            // Plain bytes, which are compared already.
            _ => {}
        }
    }
    Ok(())
}

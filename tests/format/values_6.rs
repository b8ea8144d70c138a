//! Every shape of record that came with format 6, as bytes and back.

use procession_actors::testkit::format;
use procession_kernel::Record;

use crate::Tested;
use crate::samples_6 as samples;
use crate::values::{compare, value};

#[test]
fn an_act_is_as_it_was_when_it_told_how_far_it_reached() -> Tested {
    let samples = samples::reaching();
    let golden = compare("v6/reach.hex", &samples)?;
    let [(_, Record::Audit(entry))] = samples.as_slice() else {
        return Err("it is an act".into());
    };
    let line = golden.first().ok_or("no act")?;
    assert_eq!(format::audit(entry.number, value(line)?)?, **entry);
    Ok(())
}

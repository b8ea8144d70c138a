//! Which families a list reads.

use std::collections::BTreeSet;

use super::*;

#[test]
fn a_list_reads_the_families_that_it_can_show_and_no_others() -> Result<(), crate::filter::FilterError> {
    let some = || Among::Families(BTreeSet::from([7, 9]));
    let cases = [
        ("", false, Among::Live),
        ("", true, Among::All),
        ("kind:create_table", false, Among::Live),
        ("kind:create_table", true, Among::All),
        ("state:live", true, Among::Live),
        ("state:waiting,waiting_timeout", false, Among::Live),
        ("state:failed", false, Among::All),
        ("state:live,ended", false, Among::All),
        ("root:7,9", false, some()),
        ("root:7,9 state:ended", false, some()),
        ("root:7,9", true, some()),
    ];
    for (filter, all, among) in cases {
        let wanted = Wanted {
            filter: filter.parse()?,
            all,
            limit: 1,
            after: None,
        };
        assert_eq!(wanted.among(), among, "{filter:?}, all: {all}");
    }
    Ok(())
}

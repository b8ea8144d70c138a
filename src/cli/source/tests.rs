//! Which families a list reads.

use std::collections::BTreeSet;

use super::*;

#[test]
fn a_list_reads_the_families_that_it_can_show_and_no_others() -> Result<(), procession::filter::FilterError> {
    let some = || FamilyScope::Families(BTreeSet::from([7, 9]));
    let cases = [
        ("", false, FamilyScope::Live),
        ("", true, FamilyScope::All),
        ("kind:create_table", false, FamilyScope::Live),
        ("kind:create_table", true, FamilyScope::All),
        ("state:live", true, FamilyScope::Live),
        ("state:waiting,waiting_timeout", false, FamilyScope::Live),
        ("state:failed", false, FamilyScope::All),
        ("state:live,ended", false, FamilyScope::All),
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

//! Many children that fail: each costs the same, however many the others are.

use procession::procedure::JoinPolicy;

use crate::support::{Act, Lab, Plan, Planned, Tested, chain, end, failing, live, plan};

/// A parent whose children all end, so many at once.
fn parent(child: &Plan, children: usize, width: u32) -> Plan {
    let children = vec![child.clone(); children];
    plan(
        "r",
        [Act::Spawn(children, JoinPolicy::AllFinished, width), Act::Done(1)],
    )
}

/// How many rows and entries the engine reads until all children have ended.
fn reads(child: &Plan, children: usize, width: u32) -> Result<u64, procession::testkit::Trouble> {
    let lab = Lab::default();
    live(&lab, async |run| {
        let before = run.store.reads();
        assert_eq!(end(run, Planned(parent(child, children, width)), "k").await??, 1);
        Ok(run.store.reads() - before)
    })
}

#[test]
fn a_child_that_fails_has_only_its_own_entries_read() -> Tested {
    for (child, width) in [(failing("c", 2), 0), (failing("c", 2), 1), (failing("c", 3), 5)] {
        let (few, many) = (reads(&child, 100, width)?, reads(&child, 200, width)?);
        assert!(few > 0, "width {width}: something is read");
        assert!(
            many <= 2 * few + 64,
            "width {width}: 100 children {few}, 200 children {many}"
        );
    }
    Ok(())
}

/// What the figures above are to be compared with.
#[test]
fn a_child_that_succeeds_reads_as_little_among_many() -> Tested {
    let child = chain("c", 2);
    let (few, many) = (reads(&child, 100, 1)?, reads(&child, 200, 1)?);
    assert!(many <= 2 * few + 64, "100 children {few}, 200 children {many}");
    Ok(())
}

//! Children, their latch, and when their parent goes on.

use crate::support::{Act, Tested, chain, enumerate_plan, failing, plan, spawn};

#[test]
fn e_012_two_children_cost_five_commits() -> Tested {
    let root = plan("r", [spawn([chain("a", 1), chain("b", 1)]), Act::Done(1)]);
    let (done, lab) = enumerate_plan(&root)?;
    assert_eq!(done.commits, 5);
    assert_eq!(lab.line(), "r1 a1 b1 r2");
    Ok(())
}

#[test]
fn e_024_order_through_a_nested_family() -> Tested {
    let root = plan(
        "r",
        [
            spawn([plan("s", [spawn([failing("t", 1)]), Act::Done(1)])]),
            Act::Done(1),
        ],
    );
    let (done, lab) = enumerate_plan(&root)?;
    assert_eq!(done.commits, 7);
    assert_eq!(lab.line(), "r1 s1 t1 t1' s1' r1'");
    Ok(())
}

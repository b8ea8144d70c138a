//! Sets that differ, and plans that are not known any more.

use procession_kernel::ProcedureId;

use super::{Difference, Fits, KEPT, Plans, revision};

fn roots(families: &[u64]) -> Vec<ProcedureId> {
    families.iter().map(|family| ProcedureId::root(*family)).collect()
}

#[test]
fn a_revision_stands_for_the_set_and_not_for_its_size() {
    let (set, other) = (roots(&[1, 2, 3]), roots(&[1, 2, 4]));
    assert_eq!(revision(&set), revision(&roots(&[3, 1, 2])), "the order does not count");
    assert_ne!(revision(&set), revision(&other));
    assert_ne!(revision(&[ProcedureId::root(1)]), revision(&[ProcedureId::new(1, 1)]));
}

#[test]
fn what_went_is_left_alone_and_what_came_is_told() {
    let (plans, planned) = (Plans::default(), roots(&[1, 2, 3]));
    let token = revision(&planned);
    plans.keep(&token, &planned);
    assert_eq!(plans.compare(&token, &planned), Fits::Within);
    assert_eq!(plans.compare(&token, &roots(&[1, 3])), Fits::Within);
    let difference = Difference { came: 2, went: 1 };
    assert_eq!(
        plans.compare(&token, &roots(&[1, 2, 4, 5])),
        Fits::Beyond(Some(difference))
    );
}

#[test]
fn a_plan_that_is_not_known_holds_for_the_same_set_alone() {
    let plans = Plans::default();
    let planned = roots(&[1, 2, 3]);
    let token = revision(&planned);
    assert_eq!(plans.compare(&token, &planned), Fits::Within, "the digest is enough");
    assert_eq!(plans.compare(&token, &roots(&[1, 2])), Fits::Beyond(None));
    assert_eq!(
        plans.compare("3", &planned),
        Fits::Beyond(None),
        "a count is no approval"
    );
    plans.keep(&token, &planned);
    for family in 10..10 + KEPT as u64 {
        let set = roots(&[family]);
        plans.keep(&revision(&set), &set);
    }
    assert_eq!(
        plans.compare(&token, &roots(&[1, 2])),
        Fits::Beyond(None),
        "the oldest has gone"
    );
}

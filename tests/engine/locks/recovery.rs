//! What was held is given back before anything runs, and before anything else is granted.

use procession::testkit::Run;
use procession::{Handle, Procedure};

use super::kit::{for_lock, held, is_after, nothing_is_left, owners, submit};
use crate::lifecycle::kit::{Changes, enumerate_client};
use crate::support::{Act, Holding, Lab, Plan, Planned, Tested, UndoAct, chain, plan, spawn};

/// If this one has begun and has not ended, it is the only owner of the path.
async fn owns<P: Procedure>(lab: &Lab, run: &Run, handle: &Handle<P>, body: &str, path: &str) -> Tested {
    let begun = lab.has(body);
    let found = owners(run, path).await?;
    if begun && run.executor.status(handle.id()).await?.ended.is_none() {
        assert_eq!(found, [handle.id()], "{path}");
    }
    assert!(found.len() <= 1, "{path} has two owners: {found:?}");
    Ok(())
}

/// Looks at the owners of a path from inside a body.
fn looks(path: &str, then: Act) -> Act {
    Act::Owners(path.to_owned(), Box::new(then))
}

/// A and then B, both on `t`; the last body of A is named, and what its bodies and B's see.
async fn one_after_the_other(lab: &Lab, run: &Run, a: Plan, last: &str, seen: &[&str]) -> Tested {
    lab.can_ask(run);
    let a = submit(run, Holding(a), "a").await?;
    // The first thing in each life: what was held is held.
    owns(lab, run, &a, "a1", "t").await?;
    let b = submit(run, Planned(plan("b", [looks("t", Act::Done(7))]).exclusive("t")), "b").await?;
    owns(lab, run, &a, "a1", "t").await?;
    run.settle().await;
    owns(lab, run, &a, "a1", "t").await?;
    if lab.has("c1") && !lab.has("a2") {
        assert_eq!(owners(run, "t/r").await?, [lab.id("c").ok_or("c has an id")?]);
    }
    lab.open("a");
    run.wait(a.outcome()).await??;
    run.wait(b.outcome()).await??;
    is_after(lab, last, "b1");
    // Whenever a body ran, after whatever start, each had its locks already, and alone.
    let mut noted = lab.noted();
    noted.sort();
    noted.dedup();
    assert_eq!(noted, seen);
    nothing_is_left(run).await
}

#[test]
fn e_072_what_was_held_is_given_back_before_anything_runs() -> Tested {
    let child = plan(
        "c",
        [
            looks("t", looks("t/r", Act::Sleep(3_600_000))),
            looks("t/r", Act::Done(1)),
        ],
    );
    let child = child.exclusive("t/r").holding();
    let a = plan("a", [looks("t", spawn([child])), looks("t", Act::Done(7))]).exclusive("t");
    let seen = [
        "a1 sees t of a",
        "a2 sees t of a",
        "b1 sees t of b",
        "c1 sees t of a",
        "c1 sees t/r of c",
        "c2 sees t/r of c",
    ];
    let (done, lab) =
        enumerate_client(async |lab: &Lab, run: &Run| one_after_the_other(lab, run, a.clone(), "a2", &seen).await)?;
    assert_eq!(lab.line(), "a1 c1 c2 a2 b1");
    // Two submissions, five stages, the time, B's grant.
    assert_eq!(done.commits, 2 + 5 + 1 + 1);
    Ok(())
}

#[test]
fn e_072_also_to_one_whose_first_stage_was_in_flight() -> Tested {
    let a = plan("a", [looks("t", held("a", Act::Done(7)))]).exclusive("t");
    let seen = ["a1 sees t of a", "b1 sees t of b"];
    let (done, lab) =
        enumerate_client(async |lab: &Lab, run: &Run| one_after_the_other(lab, run, a.clone(), "a1", &seen).await)?;
    assert_eq!(lab.line(), "a1 b1");
    assert_eq!(done.commits, 2 + 2 + 1);
    Ok(())
}

#[test]
fn e_074_rollback_keeps_the_lock_and_its_end_gives_it_back() -> Tested {
    let a = plan("a", [Act::Next, held("a", Act::Fail("boom".to_owned()))])
        .exclusive("t")
        .undo(2, UndoAct::Fail(2));
    for for_life in [true, false] {
        let (done, lab) = enumerate_client(async |lab: &Lab, run: &Run| {
            let changes = Changes::watch(run).await?;
            let id = if for_life {
                submit(run, Holding(a.clone()), "a").await?.id()
            } else {
                submit(run, Planned(a.clone()), "a").await?.id()
            };
            run.settle().await;
            let b = submit(run, Planned(chain("b", 1).exclusive("t")), "b").await?;
            if run.executor.status(id).await?.ended.is_none() {
                assert_eq!(owners(run, "t").await?, [id]);
                assert_eq!(run.executor.status(b.id()).await?.wait, for_lock("t"));
            }
            lab.open("a");
            run.wait(run.executor.outcome(id)).await??;
            run.wait(b.outcome()).await??;
            is_after(lab, "a1'", "b1");
            let rows = changes.all().into_iter().flat_map(|change| change.rows.clone());
            for row in rows.filter(|row| row.ended.is_some()) {
                assert!(row.locks.is_empty() && !row.holds, "{row:?}");
            }
            nothing_is_left(run).await
        })?;
        assert_eq!(lab.line(), "a1 a2 a2' a2' a2' a1' b1");
        // Two submissions, two stages, four undos of which two fail, a time for
        // each of these, B's grant and its stage.
        assert_eq!(done.commits, 2 + 2 + 4 + 2 + 1 + 1);
    }
    Ok(())
}

//! Submissions that bring their children: all in one commit, or nothing.

use std::future::IntoFuture;

use procession::errors::SubmitError;
use procession::procedure::Child;
use procession::status::{ListFilter, ProcedureState, WaitReason};
use procession::submit::Submission;
use procession::testkit::{Run, Trouble};
use procession::{Children, ProcedureId, StageContext, StageError, Step};
use procession::{Handle, Procedure};
use serde::{Deserialize, Serialize};

use crate::lifecycle::kit::{enumerate_client, submit};
use crate::support::{Act, Lab, Plan, Planned, Tested, chain, enumerate_plan, listed, live, plan};

/// A root that sees how its children stand, in its only stage.
fn root() -> Planned {
    Planned(plan("r", [Act::See(Box::new(Act::Done(1)))]))
}

fn children() -> Vec<Plan> {
    vec![chain("a", 1).named("a"), chain("b", 1).named("b").after([0])]
}

fn with(run: &Run, children: Vec<Plan>) -> Result<Submission<Planned>, Trouble> {
    let children = listed(children).map_err(|error| error.text().to_owned())?;
    Ok(run.executor.submit(root()).key("k").children(children))
}

async fn sent(run: &Run, submission: Submission<Planned>) -> Result<Handle<Planned>, Trouble> {
    Ok(run.wait(submission.into_future()).await??)
}

#[test]
fn f_013_a_submission_with_its_children() -> Tested {
    let (done, lab) = enumerate_client(async |_, run| {
        let handle = sent(run, with(run, children())?).await?;
        assert_eq!(run.wait(handle.outcome()).await??, 1);
        Ok(())
    })?;
    assert_eq!((done.commits, lab.line().as_str()), (4, "a1 b1 r1"));
    let seen = ["r1 saw 1 Success Some(7) None", "r1 saw 2 Success Some(7) None"];
    assert_eq!(lab.noted(), seen);

    let (done, lab) = enumerate_client(async |_, run| {
        let handle = sent(run, with(run, children())?.ends_with(42)).await?;
        assert_eq!(run.wait(handle.outcome()).await??, 42);
        Ok(())
    })?;
    assert_eq!(
        (done.commits, lab.line().as_str()),
        (3, "a1 b1"),
        "the root is not called"
    );
    Ok(())
}

#[test]
fn f_013_the_key_stands_for_the_children_too() -> Tested {
    let held = || {
        let mut children = children();
        children.push(plan("c", [Act::Held("c".to_owned(), Box::new(Act::Done(7)))]).after([1]));
        children
    };
    let lab = Lab::default();
    live(&lab, async |run| {
        let first = sent(run, with(run, held())?).await?;
        run.settle().await;
        let waits = first.status().await?;
        assert_eq!(
            (waits.state, waits.wait),
            (ProcedureState::Waiting, Some(WaitReason::Children))
        );
        let before = run.store.commits();
        assert_eq!(sent(run, with(run, held())?).await?.id(), first.id());
        let mut others: Vec<Vec<Plan>> = vec![children(), held(), held(), held()];
        if let [_, data, edge, name] = others.as_mut_slice() {
            data[1].acts = vec![Act::Next, Act::Done(8)];
            edge[2] = edge[2].clone().after([0]);
            name[0] = name[0].clone().named("other");
        }
        for other in others {
            let refused = run.wait(with(run, other)?.into_future()).await?;
            match refused.map(|handle| handle.id()) {
                Err(SubmitError::KeyConflict { id, .. }) => assert_eq!(id, first.id()),
                other => return Err(format!("{other:?}").into()),
            }
        }
        let refused = run.wait(with(run, held())?.ends_with(1).into_future()).await?;
        assert!(matches!(
            refused.map(|handle| handle.id()),
            Err(SubmitError::KeyConflict { .. })
        ));
        assert_eq!(run.store.commits(), before);
        lab.open("c");
        assert_eq!(run.wait(first.outcome()).await??, 1);
        Ok(())
    })
}

#[test]
fn f_013_a_batch_is_one_commit() -> Tested {
    live(&Lab::default(), async |run| {
        let before = run.store.commits();
        let batch = [
            run.executor
                .submit(root())
                .children(listed(children()).map_err(|error| error.text().to_owned())?),
            run.executor
                .submit(root())
                .children(listed(children()).map_err(|error| error.text().to_owned())?)
                .ends_with(5),
        ];
        let handles = run.wait(run.executor.submit_batch(batch)).await??;
        let mut outputs = Vec::new();
        for handle in handles {
            outputs.push(run.wait(handle.outcome()).await??);
        }
        assert_eq!(outputs, [1, 5]);
        assert_eq!(run.store.commits() - before, 1 + 3 + 2);
        Ok(())
    })
}

/// A kind that nobody registers.
#[derive(Debug, Serialize, Deserialize)]
struct Stranger;

impl Procedure for Stranger {
    const KIND: &'static str = "stranger";
    type Stage = ();
    type Env = ();
    type Output = ();

    fn first(&self) {}

    async fn execute(&mut self, (): (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Ok(Step::Done(()))
    }
}

#[test]
fn f_013_and_f_008_what_is_refused_leaves_nothing() -> Tested {
    live(&Lab::default(), async |run| {
        let before = run.store.commits();
        let stranger = Children::new().child(Child::new(&Stranger)?);
        let large =
            listed(vec![plan(&"x".repeat(1 << 20), [Act::Done(1)])]).map_err(|error| error.text().to_owned())?;
        let after = |place| {
            let child = Child::new(&root())?.after([place]);
            Ok::<_, Trouble>(Children::new().child(Child::new(&root())?).child(child))
        };
        let submitted = |children: Children| run.executor.submit(root()).children(children);
        let cases = [
            (
                submitted(stranger),
                "no procedure of kind \"stranger\" is registered; register it with the builder",
            ),
            (submitted(large), "is over the limit of 1048576"),
            (
                submitted(after(1)?),
                "the children cannot be born: child 1 waits for itself; correct the list",
            ),
            (
                submitted(after(2)?),
                "child 1 waits for child 2, which is not listed before it",
            ),
            (
                run.executor.submit(root()).ends_with(1),
                "nothing is waited for: no child is attached, or the join policy is met at once; submit the procedure without them",
            ),
        ];
        for (submission, words) in cases {
            match run.wait(submission.into_future()).await? {
                Err(error) => assert!(error.to_string().contains(words), "{error}"),
                Ok(handle) => return Err(format!("{} was taken: {words}", handle.id()).into()),
            }
        }
        assert_eq!(run.store.commits(), before);
        assert!(run.executor.status(ProcedureId::root(1)).await.is_err());
        Ok(())
    })
}

#[test]
fn f_014_a_stage_submits_a_family_with_its_children() -> Tested {
    let submits = |then| Act::SubmitWith(Box::new(chain("s", 1)), children(), Box::new(then));
    // Without a retry, with one before the submission, and with one that takes the submission back.
    for (first, more) in [
        (submits(Act::Next), 0),
        (Act::Retry(1, Box::new(submits(Act::Next))), 2),
        (submits(Act::Retry(1, Box::new(Act::Next))), 2),
    ] {
        let (done, lab) = enumerate_plan(&plan("p", [first, Act::Done(1)]))?;
        assert_eq!(done.commits, 2 + 3 + 1 + more, "{}", lab.line());
        assert_eq!((lab.count("a1"), lab.count("b1"), lab.count("s1")), (1, 1, 1));
    }
    Ok(())
}

#[test]
fn f_014_a_stage_submits_a_family_that_ends_with_an_output() -> Tested {
    let submits = |then| Act::SubmitEnding(Box::new(chain("s", 1)), children(), 42, Box::new(then));
    for (first, more) in [
        (submits(Act::Next), 0),
        (submits(Act::Retry(1, Box::new(Act::Next))), 2),
    ] {
        let (done, lab) = enumerate_client(async |_, run| {
            let root = plan("p", [first.clone(), Act::Done(1)]);
            let handle = submit(run, Planned(root), "k").await?;
            assert_eq!(run.wait(handle.outcome()).await??, 1);
            run.settle().await;
            let all = run.executor.list(ListFilter::default(), None, 10).await?;
            // Family numbers may skip some after a crash.
            let roots = all
                .items
                .iter()
                .filter(|row| row.parent.is_none() && row.id != handle.id());
            let roots: Vec<ProcedureId> = roots.map(|row| row.id).collect();
            let [born] = roots.as_slice() else {
                return Err(format!("{roots:?}").into());
            };
            assert_eq!(run.executor.outcome(*born).await?.output::<i64>()?, Some(42));
            Ok(())
        })?;
        // Submission, p1, a, b and p2.
        assert_eq!(done.commits, 5 + more, "{}", lab.line());
        assert_eq!((lab.count("a1"), lab.count("b1"), lab.has("s1")), (1, 1, false));
    }
    Ok(())
}

#[test]
fn a_root_that_waits_for_its_children_is_submitted_with_a_key_as_any_other() -> Tested {
    live(&Lab::default(), async |run| {
        let plain = submit(run, root(), "k").await?;
        run.wait(plain.outcome()).await??;
        let refused = run.wait(with(run, children())?.into_future()).await?;
        assert!(matches!(
            refused.map(|handle| handle.id()),
            Err(SubmitError::KeyConflict { .. })
        ));
        Ok(())
    })
}

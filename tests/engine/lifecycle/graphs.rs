//! Graphs of children: gates that open, that can no longer open, and that an operator opens; vital children; what a
//! list may not say.

use procession::ProcedureId;
use procession::errors::{AskError, ProcedureError};
use procession::health::{Rule, WaitingFor, WakeSource};
use procession::operate::{BypassAs, BypassScope, OperatorRequest};
use procession::procedure::{ChildPermits, JoinPolicy};
use procession::status::{CauseKind, ProcedureState, Status, WaitReason};
use procession::testkit::{Ended, Fault, FaultPlan, Run, Trouble, World};

use super::kit::{at_rest, enumerate_client, enumerate_in, submit};
use crate::support::{
    Act, Lab, Limited, Plan, Planned, Tested, chain, end, enumerate_plan, failing, kinds, live, plan,
};

fn one(name: &str) -> Plan {
    chain(name, 1).named(name)
}

fn held(name: &str) -> Plan {
    plan(name, [Act::Held(name.to_owned(), Box::new(Act::Done(7)))]).named(name)
}

/// A root that spawns these, and sees how they stand.
fn parent(children: impl Into<Vec<Plan>>, join: JoinPolicy, width: u32) -> Plan {
    plan(
        "r",
        [
            Act::Spawn(children.into(), join, width),
            Act::See(Box::new(Act::Done(1))),
        ],
    )
}

const fn member(number: u32) -> ProcedureId {
    ProcedureId::new(1, number)
}

fn diamond(middle: impl Fn(&str) -> Plan, last: Plan) -> Plan {
    let (b, c) = (middle("b").after([0]), middle("c").after([0]));
    parent([one("a"), b, c, last.after([1, 2])], JoinPolicy::AllSucceeded, 0)
}

async fn until(run: &Run, holds: impl Fn() -> bool) {
    while !holds() {
        run.settle().await;
        tokio::task::yield_now().await;
    }
}

async fn state_of(run: &Run, number: u32) -> Result<Status, Trouble> {
    Ok(run.executor.status(member(number)).await?)
}

fn is_at_gate(status: &Status) -> bool {
    status.wait == Some(WaitReason::Gate) && status.state == ProcedureState::Initializing
}

#[test]
fn f_001_a_graph_of_children() -> Tested {
    let (done, lab) = enumerate_plan(&diamond(one, one("d")))?;
    assert_eq!((done.commits, lab.line().as_str()), (7, "r1 a1 b1 c1 d1 r2"));

    let lab = Lab::default();
    live(&lab, async |run| {
        let handle = submit(run, Planned(diamond(held, one("d"))), "k").await?;
        until(run, || lab.has("b1") && lab.has("c1")).await;
        let waits = state_of(run, 4).await?;
        let born = run.executor.status(handle.id()).await?.revision;
        assert!(is_at_gate(&waits), "{waits:?}");
        assert_eq!(waits.revision, born, "written with the list, and never since");
        assert_eq!(waits.before, [member(2), member(3)]);
        assert!(waits.next.contains("gate"), "{}", waits.next);
        let tree = run.executor.tree(handle.id()).await?;
        let names: Vec<_> = tree.iter().map(|row| row.name.as_deref()).collect();
        assert_eq!(names, [None, Some("a"), Some("b"), Some("c"), Some("d")]);
        let explanation = run.executor.explain(member(4)).await?;
        let links: Vec<_> = explanation
            .links
            .iter()
            .map(|link| (link.from, link.to, link.why.clone()))
            .collect();
        let gate = |to| (member(4), member(to), WaitingFor::Gate);
        assert_eq!(links, [gate(2), gate(3)]);
        lab.open("b");
        run.settle().await;
        assert!(is_at_gate(&state_of(run, 4).await?));
        assert!(!lab.has("d1"));
        lab.open("c");
        assert_eq!(run.wait(handle.outcome()).await??, 1);
        Ok(())
    })?;
    assert_eq!(lab.count("d1"), 1);
    Ok(())
}

#[test]
fn f_002_undone_in_the_exact_reverse() -> Tested {
    let last = failing("d", 1).named("d").compensated();
    let (done, lab) = enumerate_plan(&parent(
        [
            one("a").compensated(),
            one("b").compensated().after([0]),
            one("c").compensated().after([0]),
            last.after([1, 2]),
        ],
        JoinPolicy::AllSucceeded,
        0,
    ))?;
    assert_eq!(done.commits, 11);
    assert_eq!(lab.line(), "r1 a1 b1 c1 d1 d1' c1' b1' a1' r1'");
    Ok(())
}

#[test]
fn f_003_a_gate_that_can_no_longer_open() -> Tested {
    let family = |first: Plan| {
        parent(
            [first, one("b").after([0]), one("c").after([1]), one("x")],
            JoinPolicy::AllFinished,
            0,
        )
    };
    let shut = |number| format!("r2 saw {number} RolledBack None Some(\"its gate can no longer open: boom\")");
    for (first, state, commits) in [
        (failing("a", 1).without_rollback(), "Failed", 5),
        (failing("a", 1), "RolledBack", 6),
    ] {
        let (done, lab) = enumerate_plan(&family(first))?;
        assert_eq!(done.commits, commits);
        assert!(!lab.has("b1") && !lab.has("c1"), "{}", lab.line());
        let expected = [
            format!("r2 saw 1 {state} None Some(\"boom\")"),
            shut(2),
            shut(3),
            "r2 saw 4 Success Some(7) None".to_owned(),
        ];
        assert_eq!(lab.noted(), expected);
    }
    let lab = Lab::default();
    live(&lab, async |run| {
        let first = failing("a", 1).without_rollback();
        end(run, Planned(family(first)), "k").await??;
        let ended = state_of(run, 1).await?.revision;
        for number in [2, 3] {
            let status = state_of(run, number).await?;
            assert_eq!(status.revision, ended, "in the commit of the failure");
            let cause = status.cause.ok_or("it has a cause")?;
            assert_eq!((cause.kind, cause.origin), (CauseKind::GateShut, member(1)));
        }
        Ok(())
    })
}

/// A failure, one that waits for an operator behind it, one behind that, and a stranger.
fn waiting() -> Plan {
    parent(
        [
            failing("a", 1).without_rollback(),
            one("b").after([0]).or_wait(),
            one("c").after([1]),
            one("x"),
        ],
        JoinPolicy::AllFinished,
        0,
    )
}

fn ann() -> OperatorRequest {
    OperatorRequest::new("ann", "it was looked at").key("once")
}

#[test]
fn f_004_it_waits_instead_and_is_let_go_on() -> Tested {
    let (done, lab) = enumerate_client(async |_, run| {
        let handle = submit(run, Planned(waiting()), "k").await?;
        run.settle().await;
        run.wait(run.executor.retry_now(member(2), ann())).await??;
        assert_eq!(run.wait(handle.outcome()).await??, 1);
        Ok(())
    })?;
    assert_eq!(done.commits, 8);
    assert!(lab.has("b1") && lab.has("c1"), "{}", lab.line());
    Ok(())
}

#[test]
fn f_004_it_waits_instead_and_is_bypassed() -> Tested {
    let (done, lab) = enumerate_client(async |_, run| {
        let handle = submit(run, Planned(waiting()), "k").await?;
        run.settle().await;
        let ends = run
            .executor
            .bypass(member(2), BypassScope::Alone, BypassAs::Failed, ann());
        run.wait(ends).await??;
        assert_eq!(run.wait(handle.outcome()).await??, 1);
        Ok(())
    })?;
    assert_eq!(done.commits, 6);
    assert!(!lab.has("b1") && !lab.has("c1"), "{}", lab.line());
    Ok(())
}

#[test]
fn f_004_one_verdict_says_that_a_person_must_decide() -> Tested {
    live(&Lab::default(), async |run| {
        let handle = submit(run, Planned(waiting()), "k").await?;
        assert!(is_at_gate(&at_rest(run, member(2)).await?));
        let verdicts = run.executor.verdicts().await?;
        let told: Vec<_> = verdicts
            .iter()
            .map(|verdict| (verdict.rule, verdict.procedure))
            .collect();
        assert_eq!(told, [(Rule::Undecided, Some(member(2)))]);
        let facts = verdicts.first().map(|verdict| verdict.facts.clone());
        let expected = vec![
            ("kind", "planned".to_owned()),
            ("stage", "1".to_owned()),
            ("sibling", "1.1".to_owned()),
            ("unsuccessful", "1".to_owned()),
            ("cause", "boom".to_owned()),
            ("behind", "1".to_owned()),
        ];
        assert_eq!(facts, Some(expected));
        let explanation = run.executor.explain(member(3)).await?;
        let links: Vec<_> = explanation
            .links
            .iter()
            .map(|link| (link.to, link.why.clone()))
            .collect();
        assert_eq!(links, [(member(2), WaitingFor::Gate)]);
        let until: Vec<_> = explanation.ends.iter().map(|end| &end.until).collect();
        assert!(
            matches!(until.as_slice(), [WakeSource::Operator(WaitReason::Gate)]),
            "{until:?}"
        );
        assert_eq!(run.executor.explain(member(2)).await?.waiting_behind, 1);
        let dry = run.executor.retry_now(member(2), ann().dry_run()).await?;
        let next = dry.plan.map(|plan| plan.moves_next);
        assert_eq!((dry.changed, next), (1, Some(vec![member(2)])), "its gate opens");
        assert!(is_at_gate(&state_of(run, 2).await?), "nothing has changed");
        run.executor.retry_now(member(2), ann()).await?;
        run.wait(handle.outcome()).await??;
        assert_eq!(run.executor.verdicts().await?, []);
        Ok(())
    })
}

/// A first child, several after it, and one after all of those.
fn fan(children: u32, width: u32) -> Plan {
    let mut all = vec![one("a")];
    all.extend((1..=children).map(|number| chain(&format!("b{number}-"), 1).after([0])));
    all.push(one("z").after((1..=children).collect::<Vec<u32>>()));
    parent(all, JoinPolicy::AllSucceeded, width)
}

#[test]
fn f_005_width() -> Tested {
    let (plan, lab) = (fan(100, 8), Lab::default());
    live(&lab, async |run| {
        let changes = super::kit::Changes::watch(run).await?;
        let before = run.store.commits();
        assert_eq!(end(run, Planned(plan.clone()), "k").await??, 1);
        assert_eq!(run.store.commits() - before, 105);
        let (mut active, mut begun, mut most) = (std::collections::BTreeSet::new(), Vec::new(), 0);
        for change in changes.all() {
            for row in change.rows.iter().filter(|row| row.id.member > 0) {
                if !row.going {
                    active.remove(&row.id);
                } else if active.insert(row.id) {
                    begun.push(row.id.member);
                }
            }
            most = most.max(active.len());
        }
        assert_eq!(most, 8);
        assert_eq!(begun, (1..=102).collect::<Vec<u32>>(), "the lowest numbers first");
        Ok(())
    })?;
    assert_eq!(lab.count("z1"), 1);
    Ok(())
}

#[test]
fn f_005_width_and_a_crash_half_way() -> Tested {
    let (world, lab, plan) = (World::new(), Lab::default(), fan(100, 8));
    let drive = async |run: &Run| {
        let handle = submit(run, Planned(plan.clone()), "k").await?;
        Ok::<_, Trouble>(run.wait(handle.outcome()).await??)
    };
    // After the submission, the list and the first child, the end of the fiftieth behind it.
    let first = world.run(
        FaultPlan::at(3 + 50, Fault::CrashAfter),
        |builder| kinds(&lab, builder),
        drive,
    )?;
    assert!(matches!(first, Ended::Crashed));
    let second = world.run(FaultPlan::none(), |builder| kinds(&lab, builder), drive)?;
    assert_eq!(second.done()?, 1);
    let calls = lab.calls().len() - 104;
    assert!(calls <= 8, "{calls} ran twice");
    assert_eq!((lab.count("z1"), lab.count("r2")), (1, 1));
    Ok(())
}

#[test]
fn a_family_is_read_page_by_page() -> Tested {
    live(&Lab::default(), async |run| {
        end(run, Planned(fan(9, 0)), "k").await??;
        let (mut pages, mut from) = (Vec::new(), Some(0));
        while let Some(first) = from {
            let page = run.executor.members(member(0), first, 5).await?;
            pages.push(page.items.iter().map(|status| status.id.member).collect::<Vec<u32>>());
            from = page.next;
        }
        assert_eq!(pages, [vec![0, 1, 2, 3, 4], vec![5, 6, 7, 8, 9], vec![10, 11]]);
        let beyond = run.executor.members(member(0), 12, 5).await?;
        assert!(beyond.items.is_empty() && beyond.next.is_none());
        let most = run.executor.members(member(0), 0, usize::MAX).await?;
        assert_eq!((most.items.len(), most.next), (12, None));
        let unknown = ProcedureId::root(9);
        let refused = run.executor.members(unknown, 0, 5).await;
        assert!(matches!(refused, Err(AskError::Unknown(id)) if id == unknown));
        Ok(())
    })
}

/// The same with few, so that every crash can be tried.
#[test]
fn f_005_a_narrow_fan_survives_every_crash() -> Tested {
    let (done, lab) = enumerate_plan(&fan(4, 2))?;
    assert_eq!((done.commits, lab.count("z1")), (9, 1));
    Ok(())
}

#[test]
fn f_007_a_vital_child() -> Tested {
    let family = |first: Plan| {
        let b = plan("b", [Act::Held("b".to_owned(), Box::new(Act::Done(7)))]).without_rollback();
        parent([first, b, chain("c", 1).without_rollback()], JoinPolicy::AllFinished, 2)
    };
    let first = || failing("a", 1).without_rollback();
    for (child, commits, line) in [(first().vital(), 5, "r1 a1 b1 r1'"), (first(), 6, "r1 a1 b1 c1 r2")] {
        let (done, lab) = enumerate_client(async |lab, run| {
            let handle = submit(run, Planned(family(child.clone())), "k").await?;
            until(run, || lab.has("a1") && lab.has("b1")).await;
            lab.open("b");
            let outcome = run.wait(handle.outcome()).await?;
            let expected = matches!(&outcome, Err(ProcedureError::RolledBack { cause, .. }) if cause.text == "boom");
            assert_eq!(expected, commits == 5, "{outcome:?}");
            assert_eq!(state_of(run, 2).await?.state, ProcedureState::Success);
            Ok(())
        })?;
        assert_eq!((done.commits, lab.line().as_str()), (commits, line));
    }
    Ok(())
}

/// One after another, the second of a kind with a limit, on a permit of its own.
fn limited(first: Plan) -> Plan {
    let mut second = one("b").after([0]);
    second.limited = true;
    plan(
        "r",
        [Act::SpawnOn(ChildPermits::Own, vec![first, second]), Act::Done(1)],
    )
}

#[test]
fn f_008_permits_at_a_gate() -> Tested {
    let set_up = |lab: &Lab, builder| kinds(lab, builder).limit("limited", 1);
    let (done, _) = enumerate_in(Lab::default, set_up, async |_, run| {
        assert_eq!(end(run, Planned(limited(one("a"))), "k").await??, 1);
        Ok(())
    })?;
    assert_eq!(done.commits, 6, "the grant is one of them");

    let lab = Lab::default();
    let ended = World::new().run(
        FaultPlan::none(),
        |builder| set_up(&lab, builder),
        async |run| {
            let handle = submit(run, Planned(limited(held("a"))), "k").await?;
            until(run, || lab.has("a1")).await;
            let usage = run.executor.limits().await?;
            let usage = usage.iter().find(|usage| usage.key.as_str() == "limited");
            assert_eq!(usage.map(|usage| (usage.used, usage.waiting)), Some((0, 0)));
            let stranger = submit(run, Limited(held("s")), "s").await?;
            until(run, || lab.has("s1")).await;
            lab.open("a");
            run.settle().await;
            assert!(matches!(state_of(run, 2).await?.wait, Some(WaitReason::Permit(_))));
            lab.open("s");
            run.wait(stranger.outcome()).await??;
            assert_eq!(run.wait(handle.outcome()).await??, 1);
            Ok(())
        },
    )?;
    ended.done()?;
    assert_eq!(lab.line(), "r1 a1 s1 b1 r2");
    Ok(())
}

#[test]
fn f_008_lists_that_are_refused() -> Tested {
    let two = |last: Plan| parent([one("a"), one("b"), last], JoinPolicy::AllSucceeded, 0);
    let cases = [
        (two(one("c").after([2])), "child 2 waits for itself"),
        (
            parent([one("a"), one("b").after([2]), one("c")], JoinPolicy::AllSucceeded, 0),
            "child 1 waits for child 2, which is not listed before it",
        ),
        (two(one("c").after([1, 1])), "child 2 waits for child 1 twice"),
        (
            two(one("c").after([0]).opens(JoinPolicy::AtLeast(0))),
            "child 2: AtLeast needs 1 to 1, got 0",
        ),
        (
            two(one("c").after([0, 1]).opens(JoinPolicy::AtLeast(3))),
            "child 2: AtLeast needs 1 to 2, got 3",
        ),
        (
            two(one("c").opens(JoinPolicy::AllFinished)),
            "child 2 has a gate and waits for no child",
        ),
        (
            two(chain("c", 1).named(&"n".repeat(201))),
            "a name of 201 characters is over the limit of 200",
        ),
    ];
    for (family, expected) in cases {
        live(&Lab::default(), async |run| {
            match end(run, Planned(family), "k").await? {
                Err(ProcedureError::RolledBack { cause, .. }) => {
                    assert_eq!((cause.kind, cause.text.as_str()), (CauseKind::OverBound, expected));
                }
                other => return Err(format!("{expected}: {other:?}").into()),
            }
            assert_eq!(run.executor.tree(ProcedureId::root(1)).await?.len(), 1);
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn f_014_what_stood_before() -> Tested {
    let last = |other| {
        let mistyped = Act::Mistyped(2, Box::new(Act::Done(9)));
        plan("d", [Act::Before(other, Box::new(mistyped))]).after([1, 2])
    };
    let x = || failing("x", 1).without_rollback();
    for (other, seen) in [(5, "d1 saw 5 Failed None"), (99, "d1 saw 99 nothing")] {
        let children = [one("a"), one("b").after([0]), one("c").after([0]), last(other), x()];
        let (done, lab) = enumerate_plan(&parent(children, JoinPolicy::AtLeast(4), 0))?;
        assert_eq!(done.commits, 8, "{}", lab.line());
        let noted = lab.noted();
        let of_d: Vec<&str> = noted
            .iter()
            .map(String::as_str)
            .filter(|note| note.starts_with("d1"))
            .collect();
        let (before, told) = of_d.split_at(3);
        assert_eq!(before, ["d1 saw 2 Success Some(7)", "d1 saw 3 Success Some(7)", seen]);
        let [told] = told else {
            return Err(format!("{told:?}").into());
        };
        assert!(told.starts_with("d1 is told Err(\"the stored value is not of the type asked for: "));
        assert!(told.contains("expected a string"), "{told}");
    }
    Ok(())
}

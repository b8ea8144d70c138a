//! Questions to people: how one is asked and answered, and what happens to places, permits and verdicts meanwhile.

use std::time::Duration;

use procession::ProcedureId;
use procession::errors::{AskError, NotNow};
use procession::health::{Rule, Verdict};
use procession::operate::{BypassAs, BypassScope, OperatorRequest};
use procession::procedure::Timestamp;
use procession::status::{Ending, ListFilter, ProcedureState, WaitReason};
use procession::testkit::{FaultPlan, Run, Trouble, World};

use crate::rollback::helper::{at_rest, enumerate_client, rolled_back, submit};
use crate::support::{Act, Active, Lab, Plan, Planned, Tested, kinds, live, plan, spawn};

fn asks(timeout: Option<u64>) -> Plan {
    plan("p", [Act::Ask("drop t?".to_owned(), timeout), Act::DoneAnswer])
}

fn by(key: &str) -> OperatorRequest {
    OperatorRequest::new("ann", "so it is").key(key)
}

/// Answers, as one who repeats it after a crash.
async fn decides(run: &Run, id: ProcedureId, answer: i64) -> Tested {
    run.settle().await;
    match run.wait(run.executor.decide(id, &answer, by("answer"))).await? {
        Ok(_) | Err(AskError::Finished { .. }) => Ok(()),
        Err(other) => Err(other.into()),
    }
}

async fn undecided(run: &Run) -> Result<Vec<Verdict>, Trouble> {
    let mut verdicts = run.executor.verdicts().await?;
    verdicts.retain(|verdict| verdict.rule == Rule::Undecided);
    Ok(verdicts)
}

#[test]
fn f_009_a_question_and_its_answer() -> Tested {
    let (done, lab) = enumerate_client(async |_, run| {
        let handle = submit(run, Planned(asks(None)), "p").await?;
        decides(run, handle.id(), 7).await?;
        assert_eq!(run.wait(handle.outcome()).await??, 7);
        let history = run.executor.history(handle.id()).await?;
        let told = history.first().map(|entry| (entry.ending, entry.error.as_deref()));
        assert_eq!(told, Some((Ending::Asked, Some("drop t?"))));
        Ok(())
    })?;
    assert_eq!((done.commits, lab.line().as_str()), (4, "p1 p2"));
    Ok(())
}

#[test]
fn f_009_what_is_shown_and_what_is_refused() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let handle = submit(run, Planned(asks(None)), "p").await?;
        let id = handle.id();
        let status = at_rest(run, id).await?;
        assert_eq!(status.question.as_deref(), Some("drop t?"));
        assert_eq!((status.state, status.since), (ProcedureState::Runnable, Timestamp(0)));
        assert_eq!(status.next, "stage 2 runs once somebody decides");
        let verdicts = undecided(run).await?;
        let [verdict] = &verdicts[..] else {
            return Err(format!("{verdicts:?}").into());
        };
        assert_eq!(
            (verdict.procedure, verdict.fact("question")),
            (Some(id), Some("drop t?"))
        );
        assert!(verdict.text.ends_with("at stage 2 asks: drop t?"), "{}", verdict.text);

        // Nothing that was sent is taken for an answer, before or after.
        let before = run.store.commits();
        run.executor.signal(id, "decision", &1_i64).await?;
        assert_eq!(run.executor.broadcast("decision", &1_i64).await?, 0);
        assert_eq!(run.store.commits(), before + 1, "the signal is kept");
        assert_eq!(at_rest(run, id).await?.question.as_deref(), Some("drop t?"));

        let before = run.store.commits();
        let dry = run.executor.decide(id, &3_i64, by("dry").dry_run()).await?;
        assert_eq!((dry.number, dry.changed), (None, 1));
        assert_eq!(run.store.commits(), before);
        run.executor.decide(id, &3_i64, by("one")).await?;
        // The same key has one effect, and another answer with it is another request.
        run.executor.decide(id, &3_i64, by("one")).await.ok();
        assert_eq!(run.wait(handle.outcome()).await??, 3);
        let late = run.executor.decide(id, &4_i64, by("late")).await;
        assert!(matches!(late, Err(AskError::Finished { .. })), "{late:?}");
        assert_eq!(undecided(run).await?, []);
        let entry = run.executor.audit(None, 1).await?;
        let words = entry.first().map(|entry| entry.words.as_str());
        assert_eq!(
            words,
            Some(format!("answer the question of {id} with 1 bytes").as_str())
        );

        let other = submit(
            run,
            Planned(plan("q", [Act::Wait("go".to_owned(), None), Act::Done(1)])),
            "q",
        )
        .await?;
        run.settle().await;
        let before = run.store.commits();
        let refused = run.executor.decide(other.id(), &1_i64, by("nobody asks")).await;
        assert!(
            matches!(&refused, Err(AskError::NotNow { kind: NotNow::NoQuestion, text: why }) if why.contains("asks no question")),
            "{refused:?}"
        );
        assert_eq!(run.store.commits(), before);
        Ok(())
    })
}

#[test]
fn f_009_without_an_answer_and_out_of_time() -> Tested {
    let (done, lab) = enumerate_client(async |_, run| {
        let handle = submit(run, Planned(asks(None)), "p").await?;
        run.settle().await;
        match run.executor.retry_now(handle.id(), by("retry")).await {
            Ok(_) | Err(AskError::Finished { .. }) => {}
            Err(other) => return Err(other.into()),
        }
        assert_eq!(run.wait(handle.outcome()).await??, -2);
        Ok(())
    })?;
    assert_eq!((done.commits, lab.line().as_str()), (4, "p1 p2"));

    let (done, _) = enumerate_client(async |_, run| {
        let handle = submit(run, Planned(asks(Some(3_600_000))), "p").await?;
        assert_eq!(run.wait(handle.outcome()).await??, -1);
        assert_eq!(run.now(), Timestamp(3_600_000_000));
        Ok(())
    })?;
    assert_eq!(done.commits, 4);
    Ok(())
}

#[test]
fn f_009_a_permit_that_is_held_while_active_is_free_meanwhile() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let set_up = |builder| kinds(&lab, builder).limit("active", 1);
    world
        .run(FaultPlan::none(), set_up, async |run| {
            let handle = submit(run, Active(asks(None)), "p").await?;
            run.settle().await;
            let before = run.store.commits();
            let other = submit(run, Active(plan("q", [Act::Done(1)])), "q").await?;
            assert_eq!(run.wait(other.outcome()).await??, 1);
            assert_eq!(run.store.commits() - before, 2, "it had the permit at once");
            let before = run.store.commits();
            run.executor.decide(handle.id(), &5_i64, by("yes")).await?;
            assert_eq!(run.wait(handle.outcome()).await??, 5);
            assert_eq!(run.store.commits() - before, 3, "the answer, the grant, the end");
            Ok(())
        })?
        .done()
}

#[test]
fn an_answer_is_seen_by_every_attempt_and_by_no_later_stage() -> Tested {
    let acts = [
        Act::Ask("go on?".to_owned(), None),
        Act::Got(Box::new(Act::Retry(1, Box::new(Act::Next)))),
        Act::Got(Box::new(Act::Done(1))),
    ];
    let lab = Lab::default();
    live(&lab, async |run| {
        let handle = submit(run, Planned(plan("p", acts)), "p").await?;
        decides(run, handle.id(), 9).await?;
        assert_eq!(run.wait(handle.outcome()).await??, 1);
        Ok(())
    })?;
    assert_eq!(lab.noted(), ["p2 got Some(9)", "p2 got Some(9)", "p3 got None"]);
    Ok(())
}

#[test]
fn a_question_is_undone_like_any_stage() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let acts = [
            Act::Next,
            Act::Ask("go on?".to_owned(), None),
            Act::Fail("no".to_owned()),
        ];
        let handle = submit(run, Planned(plan("p", acts)), "p").await?;
        decides(run, handle.id(), 9).await?;
        rolled_back(run.wait(handle.outcome()).await?)?;
        Ok(())
    })?;
    assert_eq!(lab.line(), "p1 p2 p3 p3' p2' p1'");
    Ok(())
}

fn child(name: &str, last: Act) -> Plan {
    plan(name, [last])
}

/// Three that cannot be undone: the first asks, then ends; the third is held.
fn family() -> [Plan; 3] {
    let asker = plan("c", [Act::Ask("which?".to_owned(), None), Act::DoneAnswer]);
    let held = Act::Held("e".to_owned(), Box::new(Act::Done(1)));
    [asker, child("d", Act::Done(1)), child("e", held)].map(Plan::without_rollback)
}

#[test]
fn f_010_a_question_within_a_family() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let root = plan(
            "r",
            [
                Act::Spawn(family().into(), procession::procedure::JoinPolicy::AllSucceeded, 1),
                Act::Done(3),
            ],
        );
        let before = run.store.commits();
        let handle = submit(run, Planned(root), "r").await?;
        run.until("the third is out", || lab.has("e1")).await?;
        let asker = ProcedureId::new(handle.id().family, 1);
        run.executor.decide(asker, &2_i64, by("yes")).await?;
        let status = at_rest(run, asker).await?;
        assert_eq!((status.wait, status.question), (Some(WaitReason::Width), None));
        lab.open("e");
        assert_eq!(run.wait(handle.outcome()).await??, 3);
        assert_eq!(run.store.commits() - before, 8);
        Ok(())
    })?;
    assert_eq!(lab.line(), "r1 c1 d1 e1 c2 r2");
    Ok(())
}

#[test]
fn f_010_an_abort_leaves_no_question() -> Tested {
    let (done, lab) = enumerate_client(async |lab, run| {
        lab.open("e");
        let root = plan(
            "r",
            [
                Act::Spawn(family().into(), procession::procedure::JoinPolicy::AllSucceeded, 1),
                Act::Done(3),
            ],
        );
        let handle = submit(run, Planned(root), "r").await?;
        let asker = ProcedureId::new(handle.id().family, 1);
        run.until("the third has ended", || lab.has("e1")).await?;
        run.settle().await;
        run.executor.abort(handle.id(), by("abort")).await.ok();
        rolled_back(run.wait(handle.outcome()).await?)?;
        let late = run.executor.decide(asker, &2_i64, by("late")).await;
        assert!(matches!(late, Err(AskError::Finished { .. })), "{late:?}");
        assert_eq!(undecided(run).await?, []);
        Ok(())
    })?;
    assert_eq!((done.commits, lab.line().as_str()), (7, "r1 c1 d1 e1 r1'"));
    Ok(())
}

#[test]
fn f_010_those_at_gates_behind_one_that_asks_are_counted() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let asker = plan("a", [Act::Ask("which?".to_owned(), None), Act::DoneAnswer]);
        let done = |name| child(name, Act::Done(1));
        let children = vec![asker, done("b").after([0]), done("c").after([1]), done("d")];
        let spawn = Act::Spawn(children, procession::procedure::JoinPolicy::AllFinished, 0);
        let handle = submit(run, Planned(plan("r", [spawn, Act::Done(3)])), "r").await?;
        run.settle().await;
        let member = |number| ProcedureId::new(handle.id().family, number);
        let verdicts = undecided(run).await?;
        let [verdict] = &verdicts[..] else {
            return Err(format!("{verdicts:?}").into());
        };
        assert_eq!(
            (verdict.procedure, verdict.fact("behind")),
            (Some(member(1)), Some("2"))
        );
        let told = "at stage 2 asks while 2 wait behind it at gates: which?";
        assert!(verdict.text.ends_with(told), "{}", verdict.text);
        for (number, behind) in [(0, 0), (1, 2), (2, 1), (3, 0)] {
            let explanation = run.executor.explain(member(number)).await?;
            assert_eq!(explanation.waiting_behind, behind, "of {number}");
        }

        // An answer moves the one that asks alone: its next stage has yet to end.
        let answered = run.executor.decide(member(1), &5_i64, by("dry").dry_run()).await?;
        let next = answered.plan.map(|plan| plan.moves_next);
        assert_eq!(next, Some(Vec::new()));
        let by_end = by("end").dry_run();
        let ended = run
            .executor
            .bypass(member(1), BypassScope::Alone, BypassAs::Success, by_end)
            .await?;
        let next = ended.plan.map(|plan| plan.moves_next);
        assert_eq!(next, Some(vec![member(2)]), "the gate that opens");
        decides(run, member(1), 5).await?;
        assert_eq!(run.wait(handle.outcome()).await??, 3);
        assert_eq!(undecided(run).await?, []);
        Ok(())
    })?;
    assert_eq!(lab.line(), "r1 a1 d1 a2 b1 c1 r2");
    Ok(())
}

#[test]
fn f_010_whatever_crash_comes_the_answer_is_taken_once() -> Tested {
    let (_, lab) = enumerate_client(async |lab, run| {
        lab.open("e");
        let root = plan(
            "r",
            [
                Act::Spawn(family().into(), procession::procedure::JoinPolicy::AllSucceeded, 1),
                Act::Done(3),
            ],
        );
        let handle = submit(run, Planned(root), "r").await?;
        decides(run, ProcedureId::new(handle.id().family, 1), 2).await?;
        assert_eq!(run.wait(handle.outcome()).await??, 3);
        Ok(())
    })?;
    assert_eq!(lab.line(), "r1 c1 d1 e1 c2 r2");
    Ok(())
}

#[test]
fn g_072_who_asks_keeps_its_place() -> Tested {
    let asker = |name: &str| plan(name, [Act::Ask("which?".to_owned(), None), Act::DoneAnswer]);
    let children = || {
        let rest = ["c", "d", "e"].map(|name| child(name, Act::Done(1)));
        [vec![asker("a"), asker("b")], rest.to_vec()].concat()
    };
    let keeping = Act::SpawnKeeping(children(), 2);
    let giving = Act::Spawn(children(), procession::procedure::JoinPolicy::AllSucceeded, 2);
    for (act, begun) in [(keeping, "r1 a1 b1"), (giving, "r1 a1 b1 c1 d1 e1")] {
        let (world, lab) = (World::new(), Lab::default());
        for _ in 0..2 {
            world
                .run(
                    FaultPlan::none(),
                    |builder| kinds(&lab, builder),
                    async |run| {
                        submit(run, Planned(plan("r", [act.clone(), Act::Done(1)])), "r").await?;
                        run.settle().await;
                        assert_eq!(lab.line(), begun, "before and after a restart");
                        assert_eq!(undecided(run).await?.len(), 2);
                        Ok(())
                    },
                )?
                .done()?;
        }
        live_on(&world, &lab, begun)?;
    }
    Ok(())
}

/// The first is answered, and ends; with its place kept the third begins only then.
fn live_on(world: &World, lab: &Lab, begun: &str) -> Tested {
    crate::support::live_in(world, lab, async |run| {
        run.settle().await;
        let page = run.executor.list(ListFilter::default(), None, 10).await?;
        let family = page.items.first().ok_or("it is there")?.id.family;
        run.executor
            .decide(ProcedureId::new(family, 1), &1_i64, by("a"))
            .await?;
        run.settle().await;
        let third = if begun.contains("c1") { "" } else { " c1 d1 e1" };
        assert_eq!(lab.line(), format!("{begun} a2{third}"));
        run.executor
            .decide(ProcedureId::new(family, 2), &1_i64, by("b"))
            .await?;
        run.pass(Duration::from_secs(1)).await;
        let status = run.executor.status(ProcedureId::root(family)).await?;
        assert_eq!(status.state, ProcedureState::Success);
        Ok(())
    })
}

#[test]
fn g_072_many_that_ask_are_named_and_counted() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let children = |count: usize| vec![asks(None); count];
        // More than the 1,000 that are named, in families of their own.
        for number in 0..3 {
            let mut list = children(500);
            list.iter_mut().for_each(|child| child.detached = true);
            submit(
                run,
                Planned(plan("r", [spawn(list), Act::Done(1)])),
                &format!("r{number}"),
            )
            .await?;
        }
        run.settle().await;
        let verdicts = undecided(run).await?;
        assert_eq!(verdicts.len(), 1_001);
        let more: Vec<&str> = verdicts.iter().filter_map(|verdict| verdict.fact("more")).collect();
        assert_eq!(more, ["500"]);
        let first = verdicts
            .iter()
            .find_map(|verdict| verdict.procedure)
            .ok_or("it is named")?;
        run.executor.decide(first, &1_i64, by("one")).await?;
        run.settle().await;
        let more = undecided(run).await?;
        let more: Vec<&str> = more.iter().filter_map(|verdict| verdict.fact("more")).collect();
        assert_eq!(more, ["499"]);
        Ok(())
    })
}

//! Why a procedure does not move: the chain of who waits for whom, link by link.

use std::future::IntoFuture;
use std::time::Duration;

use procession::errors::AskError;
use procession::health::{Particulars, QueuePosition, WaitingFor, WakeSource};
use procession::limits::{LockNeed, LockPath};
use procession::procedure::Timestamp;
use procession::status::{ListFilter, ProcedureState, WaitReason};
use procession::testkit::{FaultPlan, Run, Trouble, World};
use procession::{Children, Procedure, ProcedureId, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use super::kit::{Slow, at, links, live_in, set_up, the_verdict};
use crate::support::{
    Act, Holding, Lab, Limited, Plan, Planned, Tested, chain, enumerate, failing, plan, spawn, stuck,
};

/// Noon, in ms.
const NOON: u64 = 12 * 3_600_000;

fn sleeper() -> Plan {
    plan("a", [Act::SleepUntil(NOON), Act::Done(1)]).exclusive("t")
}

/// Returns a place in a queue, and the length of the queue.
fn place(position: Option<QueuePosition>) -> Option<(usize, usize)> {
    position.map(|position| (position.position, position.of))
}

fn parent() -> Plan {
    let child = plan("d", [Act::Done(2)]).exclusive("t");
    plan("b", [spawn([child]), Act::Done(3)])
}

async fn submit<P: Procedure>(run: &Run, procedure: P, key: &str) -> Result<ProcedureId, Trouble> {
    let handle = run
        .wait(run.executor.submit(procedure).key(key).into_future())
        .await??;
    run.settle().await;
    Ok(handle.id())
}

fn expected(a: ProcedureId, b: ProcedureId, c: ProcedureId) -> Vec<(ProcedureId, ProcedureId, WaitingFor)> {
    let d = ProcedureId::new(b.family, 1);
    vec![
        (c, b, WaitingFor::Permit("limited".into())),
        (b, d, WaitingFor::Latch),
        (d, a, WaitingFor::Lock("t".into())),
    ]
}

#[test]
fn e_075_explain_shows_the_chain() -> Tested {
    let lab = Lab::default();
    live_in(&World::new(), &lab, FaultPlan::none(), async |run| {
        let a = submit(run, Holding(sleeper()), "a").await?;
        run.pass(Duration::from_secs(1)).await;
        let b = submit(run, Limited(parent()), "b").await?;
        run.pass(Duration::from_secs(1)).await;
        let c = submit(run, Limited(chain("c", 1)), "c").await?;
        let explained = run.executor.explain(c).await?;
        assert_eq!(links(&explained), expected(a, b, c));
        let since: Vec<Timestamp> = explained.links.iter().map(|link| link.since).collect();
        assert_eq!(since, [at(2), at(1), at(1)]);
        let [end] = &explained.ends[..] else {
            return Err(format!("the chain has one end, not {:?}", explained.ends).into());
        };
        assert_eq!(
            (end.id, &end.until, end.since),
            (a, &WakeSource::Timer(Timestamp(NOON * 1_000)), at(0))
        );
        assert_eq!(
            (explained.reason.as_str(), place(explained.queue_position)),
            ("waits for a permit of limited", Some((1, 1)))
        );
        assert_eq!(
            (explained.state, explained.since),
            (ProcedureState::Initializing, at(2))
        );
        assert!(explained.deadlocks.is_empty() && !explained.truncated);
        let Some(Particulars::Permit(limit)) = explained.particulars else {
            return Err("it waits for a permit".into());
        };
        assert_eq!((limit.key.as_str(), limit.used, limit.limit), ("limited", 1, Some(1)));
        let of = async |id| Ok::<_, Trouble>(run.executor.explain(id).await?.particulars);
        let Some(Particulars::Children(children)) = of(b).await? else {
            return Err("it waits for its child".into());
        };
        assert_eq!((children.done, children.total, children.running), (0, 1, 1));
        assert_eq!(children.named, [ProcedureId::new(b.family, 1)]);
        let lock = Particulars::Lock {
            need: LockNeed::exclusive("t"),
            holders: vec![a],
        };
        assert_eq!(of(ProcedureId::new(b.family, 1)).await?, Some(lock));
        assert_eq!(of(a).await?, None, "it sleeps");

        let e = submit(run, Limited(chain("e", 1)), "e").await?;
        let explained = run.executor.explain(e).await?;
        assert_eq!(place(explained.queue_position), Some((2, 2)));
        assert_eq!(explained.links[0].to, c, "who is before it in the line is enough");
        assert_eq!(run.executor.verdicts().await?, []);
        Ok(())
    })
}

#[test]
fn e_075_explain_tells_what_is_lacked_now_and_not_what_was_told_once() -> Tested {
    let lab = Lab::default();
    live_in(&World::new(), &lab, FaultPlan::none(), async |run| {
        let waits = |name: &str| plan(name, [Act::Wait(name.to_owned(), None), Act::Done(1)]).exclusive(name);
        let a = submit(run, Holding(waits("a")), "a").await?;
        let b = submit(run, Holding(waits("b")), "b").await?;
        let both = ["a", "b"].map(LockNeed::exclusive);
        let c = submit(run, Planned(plan("c", [Act::Done(1)]).locks(both)), "c").await?;
        let lacks = async |path: &str, holder| -> Tested {
            let explained = run.executor.explain(c).await?;
            let (need, holders) = (LockNeed::exclusive(LockPath::parse(path)), vec![holder]);
            assert_eq!(explained.particulars, Some(Particulars::Lock { need, holders }));
            assert_eq!(explained.reason, format!("waits for the lock {path}"));
            Ok(())
        };
        lacks("a", a).await?;
        run.executor.signal(a, "a", &1).await?;
        run.wait(run.executor.outcome(a)).await??;
        run.settle().await;
        let told = run.executor.status(c).await?.wait;
        assert_eq!(told, Some(WaitReason::Lock("a".into())), "its row is not written anew");
        lacks("b", b).await?;
        run.executor.signal(b, "b", &1).await?;
        run.wait(run.executor.outcome(c)).await??;
        Ok(())
    })
}

#[test]
fn e_075_the_chain_resolves_in_its_order() -> Tested {
    let drive = async |lab: &Lab, run: &Run| {
        let a = submit(run, Holding(sleeper()), "a").await?;
        let b = submit(run, Limited(parent()), "b").await?;
        let c = submit(run, Limited(chain("c", 1)), "c").await?;
        if !lab.has("a2") {
            assert_eq!(links(&run.executor.explain(c).await?), expected(a, b, c));
        }
        for id in [c, b, a] {
            run.wait(run.executor.outcome(id)).await??;
        }
        Ok(())
    };
    let mut lines = Vec::new();
    let labs = std::cell::RefCell::new(&mut lines);
    let done = enumerate(Lab::default, set_up, drive, &[], |plain, crashed, crashes| {
        labs.borrow_mut().push(plain.line());
        plain.compare(crashed, crashes)
    })?;
    assert_eq!(lines[0], "a1 b1 a2 d1 b2 c1");
    // Three submissions, a1, b1, time, a2, the grant of d, d1, b2, the grant of c, c1.
    assert_eq!(done.commits, 12);
    Ok(())
}

/// Spawns one that is slow and one that fails.
#[derive(Serialize, Deserialize)]
struct Two;

impl Procedure for Two {
    const KIND: &'static str = "two";
    type Stage = u32;
    type Env = ();
    type Output = i64;

    fn first(&self) -> u32 {
        1
    }

    async fn execute(&mut self, stage: u32, _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        if stage == 2 {
            return Ok(Step::Done(0));
        }
        let children = Children::new().and(&Slow("n".to_owned()))?;
        let children = children.and(&Planned(failing("f", 2)))?.and(&Planned(asleep()))?;
        Ok(Step::Spawn { children, then: 2 })
    }
}

fn asleep() -> Plan {
    plan("w", [Act::Wait("never".to_owned(), None), Act::Done(1)])
}

#[test]
fn e_105_explain_says_for_which_stage_a_failing_family_waits() -> Tested {
    let lab = Lab::default();
    let kinds = |builder| set_up(&lab, builder).register::<Two>(());
    let drive = async |run: &Run| -> Result<(), Trouble> {
        let root = submit(run, Two, "k").await?;
        let member = |member| ProcedureId::new(root.family, member);
        run.until("one has failed", || lab.has("f2")).await?;
        run.pass(Duration::from_secs(61)).await;

        let verdict = the_verdict(run).await?;
        assert_eq!(
            (verdict.rule, verdict.procedure),
            (procession::health::Rule::Overrun, Some(member(1)))
        );
        assert_eq!(verdict.since, at(0), "since the stage was set going");
        assert_eq!(
            (verdict.fact("expected"), verdict.fact("time")),
            (Some("60s"), Some("61s"))
        );
        assert_eq!(
            (verdict.fact("stage"), verdict.fact("call")),
            (Some("Copy"), Some("runs"))
        );

        let explained = run.executor.explain(root).await?;
        assert_eq!(links(&explained), [(root, member(1), WaitingFor::Stage)]);
        assert_eq!(explained.ends[0].until, WakeSource::Stage("Copy".to_owned()));
        assert_eq!(explained.reason, "its rollback waits until none of its stages runs");
        let explained = run.executor.explain(member(3)).await?;
        assert_eq!(
            links(&explained),
            [
                (member(3), root, WaitingFor::Rollback),
                (root, member(1), WaitingFor::Stage)
            ],
            "one that was stopped waits for the rollback"
        );
        // Strangers on the same worker go on.
        let stranger = run
            .wait(run.executor.submit(Planned(chain("s", 3))).into_future())
            .await??;
        assert_eq!(run.wait(stranger.outcome()).await??, 7);

        lab.open("n");
        run.wait(run.executor.outcome(root)).await??;
        assert_eq!(stuck(run).await?, []);
        Ok(())
    };
    World::new().run(FaultPlan::none(), kinds, drive)?.done()
}

#[test]
fn e_075_explain_knows_every_sort_of_wait() -> Tested {
    let lab = Lab::default();
    live_in(&World::new(), &lab, FaultPlan::none(), async |run| {
        let event = submit(run, Planned(asleep()), "event").await?;
        let explained = run.executor.explain(event).await?;
        assert_eq!(explained.ends[0].until, WakeSource::Event("never".into(), None));
        assert_eq!(
            (explained.links.len(), explained.reason.as_str()),
            (0, "waits for the event never")
        );

        let slow = submit(run, Slow("s".to_owned()), "slow").await?;
        let explained = run.executor.explain(slow).await?;
        assert_eq!(explained.reason, "stage Copy runs");
        lab.open("s");
        run.wait(run.executor.outcome(slow)).await??;
        let explained = run.executor.explain(slow).await?;
        assert_eq!((explained.reason.as_str(), explained.ends.len()), ("it has ended", 0));

        let children = ["x", "y", "z"].map(|name| plan(name, [Act::Held(name.to_owned(), Box::new(Act::Done(1)))]));
        let wide = plan(
            "r",
            [
                Act::Spawn(children.to_vec(), procession::procedure::JoinPolicy::AllSucceeded, 1),
                Act::Done(1),
            ],
        );
        let wide = submit(run, Planned(wide), "wide").await?;
        let member = |member| ProcedureId::new(wide.family, member);
        let explained = run.executor.explain(member(3)).await?;
        let width = WaitingFor::Width;
        assert_eq!(
            links(&explained),
            [(member(3), member(2), width.clone()), (member(2), member(1), width)]
        );

        let unknown = ProcedureId::root(99);
        assert!(matches!(run.executor.explain(unknown).await, Err(AskError::Unknown(id)) if id == unknown));
        assert_eq!(run.executor.verdicts().await?, []);
        Ok(())
    })
}

#[test]
fn e_075_a_quarantined_holder_is_named() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let held = live_in(&world, &lab, FaultPlan::none(), async |run| {
        submit(run, Holding(sleeper()), "a").await
    })?;
    // The kind of the holder is gone; it keeps its lock.
    let without = |builder: procession::Builder| builder.register::<Planned>(lab.clone());
    let drive = async |run: &Run| -> Result<(), Trouble> {
        let explained = run.executor.explain(held).await?;
        assert!(
            explained.reason.starts_with("its family is quarantined: "),
            "{}",
            explained.reason
        );
        let waits = submit(run, Planned(plan("d", [Act::Done(2)]).exclusive("t")), "d").await?;
        let explained = run.executor.explain(waits).await?;
        assert_eq!(links(&explained), [(waits, held, WaitingFor::Lock("t".into()))]);
        assert_eq!(explained.ends[0].until, WakeSource::Operator(WaitReason::Quarantined));
        let verdict = the_verdict(run).await?;
        assert_eq!(
            (verdict.rule, verdict.procedure),
            (procession::health::Rule::Quarantined, Some(held))
        );
        assert!(verdict.fact("why").is_some_and(|why| why.contains("holding")));
        assert_eq!(run.executor.list(ListFilter::default(), None, 9).await?.items.len(), 2);
        Ok(())
    };
    world.run(FaultPlan::none(), without, drive)?.done()
}

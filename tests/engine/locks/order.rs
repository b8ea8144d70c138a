//! Who comes first, how long it is held, and that everything is granted at once or nothing.

use std::time::Duration;

use procession::Builder;
use procession::health::WaitingFor;
use procession::limits::LockNeed;
use procession::procedure::Timestamp;
use procession::testkit::{Enumeration, FaultPlan, Run, Trouble, World};

use super::kit::{at_rest, for_lock, held, holder, is_after, is_first_life, nothing_is_left, owners, submit, waiters};
use crate::lifecycle::kit::enumerate_in;
use crate::support::{Act, Holding, Lab, Limited, Planned, Tested, chain, kinds, plan, spawn};

/// Enumerates the crashes of a client of an engine where the limited kind has one permit.
fn enumerated(drive: impl AsyncFn(&Lab, &Run) -> Tested) -> Result<(Enumeration, Lab), Trouble> {
    let one_permit = |lab: &Lab, builder: Builder| kinds(lab, builder).limit("limited", 1);
    enumerate_in(Lab::default, one_permit, async |lab: &Lab, run: &Run| {
        drive(lab, run).await?;
        nothing_is_left(run).await
    })
}

#[test]
fn e_067_exclusive_is_first_come_first_served() -> Tested {
    let (done, lab) = enumerated(async |lab, run| {
        let mut handles = vec![submit(run, Planned(holder("r0", "t")), "r0").await?];
        for name in ["r1", "r2", "r3"] {
            handles.push(submit(run, Planned(chain(name, 1).exclusive("t")), name).await?);
        }
        run.settle().await;
        if is_first_life(run).await? {
            let ids: Vec<_> = handles.iter().map(procession::Handle::id).collect();
            assert_eq!(owners(run, "t").await?, &ids[..1]);
            assert_eq!(waiters(run, "t").await?, &ids[1..]);
        }
        lab.open("r0");
        for handle in &handles {
            run.wait(handle.outcome()).await??;
        }
        for pair in ["r01", "r11", "r21", "r31"].windows(2) {
            is_after(lab, pair[0], pair[1]);
        }
        Ok(())
    })?;
    assert_eq!(lab.line(), "r01 r11 r21 r31");
    assert_eq!(done.commits, 4 * 2 + 3);
    Ok(())
}

#[test]
fn a_restart_queues_up_in_the_order_of_the_commits_whatever_the_clock_did() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let set_up = |builder: Builder| kinds(&lab, builder);
    let queued = async |run: &Run, steps: bool| {
        let mut handles = vec![submit(run, Planned(holder("h", "t")), "h").await?];
        for (name, minute) in [("a", 60), ("b", 0), ("c", 30)] {
            if steps {
                run.world.clock.set_back_to(Timestamp(0));
                run.pass(Duration::from_mins(minute)).await;
            }
            handles.push(submit(run, Planned(chain(name, 1).exclusive("t")), name).await?);
            run.settle().await;
        }
        Ok::<_, Trouble>(handles)
    };
    world
        .run(FaultPlan::none(), set_up, async |run: &Run| {
            let handles = queued(run, true).await?;
            let waiting = [1, 2, 3].map(|place| handles[place].id());
            // One that hears of something meanwhile keeps its place.
            run.wait(run.executor.signal(waiting[0], "news", &1)).await??;
            run.settle().await;
            assert_eq!(waiters(run, "t").await?, waiting);
            Ok::<_, Trouble>(())
        })?
        .done()?;
    world
        .run(FaultPlan::none(), set_up, async |run: &Run| {
            let handles = queued(run, false).await?;
            lab.open("h");
            for handle in &handles {
                run.wait(handle.outcome()).await??;
            }
            Ok::<_, Trouble>(())
        })?
        .done()?;
    for pair in ["h1", "a1", "b1", "c1"].windows(2) {
        is_after(&lab, pair[0], pair[1]);
    }
    Ok(())
}

#[test]
fn the_queue_is_in_the_order_of_the_commits_through_crashes() -> Tested {
    let (done, lab) = enumerated(async |lab, run| {
        let mut handles = vec![submit(run, Planned(holder("h", "t")), "h").await?];
        for (name, minute) in [("a", 60), ("b", 0), ("c", 30)] {
            // Once the first has ended, time would evict its result.
            if !lab.is_open("h") {
                run.world.clock.set_back_to(Timestamp(0));
                run.pass(Duration::from_mins(minute)).await;
            }
            handles.push(submit(run, Planned(chain(name, 1).exclusive("t")), name).await?);
            run.settle().await;
        }
        lab.open("h");
        for handle in &handles {
            run.wait(handle.outcome()).await??;
        }
        for pair in ["h1", "a1", "b1", "c1"].windows(2) {
            is_after(lab, pair[0], pair[1]);
        }
        Ok(())
    })?;
    assert_eq!(lab.line(), "h1 a1 b1 c1");
    // Four submissions, four stages, and a grant to each that waited.
    assert_eq!(done.commits, 4 + 4 + 3);
    Ok(())
}

#[test]
fn e_069_a_lock_of_a_stage_goes_round() -> Tested {
    let (done, lab) = enumerated(async |lab, run| {
        let a = plan("a", [held("a", Act::Next), Act::Done(7)]).exclusive("t");
        let a = submit(run, Planned(a), "a").await?;
        let b = submit(run, Planned(chain("b", 1).exclusive("t")), "b").await?;
        lab.open("a");
        run.wait(a.outcome()).await??;
        run.wait(b.outcome()).await??;
        Ok(())
    })?;
    assert_eq!(lab.line(), "a1 b1 a2");
    // Two submissions, three stages, and a grant after waiting for each of them.
    assert_eq!(done.commits, 2 + 3 + 2);
    Ok(())
}

#[test]
fn e_069_a_lock_for_life_is_held_through_all_waits() -> Tested {
    let (done, lab) = enumerated(async |lab, run| {
        let acts = [
            Act::Sleep(3_600_000),
            Act::Wait("go".to_owned(), None),
            spawn([chain("c", 1)]),
            Act::Done(7),
        ];
        let a = submit(run, Holding(plan("a", acts).exclusive("t")), "a").await?;
        let b = submit(run, Planned(chain("b", 1).exclusive("t")), "b").await?;
        if at_rest(run, a.id()).await?.ended.is_none() {
            assert_eq!(owners(run, "t").await?, [a.id()]);
            assert_eq!(at_rest(run, a.id()).await?.locks, [LockNeed::exclusive("t")]);
            assert_eq!(at_rest(run, b.id()).await?.wait, for_lock("t"));
            // It comes while A sleeps, or later.
            run.wait(run.executor.signal(a.id(), "go", &1).key("go")).await??;
        }
        run.wait(a.outcome()).await??;
        run.wait(b.outcome()).await??;
        is_after(lab, "a4", "b1");
        Ok(())
    })?;
    assert_eq!(lab.line(), "a1 a2 a3 c1 a4 b1");
    // Two submissions, six stages, the signal, the time, and B's grant.
    assert_eq!(done.commits, 2 + 6 + 1 + 1 + 1);
    Ok(())
}

#[test]
fn e_069_what_follows_at_once_is_a_stage_of_its_own_as_well() -> Tested {
    // A finds its event, or has no children: the next stage follows, and those who wait come first.
    for act in [Act::Wait("go".to_owned(), None), spawn([])] {
        let a = plan("a", [held("a", act), Act::Done(7)]).exclusive("t");
        let (done, lab) = enumerated(async |lab, run| {
            let a = submit(run, Planned(a.clone()), "a").await?;
            if at_rest(run, a.id()).await?.ended.is_none() {
                run.wait(run.executor.signal(a.id(), "go", &1).key("go")).await??;
            }
            let b = submit(run, Planned(chain("b", 1).exclusive("t")), "b").await?;
            lab.open("a");
            run.wait(a.outcome()).await??;
            run.wait(b.outcome()).await??;
            Ok(())
        })?;
        assert_eq!(lab.line(), "a1 b1 a2");
        // Two submissions and a signal, three stages, two grants after waiting.
        assert_eq!(done.commits, 3 + 3 + 2);
    }
    Ok(())
}

#[test]
fn e_071_together_or_not_at_all() -> Tested {
    let (done, lab) = enumerated(async |lab, run| {
        let stranger = submit(run, Planned(holder("s", "y")), "s").await?;
        let both = [LockNeed::exclusive("x"), LockNeed::exclusive("y")];
        let a = plan("a", [held("a", Act::Done(7))]).locks(both.clone());
        let a = submit(run, Limited(a), "a").await?;
        let status = at_rest(run, a.id()).await?;
        if !lab.is_open("s") {
            assert_eq!(
                (status.wait, status.locks, status.holds),
                (for_lock("y"), vec![], false)
            );
            assert_eq!(status.since, status.submitted);
            let explained = run.executor.explain(a.id()).await?;
            let [link] = &explained.links[..] else {
                return Err(format!("one owner is in the way, not {:?}", explained.links).into());
            };
            assert_eq!(
                (link.to, &link.why, link.since),
                (stranger.id(), &WaitingFor::Lock("y".into()), status.since)
            );
            assert_eq!(owners(run, "y").await?, [stranger.id()]);
            assert_eq!(waiters(run, "y").await?, [a.id()]);
            assert_eq!(owners(run, "x").await?, []);
            let limits = run.executor.limits().await?;
            assert!(limits.iter().all(|limit| limit.used == 0), "{limits:?}");
        }
        lab.open("s");
        run.wait(stranger.outcome()).await??;
        let status = at_rest(run, a.id()).await?;
        if status.ended.is_none() {
            assert_eq!((status.wait, status.locks, status.holds), (None, both.to_vec(), true));
        }
        lab.open("a");
        run.wait(a.outcome()).await??;
        Ok(())
    })?;
    assert_eq!(lab.line(), "s1 a1");
    assert_eq!(done.commits, 2 * 2 + 1);
    Ok(())
}

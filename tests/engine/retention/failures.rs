//! Failures stay: for two weeks, in a list that takes them off once somebody acknowledges them, however it crashes.

use std::time::Duration;

use procession::errors::AskError;
use procession::messages::Operate;
use procession::operate::{BypassAs, BypassScope, OperatorRequest, Verb};
use procession::procedure::{KindSettings, Timestamp};
use procession::provider::Space;
use procession::status::{CauseKind, FailureCursor, ListFilter, ProcedureState, fingerprint};
use procession::testkit::{FaultPlan, Run, Trouble, World};
use procession::views::FailuresView;
use procession::{Builder, ProcedureId};

use crate::support::{Act, Lab, Once, Planned, Tested, each_crash, end, kinds, live, plan};

const DAY: Duration = Duration::from_hours(24);

/// Fails with this text, and is undone.
fn fails(text: &str) -> Planned {
    Planned(plan("f", [Act::Next, Act::Fail(text.to_owned())]))
}

async fn listed(run: &Run) -> Result<Vec<u64>, Trouble> {
    let page = run.executor.failures(None, 100).await?;
    assert_eq!((page.next, page.unreadable), (None, 0));
    Ok(page.items.iter().map(|entry| entry.family).collect())
}

async fn exists(run: &Run, family: u64) -> Result<bool, Trouble> {
    match run.executor.status(ProcedureId::root(family)).await {
        Ok(_) => Ok(true),
        Err(AskError::Unknown(_)) => Ok(false),
        Err(other) => Err(other.into()),
    }
}

#[test]
fn failures_stay_for_two_weeks_and_successes_do_not() -> Tested {
    live(&Lab::default(), async |run: &Run| {
        end(run, fails("no stock for order 7"), "a").await?.err();
        run.pass(Duration::from_secs(60)).await;
        end(run, Planned(plan("d", [Act::Done(1)])), "b").await??;
        end(run, fails("no stock for order 12"), "c").await?.err();
        let page = run.executor.failures(None, 1).await?;
        let [newest] = &page.items[..] else {
            return Err("one was asked for".into());
        };
        assert_eq!(
            (newest.family, newest.state),
            (3, ProcedureState::RolledBack),
            "the newest is first"
        );
        assert_eq!(
            (newest.cause, newest.text.as_str(), newest.print),
            (
                CauseKind::Failed,
                "no stock for order 12",
                fingerprint("no stock for order 7")
            )
        );
        assert_eq!(
            (newest.origin, newest.key.as_ref().map(|key| key.as_str())),
            (ProcedureId::root(3), Some("c"))
        );
        let after = Some(FailureCursor {
            ended: newest.ended,
            family: 3,
        });
        assert_eq!(page.next, after);
        let rest = run.executor.failures(after, 1).await?;
        assert_eq!(rest.items.iter().map(|entry| entry.family).collect::<Vec<_>>(), [1]);
        run.pass(Duration::from_hours(1)).await;
        assert_eq!(
            [exists(run, 1).await?, exists(run, 2).await?, exists(run, 3).await?],
            [true, false, true]
        );
        run.pass(13 * DAY).await;
        assert_eq!(listed(run).await?, [3, 1]);
        run.pass(DAY).await;
        assert_eq!((listed(run).await?, exists(run, 1).await?), (Vec::new(), false));
        Ok(())
    })
}

#[test]
fn an_acknowledged_failure_is_listed_no_more_and_stays() -> Tested {
    live(&Lab::default(), async |run: &Run| {
        end(run, fails("down"), "a").await?.err();
        end(run, fails("down"), "b").await?.err();
        run.executor.acknowledge(ProcedureId::root(1)).await?;
        run.executor.acknowledge(ProcedureId::root(1)).await?;
        assert_eq!(listed(run).await?, [2]);
        let by = OperatorRequest::new("ann", "known");
        let verb = Verb::Acknowledge(ProcedureId::root(2));
        run.executor.operate(Operate { verb, by }).await?;
        assert_eq!(listed(run).await?, Vec::<u64>::new());
        run.pass(13 * DAY).await;
        assert!(
            exists(run, 1).await? && exists(run, 2).await?,
            "post-mortems come later"
        );
        run.pass(DAY).await;
        assert!(!exists(run, 1).await? && !exists(run, 2).await?);
        Ok(())
    })
}

#[test]
fn what_somebody_ended_on_purpose_is_no_failure() -> Tested {
    live(&Lab::default(), async |run: &Run| {
        for key in ["a", "b"] {
            let waits = plan("w", [Act::Next, Act::Wait("go".to_owned(), None), Act::Done(1)]);
            let submission = run.executor.submit(Planned(waits)).key(key);
            run.wait(std::future::IntoFuture::into_future(submission)).await??;
        }
        run.settle().await;
        let by = || OperatorRequest::new("ann", "not needed");
        let verb = Verb::Abort(ProcedureId::root(1));
        run.executor.operate(Operate { verb, by: by() }).await?;
        let verb = Verb::Bypass(ProcedureId::root(2), BypassScope::Alone, BypassAs::Failed);
        run.executor.operate(Operate { verb, by: by() }).await?;
        run.settle().await;
        let states: Vec<ProcedureState> = run
            .executor
            .list(ListFilter::default(), None, 10)
            .await?
            .items
            .iter()
            .map(|row| row.state)
            .collect();
        assert_eq!(states, [ProcedureState::RolledBack, ProcedureState::Failed]);
        assert_eq!(listed(run).await?, Vec::<u64>::new());
        run.pass(Duration::from_hours(1)).await;
        assert!(exists(run, 1).await?, "it can be found as long as a failure");
        Ok(())
    })
}

#[test]
fn a_kind_may_say_how_long_its_failures_stay() -> Tested {
    let lab = Lab::default();
    let brief = KindSettings::default().keep_after_failure(Duration::from_secs(60));
    let set_up = |builder: Builder| {
        builder
            .keep_failures(2 * DAY)
            .register::<Planned>(lab.clone())
            .register_as::<Once>("once", brief, lab.clone())
    };
    let drive = async |run: &Run| {
        end(run, fails("down"), "a").await?.err();
        end(run, Once(fails("down").0), "b").await?.err();
        run.pass(Duration::from_secs(60)).await;
        assert_eq!([exists(run, 1).await?, exists(run, 2).await?], [true, false]);
        run.pass(2 * DAY - Duration::from_secs(61)).await;
        assert!(exists(run, 1).await?);
        run.pass(Duration::from_secs(1)).await;
        assert!(!exists(run, 1).await?);
        Ok(())
    };
    World::new().run(FaultPlan::none(), set_up, drive)?.done()
}

#[test]
fn failures_are_grouped_by_kind_and_by_what_they_say() -> Tested {
    live(&Lab::default(), async |run: &Run| {
        for (number, text) in ["timeout after 31 ms", "refused", "timeout after 7 ms"]
            .into_iter()
            .enumerate()
        {
            end(run, fails(text), &format!("key-{number}")).await?.err();
            run.pass(Duration::from_secs(60)).await;
        }
        let page = run.executor.failures(None, 100).await?;
        let view = FailuresView::of(page.items, false, run.now());
        let groups: Vec<(&str, usize, &str)> = view
            .items
            .iter()
            .map(|group| (group.text.as_str(), group.count, group.newest.as_str()))
            .collect();
        assert_eq!(groups, [("timeout after 7 ms", 2, "3.0"), ("refused", 1, "2.0")]);
        Ok(())
    })
}

#[test]
fn the_list_is_right_however_it_crashes() -> Tested {
    let done = each_crash(
        |_: &World| Lab::default(),
        |lab, builder| kinds(lab, builder).keep_failures(DAY),
        async |_, run| {
            // What was evicted before the crash is not made again.
            if run.now() < Timestamp(1_000_000) {
                let mut families = Vec::new();
                for key in ["a", "b"] {
                    end(run, fails("down"), key).await?.err();
                    let found = run.executor.find(key).await?.ok_or("its result is kept")?;
                    families.push(found.id().family);
                }
                run.executor.acknowledge(ProcedureId::root(families[0])).await?;
                run.settle().await;
                assert_eq!(listed(run).await?, families[1..]);
            }
            run.pass(2 * DAY).await;
            let left = run.world.disk.dump(&Space::Finished);
            assert_eq!(left.len(), 0, "{left:?}");
            Ok(())
        },
        |_, _| Ok(()),
    )?;
    assert!(done.commits >= 10, "{done:?}");
    Ok(())
}

/// Kept for ever is not failed, and is no entry of the list that cannot be read.
#[test]
fn what_is_kept_for_ever_is_no_failure() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let for_ever = |builder: Builder| {
        kinds(&lab, builder)
            .retention(Duration::MAX, Duration::MAX)
            .keep_failures(Duration::MAX)
    };
    world
        .run(FaultPlan::none(), for_ever, async |run| {
            end(run, Planned(plan("d", [Act::Done(1)])), "a").await??;
            end(run, fails("no stock"), "b").await?.err();
            let kept = run.executor.submit(Planned(plan("e", [Act::Done(1)])));
            run.wait(kept.key_for("c", Duration::MAX).into_future()).await??;
            run.pass(DAY * 1_000).await;
            assert_eq!(listed(run).await?, [2]);
            let all = run.executor.list(ListFilter::default(), None, 10).await?;
            assert_eq!((all.items.len(), all.unreadable.len()), (3, 0));
            Ok(())
        })?
        .done()
}

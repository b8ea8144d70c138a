//! Order, first appends, idle streams, batches.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join_all;
use procession::flow::{AppendError, StreamState};
use procession::testkit::{FaultPlan, Run, World};

use super::kit::{append, crash_at, rest, states, the_stream};
use crate::kit::{Lab, Tested, done, kinds, live, seeds};

/// Eight callers append so many nodes each, one at a time.
async fn eight_callers(run: &Run, each: u32) -> Tested {
    let callers = (0..8).map(async |caller: u32| {
        let stream = run.executor.stream("invoices", "customer-17")?;
        for number in 0..each {
            stream.append(done(&format!("{caller}.{number}"))).await?;
        }
        Ok::<_, procession::testkit::Trouble>(())
    });
    for appended in join_all(callers).await {
        appended?;
    }
    Ok(())
}

fn in_order(lab: &Lab, each: u32) {
    let calls = lab.calls();
    assert_eq!(calls.len(), 8 * each as usize, "each once");
    assert!(
        calls
            .iter()
            .zip(calls.iter().skip(1))
            .all(|(one, two)| one.place < two.place),
        "calls follow the places"
    );
    let mut next: BTreeMap<String, u32> = BTreeMap::new();
    for call in calls {
        let (caller, number) = call.name.split_once('.').unwrap_or_default();
        let expected = next.entry(caller.to_owned()).or_default();
        assert_eq!(number.parse(), Ok(*expected), "each caller's nodes keep its order");
        *expected += 1;
    }
    assert_eq!(lab.most(), 0, "none was held");
}

#[test]
fn f_044_order() -> Tested {
    for (seed, each) in (1..=20).map(|seed| (seed, 40)).chain([(0, 1_000)]) {
        let lab = Lab::default();
        let plan = match seed {
            0 => FaultPlan::none(),
            seed => FaultPlan::none().late(seed, 5),
        };
        let commits = World::new()
            .run(
                plan,
                |builder| kinds(&lab, builder),
                async |run: &Run| {
                    let before = run.store.commits();
                    eight_callers(run, each).await?;
                    run.settle().await;
                    Ok(run.store.commits() - before)
                },
            )?
            .done()?;
        in_order(&lab, each);
        assert_eq!(commits, 2 + 2 * 8 * u64::from(each), "seed {seed}");
    }
    Ok(())
}

#[test]
fn f_045_fifty_first_appends_at_once() -> Tested {
    let fifty = async |run: &Run| -> Tested {
        let callers = (0..50).map(async |caller: u32| {
            let stream = run.executor.stream("invoices", "customer-17")?;
            stream.append(done(&format!("n{caller}"))).await?;
            Ok::<_, procession::testkit::Trouble>(())
        });
        for appended in join_all(callers).await {
            appended?;
        }
        Ok(())
    };
    for seed in 1..=200 {
        let lab = Lab::default();
        let late = FaultPlan::none().late(seed, 9);
        let drive = async |run: &Run| {
            let before = run.store.commits();
            fifty(run).await?;
            run.settle().await;
            assert_eq!(run.executor.snapshot().await?.live_families, 1, "one root");
            Ok(run.store.commits() - before)
        };
        let commits = World::new().run(late, |builder| kinds(&lab, builder), drive)?.done()?;
        assert_eq!((commits, lab.calls().len()), (102, 50), "seed {seed}");
    }
    let commits = crash_at(
        |commits| (1..=commits).collect(),
        kinds,
        async |_, run| {
            fifty(run).await?;
            rest(run).await?;
            let status = the_stream(run)?.status().await?;
            assert_eq!((status.ended, status.waiting), (50, 0));
            Ok(())
        },
    )?;
    assert_eq!(commits, 102);
    Ok(())
}

#[test]
fn f_046_append_to_an_idle_stream() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let stream = the_stream(run)?;
        append(&stream, [done("n1"), done("n2"), done("n3")]).await?;
        run.settle().await;
        let status = stream.status().await?;
        assert!(status.is_idle() && status.ended == 3, "{status:?}");
        let before = run.store.commits();
        run.pass(Duration::from_secs(86_400)).await;
        let snapshot = run.executor.snapshot().await?;
        assert_eq!((run.store.commits() - before, snapshot.actors), (0, 0));
        stream.append(done("n4")).await?;
        assert_eq!(
            states(run, &stream).await?,
            "n1 SUCCESS, n2 SUCCESS, n3 SUCCESS, n4 SUCCESS"
        );
        assert_eq!(run.store.commits() - before, 2);
        Ok(())
    })
}

#[test]
fn f_046_an_append_that_meets_the_last_commit() -> Tested {
    for seed in seeds(1_000) {
        let lab = Lab::default();
        let turns = u32::try_from(seed % 97)?;
        World::new()
            .run(
                FaultPlan::none().late(seed, 7),
                |builder| kinds(&lab, builder),
                async |run: &Run| {
                    let stream = the_stream(run)?;
                    stream.append(done("n1")).await?;
                    for _ in 0..turns {
                        tokio::task::yield_now().await;
                    }
                    stream.append(done("n2")).await?;
                    assert_eq!(states(run, &stream).await?, "n1 SUCCESS, n2 SUCCESS", "seed {seed}");
                    Ok(())
                },
            )?
            .done()?;
        assert_eq!(lab.line(), "n1 n2");
    }
    Ok(())
}

#[test]
fn f_047_batches_of_at_most_100() -> Tested {
    let drive = async |lab: &Lab, run: &Run| -> Tested {
        let (stream, other) = (the_stream(run)?, run.executor.stream("invoices", "customer-18")?);
        let before = run.store.commits();
        // The other stream appends a node after each batch.
        let batches = async {
            let names = (0..250).map(|number| format!("n{number:03}"));
            stream.extend(names.map(|name| done(&name))).await
        };
        let others = async {
            for place in ["o1", "o2", "o3"] {
                other.append(done(place)).await?;
            }
            Ok::<_, AppendError>(())
        };
        let (places, others) = futures::future::join(batches, others).await;
        others?;
        assert_eq!(places?.len(), 250);
        rest(run).await?;
        if before == 1 && run.store.commits() - before == 255 + 8 {
            let names: Vec<String> = lab.calls().into_iter().map(|call| call.name).collect();
            let (own, others): (Vec<_>, Vec<_>) = names.iter().partition(|name| name.starts_with('n'));
            assert!(own.is_sorted() && own.len() == 250 && others.len() == 3);
            let last = names.iter().rposition(|name| name.starts_with('o')).unwrap_or_default();
            assert!(last < 240, "the other's nodes run in between: {last}");
        }
        Ok(())
    };
    let commits = crash_at(|_| (1..=12).collect(), kinds, drive)?;
    assert_eq!(commits, 255 + 8);

    let lab = Lab::default();
    live(&lab, async |run| {
        let stream = the_stream(run)?;
        let many = (0..101).map(|number| done(&format!("n{number}")));
        let refused = stream.append_all(many).await;
        let text = refused.map_err(|error| error.to_string());
        assert_eq!(text, Err("append of 101 nodes, at most 100: use extend".to_owned()));
        assert_eq!(stream.status().await?.state, StreamState::Init);
        // One that never ends is read as far as it takes to see that.
        let endless = (0..).map(|number: u32| {
            assert!(number < 1_000, "it is read on");
            done(&format!("n{number}"))
        });
        let refused = stream.append_all(endless).await;
        assert!(
            matches!(refused, Err(AppendError::TooMany { limit: 100, .. })),
            "{refused:?}"
        );
        Ok(())
    })
}

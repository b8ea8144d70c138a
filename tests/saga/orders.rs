//! Sagas with several members, in whatever order the store answers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::LocalBoxFuture;
use procession::saga::{Call, Fault, SagaStatus, Sagas, Service, Settled};
use procession::testkit::{FaultPlan, Trouble};
use procession::{Executor, ProcedureId};
use serde_json::{Value, json};

use crate::Tested;
use crate::kit::{Ground, status};

/// Runs a test once for each seed of a store whose answers are late.
fn with_seeds(
    files: &[&str],
    machine: &str,
    rules: &Value,
    test: impl AsyncFn(&Ground, &procession::testkit::Run) -> Tested,
) -> Tested {
    for seed in 0..200 {
        let ground = Ground::new(files, machine)?;
        ground.rules(rules.clone())?;
        let ran = ground.live_with(&ground.sagas, FaultPlan::none().late(seed, 8), async |run| {
            test(&ground, run).await
        });
        ran.map_err(|why| -> Trouble { format!("seed {seed}: {why}").into() })?;
    }
    Ok(())
}

#[test]
fn g_022_the_same_elements_start() -> Tested {
    let files = [
        "simple_statelang_with_loop.json",
        "simple_statelang_with_compensation.json",
    ];
    let rules = json!([{ "takes_ms": 10 }]);
    with_seeds(&files, "simpleLoopTestStateMachine", &rules, async |ground, run| {
        let collection: Vec<u32> = (0..10).collect();
        let saga = ground
            .start(run, "the saga", json!({ "a": 1, "collection": collection }))
            .await?;
        run.pass(Duration::from_secs(1)).await;
        assert_eq!(status(&saga).await?, (SagaStatus::Success, None));
        let log = ground.double.log();
        let begun = |state: &str| {
            let of = log.iter().filter(|call| call.state == state);
            let mut begun: Vec<usize> = of.filter_map(|call| call.index).collect();
            begun.sort_unstable();
            begun
        };
        assert_eq!(begun("FirstState"), (0..8).collect::<Vec<_>>());
        assert_eq!(begun("SecondState"), (0..6).collect::<Vec<_>>());
        assert_eq!(ground.double.outside().most(), 3);
        Ok(())
    })
}

/// The calls of a saga so far, in order.
fn calls(ground: &Ground) -> Vec<String> {
    ground.double.log().into_iter().map(|call| call.state).collect()
}

#[test]
fn g_063_branches_come_to_the_same_end() -> Tested {
    let rules = json!([{ "takes_ms": 10 }]);
    with_seeds(&["fork.json"], "fork", &rules, async |ground, run| {
        let saga = ground.start(run, "the saga", json!({ "a": 1 })).await?;
        run.pass(Duration::from_secs(1)).await;
        let settled = saga.settled().await?;
        let Settled::Ended(outcome) = settled else {
            return Err(format!("it has settled otherwise: {settled:?}").into());
        };
        assert_eq!((outcome.status, outcome.compensation), (SagaStatus::Success, None));
        assert_eq!(Value::from(outcome.context), json!({ "a": 1 }));
        let calls = calls(ground);
        let place = |state: &str| calls.iter().position(|call| call == state);
        assert_eq!(calls.len(), 6, "{calls:?}");
        let in_order = [
            ["S1", "A1"],
            ["A1", "A2"],
            ["S1", "B1"],
            ["B1", "B2"],
            ["A2", "C"],
            ["B2", "C"],
            ["A1", "B1"],
        ];
        for [earlier, later] in in_order {
            assert!(place(earlier) < place(later), "{calls:?}");
        }
        Ok(())
    })
}

#[test]
fn g_063_it_settles_once_nothing_moves() -> Tested {
    let rules = json!([{ "state": "A1", "fault": { "class": "x.Boom" } }, { "takes_ms": 10 }]);
    with_seeds(&["fork.json"], "fork", &rules, async |ground, run| {
        let saga = ground.start(run, "the saga", json!({})).await?;
        let settled = run.wait(saga.settled()).await??;
        let Settled::Rests(rests) = settled else {
            return Err(format!("it has settled otherwise: {settled:?}").into());
        };
        let at: Vec<&str> = rests.iter().map(|rest| rest.state.as_str()).collect();
        assert_eq!(at, ["A1"]);
        let states = saga.instance().await?.states;
        let ended: Vec<&str> = states.iter().map(|state| state.state.as_str()).collect();
        assert!(ended.contains(&"B2"), "the other branch has not ended: {ended:?}");
        assert!(!calls(ground).contains(&"C".to_owned()));
        Ok(())
    })
}

/// The states that each saga has called, in order.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<BTreeMap<ProcedureId, Vec<String>>>>);

impl Calls {
    fn add(&self, call: &Call) {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        calls.entry(call.saga()).or_default().push(call.state().to_owned());
    }

    fn of(&self, saga: ProcedureId) -> Vec<String> {
        let calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        calls.get(&saga).cloned().unwrap_or_default()
    }
}

impl Service for Calls {
    fn methods(&self) -> &[&str] {
        &[]
    }

    fn has_method(&self, _: &str) -> bool {
        true
    }

    fn call(&self, _: &str, _: Vec<Value>, call: Call) -> LocalBoxFuture<'_, Result<Value, Fault>> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            self.add(&call);
            tokio::task::yield_now().await;
            Ok(true.into())
        })
    }
}

/// The same machine on the threads of a real engine, with calls that give up their turn: one worker, and eight.
#[test]
fn g_063_one_worker_and_eight_come_to_the_same() -> Tested {
    const SAGAS: usize = 50;
    for workers in [1, 8] {
        let calls = Calls::default();
        let fork = crate::runner::text_of("fork.json")?;
        let sagas = Sagas::builder()
            .json("fork.json", fork)
            .service("svc", calls.clone())
            .build()?;
        let directory = tempfile::tempdir()?;
        actix_rt::System::new().block_on(async {
            let builder = Executor::builder(directory.path())
                .workers(workers)
                .sagas(sagas.clone());
            let executor = builder.start().await?;
            let mut handles = Vec::new();
            for number in 0..SAGAS {
                let params = json!({ "a": number });
                handles.push((
                    number,
                    executor.submit(sagas.machine("fork")?.params(&params)?).await?.id(),
                ));
            }
            for (number, id) in handles {
                let saga = executor.saga(id);
                assert!(matches!(saga.settled().await?, Settled::Ended(_)));
                let outcome = saga.outcome().await?;
                assert_eq!((outcome.status, outcome.compensation), (SagaStatus::Success, None));
                assert_eq!(Value::from(outcome.context), json!({ "a": number }));
                let of_it = calls.of(id);
                let place = |state: &str| of_it.iter().position(|call| call == state);
                assert_eq!(of_it.len(), 6, "{workers} workers: {of_it:?}");
                for [earlier, later] in [
                    ["S1", "A1"],
                    ["A1", "A2"],
                    ["S1", "B1"],
                    ["B1", "B2"],
                    ["A2", "C"],
                    ["B2", "C"],
                ] {
                    assert!(place(earlier) < place(later), "{workers} workers: {of_it:?}");
                }
            }
            executor.drain(Duration::from_secs(10)).await?;
            Ok::<_, Box<dyn std::error::Error>>(())
        })?;
    }
    Ok(())
}

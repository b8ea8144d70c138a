//! A root that failed runs again: as another, with the value that it was submitted with.

use std::future::IntoFuture;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use procession::errors::{AskError, NotNow, UpgradeError};
use procession::operate::{Act as Acted, OperatorRequest, Verb};
use procession::procedure::{Child, Old, Timestamp};
use procession::provider::Space;
use procession::status::{ListFilter, ProcedureState, WaitReason};
use procession::submit::Label;
use procession::testkit::{FaultPlan, Run, Trouble, World};
use procession::views::{revealed_values_of, values_of};
use procession::{Builder, Children, Procedure, ProcedureId, StageContext, StageError, Step};
use procession_actors::journal::codec;
use procession_actors::journal::keys::SUBMITTED;
use procession_kernel::SUBMITTED_IN_ENTRY_MAX;
use serde::{Deserialize, Serialize};

use crate::support::{Act, Lab, Planned, Tested, each_crash, end, plan};

/// Largest value, in bytes, where that is tried.
const LARGE: usize = 1_024;

const DAY: Duration = Duration::from_hours(24);

/// Who called *reserve*, and the notes of earlier stages that it found in its value.
type Seen = (ProcedureId, Vec<String>);

/// Every call of *reserve*.
#[derive(Clone, Debug, Default)]
struct Shop(Arc<Mutex<Vec<Seen>>>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Order {
    item: String,
    notes: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Stage {
    Look,
    Reserve,
    Pay,
}

impl Order {
    fn of(item: &str) -> Self {
        Self {
            item: item.to_owned(),
            notes: Vec::new(),
        }
    }
}

impl Procedure for Order {
    const KIND: &'static str = "order";
    type Stage = Stage;
    type Env = Shop;
    type Output = u32;

    fn first(&self) -> Stage {
        Stage::Look
    }

    async fn execute(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        match stage {
            // Leaves its value as it is.
            Stage::Look => Ok(Step::Next(Stage::Reserve)),
            Stage::Reserve => {
                let mut seen = cx.env().0.lock().map_err(|_| StageError::fail("poisoned"))?;
                seen.push((cx.id(), self.notes.clone()));
                if self.item == "large" {
                    self.notes.push("x".repeat(2 * LARGE));
                    return Ok(Step::Next(Stage::Pay));
                }
                self.notes.push("reserved".to_owned());
                Ok(if self.item == "held" {
                    Step::Wait {
                        event: "go".to_owned(),
                        timeout: None,
                        then: Stage::Pay,
                    }
                } else {
                    Step::Next(Stage::Pay)
                })
            }
            Stage::Pay if self.item == "free" => Ok(Step::Done(1)),
            Stage::Pay => {
                self.notes.push("lost with the failure".to_owned());
                Err(StageError::fail("the payment service is down"))
            }
        }
    }

    /// The newest value of one that is undone is no longer that of its stages.
    async fn rollback(&mut self, _: Stage, _: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        self.notes.push("undone".to_owned());
        Ok(())
    }
}

fn by() -> OperatorRequest {
    OperatorRequest::new("ann", "the service is back")
}

async fn failures(run: &Run) -> Result<Vec<u64>, Trouble> {
    let page = run.executor.failures(None, 100).await?;
    Ok(page.items.iter().map(|entry| entry.family).collect())
}

fn refused(answer: Result<procession::operate::Operated, AskError>, expected: NotNow) -> Result<(), Trouble> {
    match answer {
        Err(AskError::NotNow { kind, .. }) if kind == expected => Ok(()),
        other => Err(format!("{other:?} is not refused as {expected:?}").into()),
    }
}

fn live(drive: impl AsyncFn(&Run) -> Result<(), Trouble>) -> Tested {
    let set_up = |builder: Builder| builder.register::<Order>(Shop::default());
    World::new().run(FaultPlan::none(), set_up, drive)?.done()
}

#[test]
fn a_failed_root_runs_again_with_its_first_value_however_it_crashes() -> Tested {
    let done = each_crash(
        |_: &World| Shop::default(),
        |shop, builder| builder.register::<Order>(shop.clone()),
        async |_, run| {
            // What was evicted before the crash is not made again.
            if run.now() < Timestamp(1_000_000) {
                let order = run.executor.submit(Order::of("book")).key("a");
                let order = order.named("a book").label("customer", "4711").priority(7);
                let first = run.wait(order.into_future()).await??;
                run.wait(first.outcome()).await?.err().ok_or("it does not fail")?;
                let again = run.executor.run_again(first.id(), by()).await?;
                let second = again.submitted.ok_or("it does not run again")?;
                assert_ne!(second, first.id());
                run.settle().await;
                let repeated = run.executor.run_again(first.id(), by()).await?;
                assert_eq!(repeated.submitted, Some(second), "it runs again once");
                run.settle().await;
                assert_eq!(failures(run).await?, [second.family], "the first is acknowledged");
                let status = run.executor.status(second).await?;
                assert_eq!(status.state, ProcedureState::RolledBack);
                let key = format!("again {}", first.id());
                assert_eq!(
                    (status.key.as_ref().map(|key| key.as_str()), status.name.as_deref()),
                    (Some(key.as_str()), Some("a book"))
                );
                assert_eq!((status.priority, status.labels.get("customer")), (7, Some("4711")));
                let all = run.executor.list(ListFilter::default(), None, 10).await?.items;
                assert_eq!(all.len(), 2, "{all:?}");
            }
            run.pass(15 * DAY).await;
            let left = run.world.disk.dump(&Space::Payloads);
            assert_eq!(left.len(), 0, "{left:?}");
            Ok(())
        },
        |shop, _| {
            let seen = shop.0.lock().map_err(|_| "poisoned")?;
            let changed = seen.iter().find(|(_, notes)| !notes.is_empty());
            changed.map_or(Ok(()), |call| {
                Err(format!("{call:?} does not begin with the first value").into())
            })
        },
    )?;
    assert!(done.commits >= 15, "{done:?}");
    Ok(())
}

#[test]
fn a_root_that_was_aborted_in_its_last_stage_runs_again_with_its_first_value_however_it_crashes() -> Tested {
    let done = each_crash(
        |_: &World| Lab::default(),
        |lab, builder| builder.register::<Planned>(lab.clone()),
        async |lab, run| {
            let last = plan("a", [Act::Held("go".to_owned(), Box::new(Act::Done(1)))]);
            let first = run
                .wait(run.executor.submit(Planned(last)).key("a").into_future())
                .await??;
            run.until("the last stage runs", || lab.has("a1")).await?;
            match run.executor.abort(first.id(), by().key("stop")).await {
                // What was aborted before a crash may have ended.
                Ok(_) | Err(AskError::Finished { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            // The stage changes the value, and succeeds too late.
            lab.open("go");
            run.settle().await;
            let again = run.executor.run_again(first.id(), by()).await?;
            let second = again.submitted.ok_or("it does not run again")?;
            run.settle().await;
            let states = [first.id(), second].map(|id| run.executor.status(id));
            let [aborted, again] = states;
            assert_eq!(aborted.await?.state, ProcedureState::RolledBack);
            assert_eq!(again.await?.state, ProcedureState::Success);
            Ok(())
        },
        |lab, _| {
            let calls = lab.calls();
            let changed = calls.iter().find(|call| !call.undo && !call.value.is_empty());
            changed.map_or(Ok(()), |call| {
                Err(format!("{call:?} does not begin with the first value").into())
            })
        },
    )?;
    assert!(done.commits >= 5, "{done:?}");
    Ok(())
}

#[test]
fn a_value_that_was_refused_or_undone_is_not_the_first_one() -> Tested {
    let shop = Shop::default();
    let set_up = |builder: Builder| builder.max_payload(LARGE).register::<Order>(shop.clone());
    let drive = async |run: &Run| {
        end(run, Order::of("large"), "a").await?.err();
        let first = ProcedureId::root(1);
        let left: Order = run.executor.value(first).await?.ok_or("its value is kept")?;
        // The stage that failed is undone as well as the one before it.
        assert_eq!(left.notes, ["undone", "undone"], "an undo is the first that changed it");
        let again = run.executor.run_again(first, by()).await?;
        run.settle().await;
        let seen = shop.0.lock().map_err(|_| "poisoned")?.clone();
        let second = again.submitted.ok_or("it does not run again")?;
        assert_eq!(seen, [(first, Vec::new()), (second, Vec::new())]);
        Ok(())
    };
    World::new().run(FaultPlan::none(), set_up, drive)?.done()
}

#[test]
fn a_large_first_value_has_a_key_of_its_own_and_runs_again_as_a_small_one_does() -> Tested {
    live(async |run: &Run| {
        let large = "long".repeat(SUBMITTED_IN_ENTRY_MAX / 4);
        for (item, key) in [("book", "a"), (large.as_str(), "b")] {
            end(run, Order::of(item), key).await?.err();
        }
        let keys = run.world.disk.dump(&Space::Payloads);
        let own: Vec<_> = keys.iter().filter(|(key, _)| key.last() == Some(&SUBMITTED)).collect();
        assert_eq!(own.len(), 1, "{own:?}");
        for (root, item) in [(1, "book"), (2, large.as_str())] {
            let again = run.executor.run_again(ProcedureId::root(root), by()).await?;
            run.settle().await;
            let second = again.submitted.ok_or("it does not run again")?;
            let ended: Order = run.executor.value(second).await?.ok_or("its value is kept")?;
            assert_eq!(ended.item, item);
            assert_eq!(ended.notes, ["reserved", "undone", "undone", "undone"]);
        }
        run.pass(15 * DAY).await;
        for space in [Space::Payloads, Space::History] {
            let left = run.world.disk.dump(&space);
            assert_eq!(left.len(), 0, "{left:?}");
        }
        Ok(())
    })
}

#[test]
fn an_export_lists_the_first_value_wherever_it_is_kept() -> Tested {
    live(async |run: &Run| {
        let large = "long".repeat(SUBMITTED_IN_ENTRY_MAX / 4);
        for (item, key) in [("book", "a"), (large.as_str(), "b")] {
            end(run, Order::of(item), key).await?.err();
        }
        for (root, item) in [(1, "book"), (2, large.as_str())] {
            let export = run.executor.export(ProcedureId::root(root)).await?;
            let sizes = values_of(&export);
            let parts: Vec<&str> = sizes.iter().map(|value| value.part.as_str()).collect();
            assert_eq!(parts, ["payload", "submitted"]);
            let values: Vec<_> = revealed_values_of(&export).collect();
            let submitted = values.last().and_then(|value| value.revealed.as_ref());
            let submitted = submitted.ok_or("it is not shown")?;
            assert_eq!(submitted.value, serde_json::json!({ "item": item, "notes": [] }));
            let bytes = codec::encode_user(&Order::of(item))?.len();
            assert_eq!(sizes.last().map(|value| value.bytes), Some(bytes));
        }
        Ok(())
    })
}

/// Changes its value only behind its children.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Crowd {
    children: usize,
    met: bool,
}

impl Procedure for Crowd {
    const KIND: &'static str = "crowd";
    type Stage = Stage;
    type Env = ();
    type Output = u32;

    fn first(&self) -> Stage {
        Stage::Look
    }

    async fn execute(&mut self, stage: Stage, _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        match stage {
            Stage::Look if self.met => Err(StageError::fail("this is not the first value")),
            Stage::Look => {
                let mut children = Children::new();
                for _ in 0..self.children {
                    children = children.child(Child::new(&Order::of("free"))?);
                }
                Ok(Step::Spawn {
                    children,
                    then: Stage::Reserve,
                })
            }
            Stage::Reserve => {
                self.met = true;
                Ok(Step::Next(Stage::Pay))
            }
            Stage::Pay => Err(StageError::fail("the payment service is down")),
        }
    }

    async fn rollback(&mut self, _: Stage, _: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        Ok(())
    }
}

#[test]
fn a_first_value_that_is_replaced_behind_many_children_runs_again() -> Tested {
    let set_up = |builder: Builder| builder.register::<Order>(Shop::default()).register::<Crowd>(());
    let drive = async |run: &Run| {
        let crowd = Crowd {
            children: 30,
            met: false,
        };
        let first = run.wait(run.executor.submit(crowd).into_future()).await??;
        run.wait(first.outcome()).await?.err().ok_or("it does not fail")?;
        let history = run.executor.history(first.id()).await?;
        assert!(history.len() > 90, "{history:?}");
        assert!(history.iter().all(|entry| entry.submitted.is_none()), "{history:?}");
        let again = run.executor.run_again(first.id(), by()).await?;
        let second = again.submitted.ok_or("it does not run again")?;
        let failed = run.wait(run.executor.handle::<Crowd>(second).outcome()).await?;
        let failed = failed.err().ok_or("it does not fail")?.to_string();
        assert!(failed.contains("the payment service"), "{failed}");
        Ok(())
    };
    World::new().run(FaultPlan::none(), set_up, drive)?.done()
}

/// An order of later code, which has a price.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Priced {
    item: String,
    price: u32,
}

impl Procedure for Priced {
    const KIND: &'static str = Order::KIND;
    const VERSION: u16 = Order::VERSION + 1;
    const OLDEST: u16 = Order::VERSION;
    type Stage = Stage;
    type Env = ();
    type Output = u32;

    fn first(&self) -> Stage {
        Stage::Pay
    }

    async fn execute(&mut self, _: Stage, _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Ok(Step::Done(self.price))
    }

    async fn rollback(&mut self, _: Stage, _: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        Ok(())
    }

    fn upgrade(_: u16, old: Old<'_>) -> Result<Self, UpgradeError> {
        let Order { item, notes } = old.decode()?;
        let price = 7 + u32::try_from(notes.len()).unwrap_or(u32::MAX);
        Ok(Self { item, price })
    }
}

#[test]
fn the_first_value_is_upgraded_when_later_code_runs_it_again() -> Tested {
    let world = World::new();
    let before = |builder: Builder| builder.register::<Order>(Shop::default());
    let fails = async |run: &Run| {
        end(run, Order::of("book"), "a").await?.err();
        Ok(())
    };
    world.run(FaultPlan::none(), before, fails)?.done()?;
    let after = |builder: Builder| builder.register::<Priced>(());
    let runs = async |run: &Run| {
        let again = run.executor.run_again(ProcedureId::root(1), by()).await?;
        let second = again.submitted.ok_or("it does not run again")?;
        let price = run.wait(run.executor.handle::<Priced>(second).outcome()).await??;
        assert_eq!(price, 7, "without the notes of stages");
        let repeated = run.executor.run_again(ProcedureId::root(1), by()).await?;
        assert_eq!(repeated.submitted, Some(second));
        Ok(())
    };
    world.run(FaultPlan::none(), after, runs)?.done()
}

#[test]
fn the_audit_says_which_root_runs_which_again() -> Tested {
    live(async |run: &Run| {
        end(run, Order::of("book"), "a").await?.err();
        let first = ProcedureId::root(1);
        let dry = run.executor.run_again(first, by().dry_run()).await?;
        assert!(dry.number.is_none() && dry.plan.is_some(), "{dry:?}");
        assert_eq!(failures(run).await?, [1], "a plan does nothing");
        let again = run.executor.run_again(first, by().key("once")).await?;
        let entries = run.executor.audit(None, 10).await?;
        let [entry] = &entries[..] else {
            return Err(format!("{entries:?}").into());
        };
        assert_eq!((entry.target, entry.submitted), (Some(first), again.submitted));
        assert_eq!(entry.act, Some(Acted::Operate(Verb::RunAgain(first))));
        let repeated = run.executor.run_again(first, by().key("once")).await?;
        assert_eq!(
            (repeated.number, repeated.submitted),
            (Some(entry.number), again.submitted)
        );
        Ok(())
    })
}

#[test]
fn what_runs_again_waits_for_its_permit() -> Tested {
    live(async |run: &Run| {
        end(run, Order::of("book"), "a").await?.err();
        run.executor.set_limit("order", Some(1), by()).await?;
        let holder = run.wait(run.executor.submit(Order::of("held")).into_future()).await??;
        run.settle().await;
        let again = run.executor.run_again(ProcedureId::root(1), by()).await?;
        let second = again.submitted.ok_or("it does not run again")?;
        run.settle().await;
        let wait = run.executor.status(second).await?.wait;
        assert!(matches!(wait, Some(WaitReason::Permit(_))), "{wait:?}");
        run.executor.signal(holder.id(), "go", &()).await?;
        run.settle().await;
        assert_eq!(run.executor.status(second).await?.state, ProcedureState::RolledBack);
        let limits = run.executor.limits().await?;
        assert!(limits.iter().all(|limit| limit.used == 0), "{limits:?}");
        Ok(())
    })
}

#[test]
fn only_a_failed_root_whose_value_is_kept_runs_again() -> Tested {
    live(async |run: &Run| {
        end(run, Order::of("free"), "a").await??;
        refused(
            run.executor.run_again(ProcedureId::root(1), by()).await,
            NotNow::NotFailed,
        )?;
        let waits = run.wait(run.executor.submit(Order::of("held")).into_future()).await??;
        run.settle().await;
        refused(run.executor.run_again(waits.id(), by()).await, NotNow::NotEnded)?;
        let unknown = run.executor.run_again(ProcedureId::root(99), by()).await;
        assert!(matches!(unknown, Err(AskError::Unknown(_))), "{unknown:?}");
        let children = Children::new().child(Child::new(&Order::of("book"))?);
        let parent = run.executor.submit(Order::of("book")).children(children);
        let parent = run.wait(parent.into_future()).await??;
        run.settle().await;
        refused(run.executor.run_again(parent.id(), by()).await, NotNow::ValueNotKept)?;
        assert_eq!(failures(run).await?, [parent.id().family]);
        // Any member names its family.
        let by_name = Label::new("customer", "4711");
        let order = run.executor.submit(Order::of("book")).label("customer", "4711");
        let order = run.wait(order.into_future()).await??;
        run.settle().await;
        let member = ProcedureId::new(order.id().family, 3);
        assert!(run.executor.run_again(member, by()).await?.submitted.is_some());
        let filter = ListFilter {
            labels: vec![by_name],
            ..ListFilter::default()
        };
        assert_eq!(run.executor.list(filter, None, 10).await?.items.len(), 2);
        Ok(())
    })
}

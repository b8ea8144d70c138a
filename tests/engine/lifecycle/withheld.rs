//! Nothing that rests on a commit is seen before its receipt.

use std::future::IntoFuture;
use std::sync::{Arc, Mutex, PoisonError};

use procession::errors::SubmitError;
use procession::status::{ListFilter, ProcedureState};
use procession::testkit::{Fault, FaultPlan, Run, World};
use procession::{Builder, Executor, Procedure, ProcedureId};

use super::kit::{Changes, at_rest, enumerate_in, submit};
use crate::support::{Act, Holding, Lab, Limited, Plan, Tested, chain, kinds, plan, spawn};

/// What was seen, in order: answers and calls.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(what.into());
    }

    /// Returns all that was seen, calls and committed changes included, sorted.
    fn all(&self, lab: &Lab, changes: &Changes) -> Vec<String> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        all.extend(lab.calls().iter().map(|call| format!("call {}", call.short())));
        // The start's own commit has the number 1 and is not counted.
        all.extend(
            changes
                .all()
                .iter()
                .map(|change| format!("change {}", change.seq.0 - 1)),
        );
        all.sort();
        all
    }
}

/// Everything that is seen, by the commit that it rests on.
const RESTS_ON: [(u64, &[&str]); 9] = [
    (1, &["answer r", "call r1"]),
    // The refusal is decided when both that came with it are, so it rests on both.
    (2, &["answer s", "refusal"]),
    (3, &["call c1"]),
    (4, &["read c"]),
    (5, &["answer go", "call c2"]),
    (6, &["call r2"]),
    (7, &["outcome r"]),
    (8, &["call s1"]),
    (9, &["outcome s"]),
];

fn expected_before(commit: u64) -> Vec<String> {
    let mut expected = Vec::new();
    for (number, seen) in RESTS_ON.iter().filter(|(number, _)| *number < commit) {
        expected.push(format!("change {number}"));
        expected.extend(seen.iter().map(|seen| (*seen).to_owned()));
    }
    expected.sort();
    expected
}

/// It holds the only permit, or the lock, while its child waits for `go`.
fn root() -> Plan {
    let child = plan("c", [Act::Wait("go".into(), None), Act::Done(7)]);
    plan("r", [spawn([child]), Act::Done(1)])
}

/// All want one lock, and hold it for life.
fn locked(plan: Plan) -> Holding {
    Holding(plan.exclusive("t"))
}

fn set_up(lab: &Lab, builder: Builder) -> Builder {
    kinds(lab, builder).limit("limited", 1)
}

/// The clients, all at once; each notes every answer that it gets.
fn clients<P: Procedure>(
    executor: &Executor,
    seen: &Seen,
    changes: &Changes,
    kind: fn(Plan) -> P,
) -> Vec<tokio::task::JoinHandle<Result<(), String>>> {
    let submitted = |name: &'static str, plan: Plan| {
        let (executor, seen) = (executor.clone(), seen.clone());
        actix_rt::spawn(async move {
            let submit = executor.submit(kind(plan)).key(name).into_future();
            let handle = submit.await.map_err(|error| error.to_string())?;
            seen.note(format!("answer {name}"));
            handle.outcome().await.map_err(|error| error.to_string())?;
            seen.note(format!("outcome {name}"));
            Ok(())
        })
    };
    let first = submitted("r", root());
    let refused = {
        let (executor, seen) = (executor.clone(), seen.clone());
        actix_rt::spawn(async move {
            let refused = executor.submit(kind(chain("x", 1))).key("r").into_future().await;
            match refused {
                Err(SubmitError::KeyConflict { .. }) => seen.note("refusal"),
                Err(error) => return Err(error.to_string()),
                Ok(_) => return Err("it was accepted".to_owned()),
            }
            Ok(())
        })
    };
    let second = submitted("s", chain("s", 1));
    let (executor, seen, changes) = (executor.clone(), seen.clone(), changes.clone());
    let signals = actix_rt::spawn(async move {
        let child = ProcedureId::new(1, 1);
        while !changes.states(child).contains(&ProcedureState::WaitingTimeout) {
            tokio::task::yield_now().await;
        }
        executor.status(child).await.map_err(|error| error.to_string())?;
        seen.note("read c");
        executor
            .signal(child, "go", &1_i64)
            .await
            .map_err(|error| error.to_string())?;
        seen.note("answer go");
        Ok(())
    });
    vec![first, refused, second, signals]
}

/// Questions asked while a receipt is withheld; each notes its answer.
fn questions(executor: &Executor, answered: &Seen) -> Vec<tokio::task::JoinHandle<()>> {
    macro_rules! ask {
        ($name:literal, |$executor:ident| $question:expr) => {{
            let ($executor, answered) = (executor.clone(), answered.clone());
            actix_rt::spawn(async move {
                // Whether it is an answer or a refusal, it rests on what was decided.
                $question.await.ok();
                answered.note($name);
            })
        }};
    }
    let id = ProcedureId::root(1);
    vec![
        ask!("status", |executor| executor.status(id)),
        ask!("tree", |executor| executor.tree(id)),
        ask!("history", |executor| executor.history(id)),
        ask!("list", |executor| executor.list(ListFilter::default(), None, 10)),
        ask!("limits", |executor| executor.limits()),
        ask!("locks", |executor| executor.locks()),
        ask!("snapshot", |executor| executor.snapshot()),
        ask!("unknown", |executor| executor.status(ProcedureId::root(99))),
        ask!("abort", |executor| executor.abort(
            ProcedureId::root(99),
            procession::operate::OperatorRequest::new("me", "a test")
        )),
    ]
}

async fn withheld<P: Procedure>(run: &Run, lab: &Lab, commit: u64, kind: fn(Plan) -> P) -> Tested {
    let changes = Changes::watch(run).await?;
    let (seen, answered) = (Seen::default(), Seen::default());
    let clients = clients(&run.executor, &seen, &changes, kind);
    run.settle().await;
    assert!(run.store.is_withholding(), "commit {commit}");
    assert_eq!(seen.all(lab, &changes), expected_before(commit), "commit {commit}");
    let questions = questions(&run.executor, &answered);
    run.settle().await;
    assert_eq!(
        answered.all(&Lab::default(), &Changes::default()),
        Vec::<String>::new(),
        "commit {commit}"
    );
    assert_eq!(seen.all(lab, &changes), expected_before(commit), "commit {commit}");
    run.store.release_receipts();
    for client in clients {
        run.wait(client).await???;
    }
    let asked = questions.len();
    for question in questions {
        run.wait(question).await??;
    }
    run.settle().await;
    assert_eq!(answered.all(&Lab::default(), &Changes::default()).len(), asked);
    assert_eq!(seen.all(lab, &changes), expected_before(u64::MAX), "commit {commit}");
    Ok(())
}

fn nothing_is_seen_early<P: Procedure>(kind: fn(Plan) -> P) -> Tested {
    for (commit, _) in RESTS_ON {
        let lab = Lab::default();
        let plan = FaultPlan::at(commit, Fault::Withhold);
        World::new()
            .run(
                plan,
                |builder| set_up(&lab, builder),
                async |run| withheld(run, &lab, commit, kind).await,
            )?
            .done()?;
    }
    Ok(())
}

/// Commits of the client below.
pub(crate) const COMMITS: u64 = 9;

/// The family, its signal and the stranger, by a client that repeats itself after a crash.
pub(crate) async fn client<P: Procedure>(run: &Run, kind: fn(Plan) -> P) -> Tested {
    let first = submit(run, kind(root()), "r").await?;
    let second = submit(run, kind(chain("s", 1)), "s").await?;
    let child = ProcedureId::new(first.id().family, 1);
    if at_rest(run, child).await?.ended.is_none() {
        run.wait(run.executor.signal(child, "go", &1_i64).key("go")).await??;
    }
    run.wait(first.outcome()).await??;
    run.wait(second.outcome()).await??;
    Ok(())
}

fn the_same_under_every_crash<P: Procedure>(kind: fn(Plan) -> P) -> Tested {
    let drive = async |_: &Lab, run: &Run| client(run, kind).await;
    let (done, lab) = enumerate_in(Lab::default, set_up, drive)?;
    assert_eq!((done.commits, lab.line().as_str()), (COMMITS, "r1 c1 c2 r2 s1"));
    Ok(())
}

#[test]
fn e_003_nothing_is_seen_before_its_receipt() -> Tested {
    nothing_is_seen_early(Limited)
}

#[test]
fn e_003_nor_where_a_lock_is_waited_for() -> Tested {
    nothing_is_seen_early(locked)
}

#[test]
fn e_003_the_same_under_every_crash() -> Tested {
    the_same_under_every_crash(Limited)?;
    the_same_under_every_crash(locked)
}

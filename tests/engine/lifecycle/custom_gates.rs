//! Gates whose rules the user wrote: what a rule is asked, when and where, and what its answers lead to.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use procession::health::{Rule, WakeSource};
use procession::operate::OperatorRequest;
use procession::procedure::{Child, ChildOutcome, JoinPolicy, JoinVerdict};
use procession::status::{CauseKind, ProcedureState, WaitReason};
use procession::testkit::{Ended, Fault, FaultPlan, Run, World};
use procession::{Builder, Children, Procedure, ProcedureId, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use super::join_custom::Spying;
use super::kit::{enumerate_in, submit};
use crate::support::{Call, Final, Lab, Tested, chain, failing, kinds};

/// One call of a rule: the test that it belongs to, the siblings that it saw, which of them had ended, and its thread.
#[derive(Clone)]
struct Asked {
    test: String,
    siblings: Vec<u32>,
    ended: usize,
    thread: ThreadId,
}

static ASKED: Mutex<Vec<Asked>> = Mutex::new(Vec::new());

/// Returns the calls of the rules of one test.
fn asked(test: &str) -> Vec<Asked> {
    let asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    asked.iter().filter(|asked| asked.test == test).cloned().collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum Says {
    /// Met by one failure, or by successes alone.
    OneFailed,
    /// Never.
    NotYet,
    /// Panics.
    Panics,
    /// Says after each end that it can never be met.
    Never,
}

/// A child behind a gate with a rule of its own.
#[derive(Clone, Serialize, Deserialize)]
struct Guarded {
    test: String,
    says: Says,
}

impl Procedure for Guarded {
    const KIND: &'static str = "guarded";
    const ROLLBACK: bool = false;
    type Stage = u32;
    type Env = Lab;
    type Output = i64;

    fn first(&self) -> u32 {
        1
    }

    async fn execute(&mut self, stage: u32, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        cx.env().called(cx.id(), call("d", stage, cx.attempt()));
        Ok(Step::Done(9))
    }

    fn gate(&self, before: &[ChildOutcome]) -> JoinVerdict {
        let (failed, succeeded) = (
            before.iter().filter(|child| child.failed()).count(),
            before.iter().filter(|child| child.succeeded()).count(),
        );
        let mut asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
        asked.push(Asked {
            test: self.test.clone(),
            siblings: before.iter().map(|child| child.id.member).collect(),
            ended: failed + succeeded,
            thread: thread::current().id(),
        });
        drop(asked);
        match self.says {
            Says::OneFailed if failed > 0 || succeeded == before.len() => JoinVerdict::Met,
            Says::OneFailed | Says::NotYet => JoinVerdict::Pending,
            Says::Panics => panic!("the rule is wrong"),
            Says::Never => JoinVerdict::Unmeetable,
        }
    }
}

/// Spawns b, c, and d after both, and goes on when all have ended.
#[derive(Clone, Serialize, Deserialize)]
struct Graph {
    d: Guarded,
    b_fails: bool,
    or_wait: bool,
}

impl Procedure for Graph {
    const KIND: &'static str = "graph";
    type Stage = u32;
    type Env = Lab;
    type Output = i64;

    fn first(&self) -> u32 {
        1
    }

    async fn execute(&mut self, stage: u32, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        cx.env().called(cx.id(), call("r", stage, cx.attempt()));
        if stage == 2 {
            for child in cx.children() {
                let cause = child.cause.as_ref().map(|cause| cause.text.as_str());
                cx.env().note(format!("{} {} {cause:?}", child.id.member, child.state));
            }
            return Ok(Step::Done(1));
        }
        let b = if self.b_fails { failing("b", 1) } else { chain("b", 1) };
        let d = Child::new(&self.d)?.after([0, 1]).opens(JoinPolicy::Custom);
        let children = Children::new()
            .and(&Final(b))?
            .and(&Final(chain("c", 1)))?
            .child(if self.or_wait { d.or_wait() } else { d })
            .join(JoinPolicy::AllFinished);
        Ok(Step::Spawn { children, then: 2 })
    }
}

fn call(name: &str, stage: u32, attempt: u32) -> Call {
    Call {
        name: name.to_owned(),
        stage,
        undo: false,
        attempt,
        value: Vec::new(),
    }
}

fn graph(test: &str, says: Says) -> Graph {
    let test = test.to_owned();
    Graph {
        d: Guarded { test, says },
        b_fails: true,
        or_wait: false,
    }
}

fn set_up(lab: &Lab, builder: Builder) -> Builder {
    let builder = kinds(lab, builder).register::<Graph>(lab.clone());
    builder.register::<Guarded>(lab.clone())
}

async fn ended(run: &Run, graph: &Graph) -> Tested {
    let handle = submit(run, graph.clone(), "k").await?;
    assert_eq!(run.wait(handle.outcome()).await??, 1);
    Ok(())
}

const D: ProcedureId = ProcedureId::new(1, 3);

#[test]
fn f_006_a_custom_gate() -> Tested {
    let pending = "3 RolledBack Some(\"its gate can no longer open: all children before it have ended, and its own rule \
                   is still pending\")";
    let panicked = "3 RolledBack Some(\"its gate can no longer open: gate panicked: the rule is wrong\")";
    let never = "3 RolledBack Some(\"its gate can no longer open: its own rule says so\")";
    let cases = [
        (Says::OneFailed, true, 7, "3 Success None"),
        (Says::OneFailed, false, 7, "3 Success None"),
        (Says::NotYet, true, 6, pending),
        (Says::NotYet, false, 6, pending),
        (Says::Panics, true, 6, panicked),
        (Says::Never, true, 6, never),
    ];
    for (says, b_fails, commits, seen) in cases {
        let test = format!("enumerated {says:?} {b_fails}");
        let graph = Graph {
            b_fails,
            ..graph(&test, says)
        };
        let drive = async |_: &Lab, run: &Run| ended(run, &graph).await;
        let (done, lab) = enumerate_in(Lab::default, set_up, drive)?;
        assert_eq!(done.commits, commits, "{test}");
        let runs = usize::from(says == Says::OneFailed);
        assert_eq!((lab.count("d1"), lab.count("r2")), (runs, 1), "{test}: {}", lab.line());
        assert_eq!(lab.noted().last().map(String::as_str), Some(seen), "{test}");
        let asked = asked(&test);
        assert!(asked.iter().all(|asked| asked.siblings == [1, 2]), "both, in order");
        assert!(asked.iter().all(|asked| asked.ended > 0), "after an end");
    }
    Ok(())
}

#[test]
fn f_006_a_custom_gate_is_asked_again_after_a_restart() -> Tested {
    for (says, state) in [
        (Says::OneFailed, ProcedureState::Success),
        (Says::NotYet, ProcedureState::RolledBack),
        (Says::Panics, ProcedureState::RolledBack),
    ] {
        // Submission, r1 and b are on disk. The fourth commit, the ruling's or that of c, is lost.
        let test = format!("restarted {says:?}");
        let (world, lab, graph) = (World::new(), Lab::default(), graph(&test, says));
        let drive = async |run: &Run| {
            ended(run, &graph).await?;
            Ok(run.executor.status(D).await?.state)
        };
        let first = world.run(
            FaultPlan::at(4, Fault::CrashBefore),
            |builder| set_up(&lab, builder),
            drive,
        )?;
        assert!(matches!(first, Ended::Crashed));
        let before = asked(&test).len();
        let second = world.run(FaultPlan::none(), |builder| set_up(&lab, builder), drive)?;
        assert_eq!(second.done()?, state, "{test}");
        let again = asked(&test);
        assert!(again.len() > before, "{test}: it was not asked again");
        assert!(again.iter().all(|asked| asked.siblings == [1, 2] && asked.ended > 0));
        assert_eq!(lab.count("d1"), usize::from(says == Says::OneFailed));
    }
    Ok(())
}

#[test]
fn f_006_the_rule_never_runs_on_the_supervisors_thread() -> Tested {
    let (lab, supervisor) = (Lab::default(), Arc::new(Mutex::new(None)));
    let clock = Spying(Arc::clone(&supervisor));
    let threads = |builder: Builder| set_up(&lab, builder).workers(1).clock(Arc::new(clock));
    World::new()
        .run(FaultPlan::none(), threads, async |run| {
            // The supervisor is the next to read the clock, for its decision on this.
            *supervisor.lock().map_err(|_| "the clock panicked")? = None;
            let handle = run.executor.submit(graph("threads", Says::OneFailed)).await?;
            let supervisor = *supervisor.lock().map_err(|_| "the clock panicked")?;
            assert_eq!(handle.await?, 1);
            run.executor.drain(Duration::from_secs(60)).await?;
            let asked = asked("threads");
            assert!(!asked.is_empty() && supervisor.is_some());
            assert!(asked.iter().all(|asked| Some(asked.thread) != supervisor));
            Ok(())
        })?
        .done()
}

fn ann() -> OperatorRequest {
    OperatorRequest::new("ann", "it was looked at").key("once")
}

#[test]
fn f_006_it_waits_for_a_person_and_is_let_go_on() -> Tested {
    for says in [Says::NotYet, Says::Panics, Says::Never] {
        let test = format!("waits {says:?}");
        let graph = Graph {
            or_wait: true,
            ..graph(&test, says)
        };
        let drive = async |_: &Lab, run: &Run| {
            let handle = submit(run, graph.clone(), "k").await?;
            run.settle().await;
            run.wait(run.executor.retry_now(D, ann())).await??;
            assert_eq!(run.wait(handle.outcome()).await??, 1);
            Ok(())
        };
        let (done, lab) = enumerate_in(Lab::default, set_up, drive)?;
        // Submission, r1, b, c, retry, d, r2: what the rule says is no commit.
        assert_eq!((done.commits, lab.count("d1")), (7, 1), "{test}");
    }
    Ok(())
}

#[test]
fn f_006_one_verdict_says_why_it_waits_for_a_person() -> Tested {
    let lab = Lab::default();
    let graph = Graph {
        or_wait: true,
        ..graph("verdict", Says::NotYet)
    };
    let drive = async |run: &Run| {
        let handle = submit(run, graph.clone(), "k").await?;
        run.settle().await;
        let status = run.executor.status(D).await?;
        assert_eq!(status.wait, Some(WaitReason::Gate));
        let verdicts = run.executor.verdicts().await?;
        let why = "all children before it have ended, and its own rule is still pending";
        let [verdict] = verdicts.as_slice() else {
            return Err(format!("{verdicts:?}").into());
        };
        assert_eq!((verdict.rule, verdict.procedure), (Rule::Undecided, Some(D)));
        assert_eq!(verdict.fact("cause"), Some(why));
        let ends = run.executor.explain(D).await?.ends;
        let until: Vec<_> = ends.iter().map(|end| &end.until).collect();
        assert!(
            matches!(until.as_slice(), [WakeSource::Operator(WaitReason::Gate)]),
            "{until:?}"
        );
        run.wait(run.executor.retry_now(D, ann())).await??;
        assert_eq!(run.wait(handle.outcome()).await??, 1);
        assert_eq!(run.executor.verdicts().await?, []);
        Ok(())
    };
    World::new()
        .run(FaultPlan::none(), |builder| set_up(&lab, builder), drive)?
        .done()
}

#[test]
fn f_006_the_cause_names_the_sibling_that_failed() -> Tested {
    let lab = Lab::default();
    let drive = async |run: &Run| {
        ended(run, &graph("blame", Says::Never)).await?;
        let status = run.executor.status(D).await?;
        let cause = status.cause.ok_or("it has a cause")?;
        assert_eq!(
            (cause.kind, cause.origin),
            (CauseKind::GateShut, ProcedureId::new(1, 1))
        );
        assert_eq!(status.before, [ProcedureId::new(1, 1), ProcedureId::new(1, 2)]);
        Ok(())
    };
    World::new()
        .run(FaultPlan::none(), |builder| set_up(&lab, builder), drive)?
        .done()
}

//! The table of transitions: scenarios of all its sections take no other, and each of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::future::IntoFuture;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix::prelude::*;
use procession::operate::{BypassAs, BypassScope, OperatorRequest, PauseScope};
use procession::procedure::JoinPolicy;
use procession::status::{ChangeFeed, ProcedureState};
use procession::testkit::{Run, Trouble};
use procession::{Handle, Procedure, ProcedureId};

use crate::support::{Act, Final, Lab, Plan, Planned, Tested, Tidy, UndoAct, chain, failing, live, plan, spawn};

type State = ProcedureState;

/// Where each procedure was last seen, and the transitions taken, each with the first who took it.
#[derive(Default)]
struct Seen {
    at: BTreeMap<ProcedureId, State>,
    taken: BTreeMap<(State, State), ProcedureId>,
    scenarios: Vec<&'static str>,
}

#[derive(Clone, Default)]
struct Record(Arc<Mutex<Seen>>);

impl Record {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Actor for Record {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(100_000);
    }
}

impl Handler<ChangeFeed> for Record {
    type Result = ();

    fn handle(&mut self, feed: ChangeFeed, _: &mut Self::Context) {
        match feed {
            ChangeFeed::From(_) => {}
            ChangeFeed::Change(change) => {
                let mut seen = self.seen();
                for row in &change.rows {
                    if let Some(from) = seen.at.insert(row.id, row.state) {
                        seen.taken.entry((from, row.state)).or_insert(row.id);
                    }
                }
            }
            ChangeFeed::Lagged(from) => panic!("changes after {from} were left out"),
        }
    }
}

/// The scenarios' stage: who runs them, and what is noted.
struct Stage<'a> {
    run: &'a Run,
    lab: &'a Lab,
    record: &'a Record,
}

fn by() -> OperatorRequest {
    OperatorRequest::new("ann", "a test")
}

fn waits(name: &str) -> Plan {
    plan(name, [Act::Wait("never".to_owned(), None), Act::Done(1)])
}

fn held(name: &str, then: Act) -> Plan {
    plan(name, [Act::Held(name.to_owned(), Box::new(then))])
}

impl Stage<'_> {
    fn play(&self, number: &'static str) {
        self.record.seen().scenarios.push(number);
    }

    async fn submit<P: Procedure>(&self, procedure: P) -> Result<Handle<P>, Trouble> {
        let handle = self
            .run
            .wait(self.run.executor.submit(procedure).into_future())
            .await??;
        self.run.settle().await;
        Ok(handle)
    }

    /// Runs one to its end, however it ends; time passes where it must.
    async fn ends(&self, plan: Plan) -> Result<ProcedureId, Trouble> {
        let handle = self.submit(Planned(plan)).await?;
        self.run.wait(handle.outcome()).await?.ok();
        Ok(handle.id())
    }

    async fn state(&self, id: ProcedureId) -> Result<State, Trouble> {
        Ok(self.run.executor.status(id).await?.state)
    }

    async fn bypass(&self, id: ProcedureId, from: State, outcome: BypassAs, to: State) -> Tested {
        assert_eq!(self.state(id).await?, from);
        self.run
            .executor
            .bypass(id, BypassScope::Descendants, outcome, by())
            .await?;
        self.run.settle().await;
        assert_eq!(self.state(id).await?, to);
        Ok(())
    }

    async fn play_all(&self) -> Tested {
        self.steps().await?;
        self.children().await?;
        self.rollback().await?;
        self.siblings_stop().await?;
        self.parked().await?;
        self.operators().await?;
        self.cleanups().await
    }

    /// Section 3: steps and attempts.
    async fn steps(&self) -> Tested {
        self.play("E-002");
        self.ends(chain("a", 3)).await?;
        self.play("E-006");
        self.ends(plan("b", [Act::Retry(1, Box::new(Act::Done(1)))])).await?;
        self.play("E-008");
        self.ends(plan("c", [Act::Sleep(1_000), Act::Done(1)])).await?;
        self.play("E-009");
        let waits = plan("d", [Act::Wait("go".to_owned(), None), Act::Done(1)]);
        let handle = self.submit(Planned(waits)).await?;
        // One that is not waited for, and the one that is.
        for name in ["other", "go"] {
            self.run.executor.signal(handle.id(), name, &1_i64).await?;
        }
        self.run.wait(handle.outcome()).await??;
        Ok(())
    }

    /// Section 4: children, width, and a parent whose last stage added some.
    async fn children(&self) -> Tested {
        self.play("E-013");
        let two = vec![chain("a", 1), chain("b", 1)];
        let narrow = Act::Spawn(two, JoinPolicy::AllSucceeded, 1);
        self.ends(plan("r", [narrow, Act::Done(1)])).await?;
        self.play("E-041");
        let adds = Act::AddChild(Box::new(chain("c", 1)), Box::new(Act::Done(1)));
        self.ends(plan("s", [adds])).await?;
        Ok(())
    }

    /// Sections 5 and 6: failures from every state, siblings that never ran, compensation.
    async fn rollback(&self) -> Tested {
        self.play("E-024");
        let inner = plan("s", [spawn([failing("t", 1)]), Act::Done(1)]);
        self.ends(plan("r", [spawn([inner]), Act::Done(1)])).await?;
        self.play("E-028");
        let three = vec![failing("a", 1), chain("b", 1), chain("c", 1)];
        let narrow = Act::Spawn(three, JoinPolicy::AllSucceeded, 1);
        self.ends(plan("n", [narrow, Act::Done(1)])).await?;
        self.play("E-030");
        let compensated = chain("k", 1).compensated();
        self.ends(plan("f", [spawn([compensated]), Act::Fail("boom".to_owned())]))
            .await?;
        self.play("E-034");
        self.ends(failing("u", 2).undo(2, UndoAct::Fail(1))).await?;
        self.play("E-037");
        let fails = self.submit(Final(failing("x", 2))).await?;
        self.run.wait(fails.outcome()).await?.ok();
        Ok(())
    }

    /// E-032: who is parked when a sibling fails ends where it stands.
    async fn siblings_stop(&self) -> Tested {
        self.play("E-032");
        let stranger = self
            .submit(Planned(held("stranger", Act::Done(1)).exclusive("t")))
            .await?;
        let mut locks = plan("l", [Act::Next, Act::Done(1)]);
        locks
            .locks
            .insert(2, vec![procession::limits::LockNeed::exclusive("t")]);
        let parent = plan("p", [spawn([waits("pc")]), Act::Done(1)]);
        let sleeps = plan("z", [Act::Sleep(60_000), Act::Done(1)]);
        let fails = held("fails", Act::Fail("boom".to_owned()));
        let root = plan("w", [spawn([sleeps, parent, locks, waits("e"), fails]), Act::Done(1)]);
        let root = self.submit(Planned(root)).await?;
        let member = |member| ProcedureId::new(root.id().family, member);
        let stands = [
            State::WaitingTimeout,
            State::Waiting,
            State::Runnable,
            State::WaitingTimeout,
        ];
        for (number, state) in (1..).zip(stands) {
            assert_eq!(self.state(member(number)).await?, state, "member {number}");
        }
        self.lab.open("fails");
        self.run.settle().await;
        // The undo of the one that waits for it needs the lock as well.
        self.lab.open("stranger");
        self.run.wait(root.outcome()).await?.ok();
        self.run.wait(stranger.outcome()).await??;
        Ok(())
    }

    /// E-051: aborted where it is parked, and one whose time is up before it ran.
    async fn parked(&self) -> Tested {
        self.play("E-051");
        let holder = self
            .submit(Planned(held("holder", Act::Done(1)).exclusive("t")))
            .await?;
        let queued = self.submit(Planned(chain("q", 1).exclusive("t"))).await?;
        assert_eq!(self.state(queued.id()).await?, State::Initializing);
        self.run.executor.set_priority(queued.id(), 3, by()).await?;
        let asleep = self.submit(Planned(waits("w"))).await?;
        for id in [queued.id(), asleep.id()] {
            self.run
                .executor
                .abort(id, OperatorRequest::new("ann", "a test"))
                .await?;
            self.run.wait(self.run.executor.outcome(id)).await??;
        }
        self.play("E-083");
        // Its sibling still runs when it fails without ever having begun.
        let late = chain("late", 1).exclusive("t").timeout(1_000);
        let root = plan("r", [spawn([held("runs", Act::Done(1)), late]), Act::Done(1)]);
        let root = self.submit(Planned(root)).await?;
        self.run.pass(Duration::from_secs(2)).await;
        assert_eq!(self.state(ProcedureId::new(root.id().family, 2)).await?, State::Failed);
        self.lab.open("runs");
        self.run.wait(root.outcome()).await?.ok();
        self.lab.open("holder");
        self.run.wait(holder.outcome()).await??;
        Ok(())
    }

    /// Section 7: an operator's bypass from each state, as either end; and a pause.
    async fn operators(&self) -> Tested {
        self.play("E-054");
        for (outcome, end) in [(BypassAs::Success, State::Success), (BypassAs::Failed, State::Failed)] {
            let gate = format!("gate {end}");
            let holds = Act::Held(gate.clone(), Box::new(Act::Done(1)));
            let holder = self.submit(Planned(plan("h", [holds]).exclusive("b"))).await?;
            let queued = self.submit(Planned(chain("q", 1).exclusive("b"))).await?;
            self.bypass(queued.id(), State::Initializing, outcome.clone(), end)
                .await?;
            self.bypass(holder.id(), State::Runnable, outcome.clone(), end).await?;
            self.lab.open(&gate);
            let asleep = self.submit(Planned(waits("w"))).await?;
            self.bypass(asleep.id(), State::WaitingTimeout, outcome.clone(), end)
                .await?;
            let parent = self
                .submit(Planned(plan("p", [spawn([waits("c")]), Act::Done(1)])))
                .await?;
            self.bypass(parent.id(), State::Waiting, outcome.clone(), end).await?;
            let stuck = failing("u", 1).undo(1, UndoAct::FailUntil("never".to_owned()));
            let failed = self.submit(Planned(stuck)).await?;
            self.bypass(failed.id(), State::Failed, outcome, end).await?;
        }
        self.play("E-057");
        let paused = self
            .submit(Planned(plan("p", [spawn([waits("pc")]), Act::Done(1)])))
            .await?;
        for what in [paused.id(), ProcedureId::new(paused.id().family, 1)] {
            self.run.executor.pause(PauseScope::One(what), by()).await?;
        }
        assert_eq!(self.state(paused.id()).await?, State::Waiting);
        self.run
            .executor
            .abort(paused.id(), OperatorRequest::new("ann", "a test"))
            .await?;
        for what in [paused.id(), ProcedureId::new(paused.id().family, 1)] {
            self.run.executor.resume(PauseScope::One(what), by()).await?;
        }
        self.run.wait(paused.outcome()).await?.ok();
        Ok(())
    }

    /// Ends that are written again: when their code has cleaned up.
    async fn cleanups(&self) -> Tested {
        for ends in [chain("t", 1), failing("t", 1)] {
            let handle = self.submit(Tidy(ends)).await?;
            self.run.wait(handle.outcome()).await?.ok();
            self.run.settle().await;
        }
        Ok(())
    }
}

pub(super) fn legal() -> BTreeSet<(State, State)> {
    let all = State::ALL;
    let pairs = all
        .into_iter()
        .flat_map(|from| all.into_iter().map(move |to| (from, to)));
    pairs.filter(|(from, to)| from.may_become(*to)).collect()
}

#[test]
fn e_116_every_transition_of_the_table_is_taken_and_no_other() -> Tested {
    let (lab, record) = (Lab::default(), Record::default());
    live(&lab, async |run| {
        run.executor.subscribe(record.clone().start().recipient()).await?;
        let stage = Stage {
            run,
            lab: &lab,
            record: &record,
        };
        let played = stage.play_all().await;
        run.settle().await;
        let last = record.seen().scenarios.last().copied();
        played.map_err(|why| format!("in {last:?}: {why}").into())
    })?;
    let seen = record.seen();
    let taken: BTreeSet<(State, State)> = seen.taken.keys().copied().collect();
    let outside: Vec<_> = seen.taken.iter().filter(|(pair, _)| !legal().contains(*pair)).collect();
    assert!(outside.is_empty(), "taken outside the table: {outside:?}");
    let legal = legal();
    let never: Vec<_> = legal.difference(&taken).collect();
    assert!(never.is_empty(), "never taken: {never:?}");
    assert!(seen.scenarios.len() > 10, "{:?}", seen.scenarios);
    Ok(())
}

#[test]
fn e_116_the_table_is_the_documented_one() -> Tested {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference/lifecycle.md");
    let page = std::fs::read_to_string(page)?;
    let (_, behind) = page.split_once("<!-- table -->").ok_or("it has a table")?;
    let (shown, _) = behind.split_once("<!-- /table -->").ok_or("the table ends")?;
    assert_eq!(shown.trim(), State::table());
    Ok(())
}

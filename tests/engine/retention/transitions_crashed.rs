//! The table of transitions under crashes: what each commit of small scenarios, and of every life after a
//! crash of them, did to the rows on the disk. No row goes where the table does not lead; each entry of it is met.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::future::IntoFuture;
use std::time::Duration;

use procession::limits::LockNeed;
use procession::operate::{BypassAs, BypassScope, OperatorRequest};
use procession::procedure::JoinPolicy;
use procession::status::{ProcedureState, Seq};
use procession::testkit::{Fault, Run, Trouble, World};
use procession::{Handle, Procedure, ProcedureId};

use super::transitions::legal;
use crate::support::{
    Act, Lab, Once, Plan, Planned, Tested, Tidy, UndoAct, at_every_commit, chain, failing, kinds, live_through, plan,
    rows, spawn,
};

type State = ProcedureState;
type Taken = BTreeSet<(State, State)>;
/// How a disk stood, by row: its revision and state.
type Stand = BTreeMap<ProcedureId, (Seq, State)>;

/// How the disk stood after each crash: by the crashes so far, each with whether its commit was kept.
#[derive(Default)]
struct Disks(BTreeMap<Vec<(u64, bool)>, Stand>);

impl Disks {
    /// A commit that is lost leaves nothing, torn wherever it may be.
    fn note(&mut self, crashes: &[(u64, Fault)], world: &World) -> Tested {
        let stand = rows(&world.disk)?.into_iter();
        let stand: Stand = stand.map(|row| (row.id, (row.revision, row.state))).collect();
        let key = crashes.iter().map(|(at, fault)| (*at, *fault == Fault::CrashAfter));
        let known = self.0.entry(key.collect()).or_insert_with(|| stand.clone());
        if *known == stand {
            return Ok(());
        }
        Err(format!("{crashes:?} leaves {stand:?}, and another run {known:?}").into())
    }

    /// What the commits did that were crashed before and after.
    fn taken(&self) -> Taken {
        let mut taken = Taken::new();
        for (key, after) in &self.0 {
            let mut before = key.clone();
            if let Some((_, kept)) = before.last_mut().filter(|(_, kept)| *kept) {
                *kept = false;
            }
            let Some(before) = self.0.get(&before) else { continue };
            for (id, (revision, state)) in after {
                if let Some((_, from)) = before.get(id).filter(|(known, _)| known != revision) {
                    taken.insert((*from, *state));
                }
            }
        }
        taken
    }
}

/// Crashes a scenario everywhere; gives the transitions that its commits took.
fn taken(twice: bool, drive: impl AsyncFn(&Lab, &Run) -> Tested) -> Result<Taken, Trouble> {
    let disks = RefCell::new(Disks::default());
    at_every_commit(twice, |faults| {
        let lives = Cell::new(0);
        let noted = RefCell::new(Ok(()));
        let set_up = |(lab, world): &(Lab, World), builder| {
            let crashes = lives.replace(lives.get() + 1);
            if let Some(came) = faults.get(..crashes).filter(|_| crashes > 0) {
                let mut noted = noted.borrow_mut();
                *noted = std::mem::replace(&mut *noted, Ok(())).and_then(|()| disks.borrow_mut().note(came, world));
            }
            kinds(lab, builder)
        };
        let fresh = |world: &World| (Lab::default(), world.clone());
        let drive = async |(lab, _): &(Lab, World), run: &Run| drive(lab, run).await;
        let lived = live_through(faults, fresh, set_up, drive, |_, _| Ok(()))?;
        noted.into_inner().map(|()| lived)
    })?;
    Ok(disks.into_inner().taken())
}

async fn submit<P: Procedure>(run: &Run, procedure: P, key: &str) -> Result<Handle<P>, Trouble> {
    let handle = run.executor.submit(procedure).key(key).into_future().await?;
    run.settle().await;
    Ok(handle)
}

async fn ends<P: Procedure>(run: &Run, procedure: P) -> Tested {
    let handle = submit(run, procedure, "k").await?;
    run.wait(run.executor.outcome(handle.id())).await??;
    run.settle().await;
    Ok(())
}

/// Runs one to its end, however it ends.
fn alone<P: Procedure + Clone>(twice: bool, procedure: P) -> Result<Taken, Trouble> {
    taken(twice, async |_: &Lab, run: &Run| ends(run, procedure.clone()).await)
}

fn by(key: &str) -> OperatorRequest {
    OperatorRequest::new("ann", "a test").key(key)
}

fn waits(name: &str) -> Plan {
    plan(name, [Act::Wait("go".to_owned(), None), Act::Done(1)])
}

fn held(name: &str, then: Act) -> Plan {
    plan(name, [Act::Held(name.to_owned(), Box::new(then))])
}

fn narrow(children: [Plan; 2], then: Act) -> Plan {
    plan("r", [Act::Spawn(children.into(), JoinPolicy::AllSucceeded, 1), then])
}

/// Sections 3 to 6: steps, signals, children, rollback, cleanup.
fn to_their_ends() -> Result<Taken, Trouble> {
    let boom = || Act::Fail("boom".to_owned());
    let retried = plan("a", [Act::Retry(1, Box::new(Act::Next)), Act::Done(1)]);
    let mut all = alone(true, Planned(retried))?;
    let compensated = narrow([chain("c", 1).compensated(), chain("d", 1)], boom());
    all.extend(alone(false, Planned(compensated))?);
    let never_began = narrow([failing("c", 1), chain("d", 1)], Act::Done(1));
    all.extend(alone(false, Planned(never_began))?);
    let adds = Act::AddChild(Box::new(chain("c", 1)), Box::new(Act::Done(1)));
    all.extend(alone(true, Planned(plan("s", [adds])))?);
    all.extend(alone(false, Tidy(chain("t", 1)))?);
    all.extend(alone(false, Tidy(failing("u", 1)))?);
    all.extend(taken(false, async |_: &Lab, run: &Run| {
        let handle = submit(run, Planned(waits("w")), "k").await?;
        // One that is not waited for, and the one that is; it may have ended in an earlier life.
        for name in ["other", "go"] {
            run.executor.signal(handle.id(), name, &1_i64).key(name).await.ok();
        }
        Ok(run.wait(handle.outcome()).await?.map(|_| ())?)
    })?);
    Ok(all)
}

/// E-032: who is parked when a sibling fails ends where it stands.
async fn siblings_stop(lab: &Lab, run: &Run) -> Tested {
    let stranger = submit(run, Planned(held("stranger", Act::Done(1)).exclusive("t")), "stranger").await?;
    let mut locks = plan("l", [Act::Next, Act::Done(1)]);
    locks.locks.insert(2, vec![LockNeed::exclusive("t")]);
    let parent = plan("p", [spawn([waits("pc")]), Act::Done(1)]);
    let sleeps = plan("z", [Act::Sleep(60_000), Act::Done(1)]);
    let children = [sleeps, parent, locks, held("fails", Act::Fail("boom".to_owned()))];
    let root = submit(run, Planned(plan("w", [spawn(children), Act::Done(1)])), "w").await?;
    lab.open("fails");
    run.settle().await;
    lab.open("stranger");
    run.wait(root.outcome()).await?.ok();
    run.wait(stranger.outcome()).await??;
    Ok(())
}

/// E-051, E-083: aborted in a queue and asleep; and one whose time is up before it ran, beside one that runs.
async fn parked(lab: &Lab, run: &Run) -> Tested {
    let holder = submit(run, Planned(held("holder", Act::Done(1)).exclusive("t")), "holder").await?;
    let queued = submit(run, Planned(chain("q", 1).exclusive("t")), "q").await?;
    run.executor.set_priority(queued.id(), 3, by("priority")).await.ok();
    let asleep = submit(run, Planned(waits("w")), "w").await?;
    for (id, key) in [(queued.id(), "abort q"), (asleep.id(), "abort w")] {
        run.executor.abort(id, by(key)).await.ok();
        run.wait(run.executor.outcome(id)).await??;
    }
    let late = chain("late", 1).exclusive("t").timeout(1_000);
    let root = plan("r", [spawn([held("runs", Act::Done(1)), late]), Act::Done(1)]);
    let root = submit(run, Planned(root), "r").await?;
    run.pass(Duration::from_secs(2)).await;
    lab.open("runs");
    run.wait(root.outcome()).await?.ok();
    lab.open("holder");
    run.wait(holder.outcome()).await??;
    Ok(())
}

/// Section 7: a bypass from each state.
async fn bypassed(run: &Run, outcome: &BypassAs) -> Tested {
    let holder = submit(run, Planned(held("h", Act::Done(1)).exclusive("b")), "h").await?;
    let queued = submit(run, Planned(chain("q", 1).exclusive("b")), "q").await?;
    let asleep = submit(run, Planned(waits("w")), "w").await?;
    let parent = plan("p", [spawn([waits("c")]), Act::Done(1)]);
    let parent = submit(run, Planned(parent), "p").await?;
    let stuck = failing("u", 1).undo(1, UndoAct::FailUntil("never".to_owned()));
    let stuck = submit(run, Once(stuck), "u").await?;
    for id in [queued.id(), holder.id(), asleep.id(), parent.id(), stuck.id()] {
        let by = by(&format!("bypass {id}"));
        // It was done in an earlier life, perhaps.
        run.executor
            .bypass(id, BypassScope::Descendants, outcome.clone(), by)
            .await
            .ok();
        run.wait(run.executor.outcome(id)).await??;
        run.settle().await;
    }
    Ok(())
}

#[test]
fn e_116_no_commit_leaves_the_table_and_each_entry_is_taken_however_it_crashes() -> Tested {
    let mut all = to_their_ends()?;
    all.extend(taken(false, siblings_stop)?);
    all.extend(taken(false, parked)?);
    for outcome in [BypassAs::Success, BypassAs::Failed] {
        all.extend(taken(false, async |_: &Lab, run: &Run| bypassed(run, &outcome).await)?);
    }
    let outside: Vec<_> = all.difference(&legal()).copied().collect();
    assert!(outside.is_empty(), "taken outside the table: {outside:?}");
    let never: Vec<_> = legal().difference(&all).copied().collect();
    assert!(never.is_empty(), "never taken: {never:?}");
    Ok(())
}

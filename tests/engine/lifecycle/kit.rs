//! Ways to drive a scenario that several files share: enumerated clients,
//! stepped restarts, and a watcher of committed changes.

use std::future::IntoFuture;
use std::sync::{Arc, Mutex, PoisonError};

use actix::prelude::*;
use procession::messages::Subscribe;
use procession::status::{Change, ChangeFeed, ProcedureState, Status};
use procession::testkit::{Ended, Enumeration, Fault, FaultPlan, Run, Trouble, World};
use procession::{Builder, Handle, Procedure, ProcedureId};

use crate::support::{Lab, Plan, Planned, Tested, enumerate, kinds};

/// Enumerates the crashes of a client, of an engine that is set up so.
pub(crate) fn enumerate_in(
    fresh: impl Fn() -> Lab,
    set_up: impl Fn(&Lab, Builder) -> Builder,
    drive: impl AsyncFn(&Lab, &Run) -> Tested,
) -> Result<(Enumeration, Lab), Trouble> {
    let first: Mutex<Option<Lab>> = Mutex::new(None);
    let done = enumerate(fresh, set_up, drive, &["rows"], |plain, crashed, crashes| {
        let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert_with(|| plain.clone());
        plain.compare(crashed, crashes)
    })?;
    let lab = first.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok((done, lab.unwrap_or_default()))
}

/// Enumerates the crashes of a client of the usual kinds.
pub(crate) fn enumerate_client(drive: impl AsyncFn(&Lab, &Run) -> Tested) -> Result<(Enumeration, Lab), Trouble> {
    enumerate_in(Lab::default, kinds, drive)
}

/// Submits with a key: the same handle after every restart.
pub(crate) async fn submit<P: Procedure>(run: &Run, procedure: P, key: &str) -> Result<Handle<P>, Trouble> {
    Ok(run
        .wait(run.executor.submit(procedure).key(key).into_future())
        .await??)
}

/// Tells how a procedure stands when everything is at rest; none once its result has gone.
pub(crate) async fn at_rest(run: &Run, id: ProcedureId) -> Result<Status, Trouble> {
    run.settle().await;
    Ok(run.executor.status(id).await?)
}

/// Crashes the engine now, and never returns.
pub(crate) async fn crash<T>(run: &Run) -> T {
    run.store.crash();
    std::future::pending().await
}

/// Lives life after life, each with this fault at a commit: one number for the
/// first life, one for those after it. Returns the restarts, and what was called.
pub(crate) fn stepped(plan: &Plan, fault: Fault, first: u64, later: u64) -> Result<(usize, Lab), Trouble> {
    let (world, lab) = (World::new(), Lab::default());
    for restarts in 0..40 {
        let at = if restarts == 0 { first } else { later };
        let ended = world.run(
            FaultPlan::at(at, fault),
            |builder| kinds(&lab, builder),
            async |run| {
                let handle = submit(run, Planned(plan.clone()), "k").await?;
                let output = run.wait(handle.outcome()).await??;
                // The family may end after its root.
                run.settle().await;
                Ok(output)
            },
        )?;
        if let Ended::Done(_) = ended {
            return Ok((restarts, lab));
        }
    }
    Err("it does not come to an end".into())
}

/// Tells whether each body ran exactly twice, and saw the same value.
pub(crate) fn each_ran_twice(lab: &Lab) -> Tested {
    let mut calls = lab.calls();
    calls.sort();
    for pair in calls.chunks(2) {
        if pair.len() != 2 || pair.first() != pair.last() {
            return Err(format!("not every body ran twice with one value: {}", lab.line()).into());
        }
    }
    Ok(())
}

/// Every committed change, as a subscriber got it.
#[derive(Clone, Default)]
pub(crate) struct Changes(Arc<Mutex<Vec<Arc<Change>>>>);

struct Watcher(Changes);

impl Actor for Watcher {
    type Context = Context<Self>;
}

impl Handler<ChangeFeed> for Watcher {
    type Result = ();

    fn handle(&mut self, feed: ChangeFeed, _: &mut Self::Context) {
        if let ChangeFeed::Change(change) = feed {
            self.0.0.lock().unwrap_or_else(PoisonError::into_inner).push(change);
        }
    }
}

impl Changes {
    /// Subscribes to all changes from now on.
    pub(crate) async fn watch(run: &Run) -> Result<Self, Trouble> {
        let changes = Self::default();
        let watcher = Watcher(changes.clone());
        let recipient = Watcher::create(|ctx| {
            ctx.set_mailbox_capacity(1 << 16);
            watcher
        })
        .recipient();
        run.wait(run.executor.supervisor().send(Subscribe(recipient)))
            .await???;
        Ok(changes)
    }

    /// Returns them in commit order.
    pub(crate) fn all(&self) -> Vec<Arc<Change>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the states in which a member was shown, one for each change of it.
    pub(crate) fn states(&self, id: ProcedureId) -> Vec<ProcedureState> {
        let rows = self.all();
        let rows = rows.iter().flat_map(|change| change.rows.clone());
        rows.filter(|row| row.id == id).map(|row| row.state).collect()
    }

    /// Finds the change in which a member first had this state.
    pub(crate) fn first(&self, id: ProcedureId, state: ProcedureState) -> Result<Arc<Change>, Trouble> {
        let found = self
            .all()
            .into_iter()
            .find(|change| change.rows.iter().any(|row| row.id == id && row.state == state));
        found.ok_or_else(|| format!("{id} never was {state}").into())
    }
}

/// Finds a member's state in one change.
pub(crate) fn state_in(change: &Change, id: ProcedureId) -> Option<ProcedureState> {
    change.rows.iter().find(|row| row.id == id).map(|row| row.state)
}

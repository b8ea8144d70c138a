//! The calm after the storm: no faults, a helpful operator, and everything must
//! come to its end and leave nothing.

use procession::ProcedureId;
use procession::health::{Rule, WakeSource};
use procession::operate::{BypassAs, BypassScope, OperatorRequest, PauseScope};
use procession::procedure::JoinPolicy;
use procession::status::WaitReason;
use procession::testkit::{Run, Trouble};
use procession_actors::journal::Space;
use procession_kernel::{Deadlock, Kernel, Row};

use super::client::{Requests, told};
use super::operate::{Ask, operator};
use super::reload::{kernel, scan};
use super::shape::REPAIRED;
use super::story::Story;

/// Rounds of calm after which whatever still moves is taken for a loop.
const ROUNDS: usize = 1_000;
/// Answers after which the verdict on failures must agree with their list: the first may begin the count that the second
/// tells, and one may have begun before.
const COUNTS: usize = 3;
/// Attempts after which a stage is taken never to succeed: more than any kind has.
const ATTEMPTS: u32 = 12;

impl Story {
    /// Helps until nothing is left to be done, and looks at what is left.
    pub(crate) async fn calm(&mut self, run: &Run) -> Result<(), Trouble> {
        self.lab.open(REPAIRED);
        let mut requests = Requests::default();
        for _ in 0..ROUNDS {
            if !self.look(run, &mut requests, &[]).await? {
                return Err("the engine failed without a fault".into());
            }
            if !self.helped(run, &mut requests).await? {
                self.nothing_is_left(run).await?;
                self.past(run).await?;
                return self.all_is_forgotten(run, &mut requests).await;
            }
        }
        Err(format!("it does not come to its end: {:?}", self.seen).into())
    }

    /// Gives what somebody waits for; tells whether anybody waited.
    async fn helped(&mut self, run: &Run, requests: &mut Requests) -> Result<bool, Trouble> {
        if let Some(family) = self.aside.first() {
            self.send(run, requests, Ask::Discharge(*family), operator());
            return Ok(true);
        }
        let kernel = kernel(run).await?;
        if let Some(what) = kernel.pauses().first() {
            self.send(run, requests, Ask::Resume(what.clone()), operator());
            return Ok(true);
        }
        let rows: Vec<Row> = kernel
            .families()
            .values()
            .flat_map(|family| &family.members)
            .map(|row| (**row).clone())
            .collect();
        for row in &rows {
            if self.help(run, requests, &kernel, row) {
                return Ok(true);
            }
        }
        if kernel.next_deadline().is_some() {
            run.world.clock.jump();
            return Ok(true);
        }
        if kernel.families().is_empty() {
            return Ok(false);
        }
        self.untie(run, requests, &rows).await
    }

    fn help(&mut self, run: &Run, requests: &mut Requests, kernel: &Kernel, row: &Row) -> bool {
        let id = row.id;
        if row.rare().paused {
            self.send(run, requests, Ask::Resume(PauseScope::One(id)), operator());
            return true;
        }
        if row.is_ended() {
            return false;
        }
        let stopped = kernel.is_stopped(id);
        let ask = match &row.wait {
            Some(WaitReason::Event(name, _)) if !stopped => {
                let is_closed = row.rare().closed.contains(name);
                let (executor, name) = (run.executor.clone(), name.to_string());
                requests.add(format!("release {id}"), async move {
                    if is_closed {
                        // No signal reaches it any more.
                        told(executor.broadcast(&name, &1).await)
                    } else {
                        told(executor.signal(id, &name, &1).await)
                    }
                });
                return true;
            }
            Some(WaitReason::Decision(_)) if !stopped && id.family.is_multiple_of(2) => Ask::RetryNow(id),
            Some(WaitReason::Decision(_)) if !stopped => Ask::Decide(id, 5),
            Some(WaitReason::Gate) if !stopped && is_shut(kernel, row) && id.member.is_multiple_of(2) => {
                Ask::Bypass(id, BypassScope::Alone, BypassAs::Failed)
            }
            Some(WaitReason::Gate) if !stopped && is_shut(kernel, row) => Ask::RetryNow(id),
            Some(WaitReason::RollbackFailed) if !is_outermost(kernel, id) => return false,
            Some(WaitReason::RollbackFailed) if self.draw.percent(50) => Ask::SkipUndo(id),
            Some(WaitReason::RollbackFailed) => Ask::RetryUndo(id),
            // Beyond its point of no return it tries for ever.
            Some(WaitReason::Backoff(attempts, _)) if *attempts > ATTEMPTS => {
                Ask::Bypass(id, BypassScope::Family, BypassAs::Failed)
            }
            Some(WaitReason::Poison | WaitReason::RepeatLimit) if !stopped => Ask::Resume(PauseScope::One(id)),
            Some(_) | None => return false,
        };
        self.send(run, requests, ask, operator());
        true
    }

    /// Nothing moves any more: some wait for each other, and the engine names whom to end.
    async fn untie(&mut self, run: &Run, requests: &mut Requests, rows: &[Row]) -> Result<bool, Trouble> {
        let verdicts = run.executor.verdicts().await?;
        let deadlock = verdicts.iter().find(|verdict| verdict.rule == Rule::Deadlock);
        let Some(Deadlock { victim, can_abort, .. }) = deadlock.and_then(|verdict| verdict.deadlock.clone()) else {
            let live: Vec<&Row> = rows.iter().filter(|row| !row.is_over()).collect();
            let live: Vec<_> = live.iter().map(|row| (row.id, row.state, &row.wait)).collect();
            let (locks, limits) = (run.executor.locks().await?, run.executor.limits().await?);
            return Err(format!("nothing moves {live:?}, and no verdict says why: {locks:?} {limits:?}").into());
        };
        let explained = run.executor.explain(victim).await?;
        if explained.deadlocks.is_empty() {
            return Err(format!("{victim} is the victim of a deadlock, and is explained by {explained:?}").into());
        }
        self.log.push(format!("deadlock: {victim}"));
        self.cover("Deadlock");
        // What the verdict says resolves it.
        let ask = if can_abort {
            Ask::Abort(victim)
        } else {
            Ask::Bypass(victim, BypassScope::Descendants, BypassAs::Failed)
        };
        self.send(run, requests, ask, OperatorRequest::new("sim", "deadlock"));
        Ok(true)
    }

    async fn nothing_is_left(&mut self, run: &Run) -> Result<(), Trouble> {
        let snapshot = run.executor.snapshot().await?;
        let (live, going, set_aside) = (snapshot.live_families, snapshot.going, &snapshot.quarantined);
        if (live, going, set_aside.len(), snapshot.actors) != (0, 0, 0, 0) {
            return Err(format!("all have ended, and the engine shows {snapshot:?}").into());
        }
        let locks = run.executor.locks().await?;
        let busy = |limit: &procession::limits::LimitUse| limit.used > 0 || limit.waiting > 0;
        let limits = run.executor.limits().await?;
        if !locks.is_empty() || limits.iter().any(busy) {
            return Err(format!("all have ended, and these are left: {locks:?} {limits:?}").into());
        }
        let failures = run.executor.failures(None, 1).await?.items;
        let mut verdicts = Vec::new();
        // Failures are counted beside the checks, so an answer may be one count behind.
        for _ in 0..COUNTS {
            verdicts = run.executor.verdicts().await?;
            let count = verdicts.len();
            verdicts.retain(|verdict| verdict.rule != Rule::UnacknowledgedFailures);
            let tells_failures = verdicts.len() < count;
            if verdicts.is_empty() && tells_failures != failures.is_empty() {
                return Ok(());
            }
        }
        Err(format!("all have ended, and the engine says {verdicts:?}; the newest failure is {failures:?}").into())
    }

    /// Once every result was kept as long as it must be, the disk holds none.
    async fn all_is_forgotten(&mut self, run: &Run, requests: &mut Requests) -> Result<(), Trouble> {
        run.world.clock.advance(self.settings.after_end);
        self.settle(run, requests).await?;
        while run.world.clock.jump() {
            self.settle(run, requests).await?;
        }
        for space in [
            Space::Procedures,
            Space::Payloads,
            Space::History,
            Space::Signals,
            Space::Keys,
            Space::Live,
            Space::Finished,
        ] {
            let left = scan(run, space.clone()).await?;
            if !left.is_empty() {
                return Err(format!("{} entries of {} are left for ever", left.len(), space.name()).into());
            }
        }
        Ok(())
    }
}

fn is_outermost(kernel: &Kernel, id: ProcedureId) -> bool {
    let family = kernel.families().get(&id.family);
    family.and_then(|family| family.scope_of(id.member)) == Some(id)
}

/// Tells whether a gate opens by an operator alone. What a rule has said is not on disk; where nothing moves, one that has
/// seen all siblings ended has said that it does not open.
fn is_shut(kernel: &Kernel, row: &Row) -> bool {
    let family = kernel.families().get(&row.id.family);
    let latch = family.and_then(|family| family.gates.latch(row.id.member));
    let is_custom = row.closed_gate().is_some_and(|gate| gate.opens == JoinPolicy::Custom);
    (is_custom && latch.is_some_and(|latch| latch.is_over()))
        || kernel.wake_source_of(row.id) == WakeSource::Operator(WaitReason::Gate)
}

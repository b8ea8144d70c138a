//! Wakes that are lost between the actors. The test removes a wake; a health check finds the loss, repairs it, counts
//! it, and reports it once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix::prelude::*;
use procession_kernel::{AdmissionEffect, LockNeed, ProcedureId, ProcedureState, Timestamp, WaitReason};
use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::context::StageContext;
use crate::engine::{Engine, Placement, Settings};
use crate::journal::memory::{FaultPlan, MemoryDisk, MemoryStore};
use crate::limiter::Restore;
use crate::messages::{Query, Submit, TakeSnapshot, Verdicts};
use crate::procedure::Procedure;
use crate::registry::Registry;
use crate::stage_error::StageError;
use crate::step::Step;
use crate::supervisor::Supervisor;
use crate::telemetry::tests::recorded;
use crate::testkit::TestClock;
use crate::view::{Rule, Status, Verdict};

/// A wake to lose.
#[derive(Message)]
#[rtype(result = "()")]
enum Lose {
    /// The timer is not armed.
    Timer,
    /// Its request never reached the limiter.
    Request(ProcedureId),
    /// The limiter has served it, and the notice is lost.
    Grant(ProcedureId),
    /// Its actor never got the call.
    Call(ProcedureId),
    /// The claim under which a procedure holds is forgotten, so what it gives back never reaches the limiter.
    Claim(ProcedureId),
    /// The second is served when the first releases, and is quarantined before it receives the grant.
    Family(ProcedureId, ProcedureId),
}

impl Handler<Lose> for Supervisor {
    type Result = ();

    fn handle(&mut self, lose: Lose, ctx: &mut Self::Context) {
        match lose {
            Lose::Timer => self.lifecycle.disarm(),
            Lose::Request(id) => {
                let cancel = AdmissionEffect::Cancel(id);
                assert_eq!(self.admission.act(cancel, self.quarantine.families()), None);
            }
            Lose::Grant(id) => {
                let request = self.admission.request_of(&self.kernel, id).expect("it lives");
                // Granted in addition to the present holder, without a notice.
                self.admission.limiter().tell(Restore(vec![request]));
            }
            Lose::Call(id) => self.dispatch.lose(id),
            Lose::Claim(id) => self.admission.forget_claim(id),
            Lose::Family(holder, waiter) => {
                self.admission.release(holder);
                self.quarantine_family(waiter.family, "a test says so".to_owned(), ctx);
            }
        }
    }
}

/// Sleeps for a minute, or ends at once, with or without the lock `t`. The first call of a hanging procedure never
/// ends.
#[derive(Default, Serialize, Deserialize)]
struct Work {
    sleeps: bool,
    locks: bool,
    hangs: bool,
}

impl Procedure for Work {
    const KIND: &'static str = "work";
    const HOLD_LOCKS: bool = true;
    type Stage = u32;
    type Env = Arc<AtomicBool>;
    type Output = ();

    fn first(&self) -> u32 {
        1
    }

    async fn execute(&mut self, stage: u32, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        if self.sleeps && stage == 1 {
            let until = cx.now().after(Duration::from_mins(1));
            return Ok(Step::Sleep { until, then: 2 });
        }
        if self.hangs && !cx.env().swap(true, Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        Ok(Step::Done(()))
    }

    fn locks(&self, _: &u32) -> Vec<LockNeed> {
        if self.locks {
            vec![LockNeed::exclusive("t")]
        } else {
            Vec::new()
        }
    }
}

struct Live {
    engine: Engine,
    clock: TestClock,
}

impl Live {
    async fn submit(&self, work: Work) -> ProcedureId {
        let submit = Submit::new(&work).expect("it encodes");
        let sent = self.engine.supervisor().send(submit).await;
        sent.expect("it lives").expect("it is taken")
    }

    async fn lose(&self, lose: Lose) {
        self.engine.supervisor().send(lose).await.expect("it lives");
    }

    async fn status(&self, id: ProcedureId) -> Status {
        let sent = self.engine.supervisor().send(Query(id)).await;
        sent.expect("it lives").expect("it is known")
    }

    async fn rest() {
        for _ in 0..256 {
            tokio::task::yield_now().await;
        }
    }

    async fn lost_wakes(&self) -> u64 {
        let sent = self.engine.supervisor().send(TakeSnapshot).await;
        sent.expect("it lives").expect("it answers").lost_wakes
    }

    /// Returns the verdicts of a health check.
    async fn told(&self) -> Vec<Verdict> {
        let sent = self.engine.supervisor().send(Verdicts).await;
        sent.expect("it lives").expect("it answers")
    }

    /// Returns the lost wakes that a health check finds, each with what was lost.
    async fn check(&self) -> Vec<(ProcedureId, String)> {
        let found = self
            .told()
            .await
            .into_iter()
            .filter(|verdict| verdict.rule == Rule::LostWake);
        found
            .map(|verdict| {
                let what = verdict.fact("lost").unwrap_or_default().to_owned();
                (verdict.procedure.expect("somebody"), what)
            })
            .collect()
    }
}

fn live(drive: impl AsyncFnOnce(&Live)) {
    actix_rt::System::new().block_on(async {
        let store = MemoryStore::open(&MemoryDisk::default(), FaultPlan::none()).expect("a store");
        let clock = TestClock::new();
        let mut registry = Registry::default();
        registry.register::<Work>(Arc::default());
        let settings = Settings {
            placement: Placement::Inline,
            clock: Arc::new(clock.clone()),
            health_check_every: None,
            ..Settings::default()
        };
        let engine = Engine::start(Arc::new(store), registry, settings)
            .await
            .expect("it starts");
        drive(&Live { engine, clock }).await;
    });
}

fn sleeps(locks: bool) -> Work {
    Work {
        sleeps: true,
        locks,
        ..Work::default()
    }
}

/// Returns a procedure that waits for the lock of another, which sleeps.
async fn waiter(live: &Live) -> ProcedureId {
    holder_and_waiter(live).await.1
}

async fn holder_and_waiter(live: &Live) -> (ProcedureId, ProcedureId) {
    let holder = live.submit(sleeps(true)).await;
    let work = Work {
        locks: true,
        ..Work::default()
    };
    let waiter = live.submit(work).await;
    Live::rest().await;
    assert_eq!(live.status(waiter).await.wait, Some(WaitReason::Lock("t".into())));
    assert_eq!(live.check().await, []);
    (holder, waiter)
}

#[test]
fn e_108_a_lost_timer_is_armed_again() {
    live(async |live| {
        let id = live.submit(sleeps(false)).await;
        Live::rest().await;
        live.lose(Lose::Timer).await;
        Live::rest().await;
        live.clock.advance(Duration::from_hours(1));
        Live::rest().await;
        assert_eq!(live.status(id).await.state, ProcedureState::WaitingTimeout);
        live.check().await;
        Live::rest().await;
        assert_eq!(live.status(id).await.state, ProcedureState::Success);
        assert_eq!(live.clock.now(), Timestamp(3_600_000_000));
    });
}

#[test]
fn e_108_a_request_that_the_limiter_lost_is_made_again() {
    live(async |live| {
        let waiter = waiter(live).await;
        live.lose(Lose::Request(waiter)).await;
        assert_eq!(live.check().await, [(waiter, "waits for the lock t".to_owned())]);
        Live::rest().await;
        assert_eq!((live.check().await, live.lost_wakes().await), (Vec::new(), 1));
        live.clock.advance(Duration::from_mins(1));
        Live::rest().await;
        assert_eq!(live.status(waiter).await.state, ProcedureState::Success);
    });
}

#[test]
fn e_108_a_lost_grant_is_taken() {
    live(async |live| {
        let waiter = waiter(live).await;
        live.lose(Lose::Grant(waiter)).await;
        assert_eq!(live.check().await, [(waiter, "waits for the lock t".to_owned())]);
        Live::rest().await;
        assert_eq!(live.status(waiter).await.state, ProcedureState::Success);
        assert_eq!((live.check().await, live.lost_wakes().await), (Vec::new(), 1));
    });
}

#[test]
fn e_108_a_lost_call_is_made_again() {
    let counted = recorded(|| {
        live(async |live| {
            let work = Work {
                hangs: true,
                ..Work::default()
            };
            let id = live.submit(work).await;
            Live::rest().await;
            // The call is forgotten, and will never report.
            live.lose(Lose::Call(id)).await;
            Live::rest().await;
            assert!(live.status(id).await.going);
            assert_eq!(live.check().await, [(id, "the call of its stage".to_owned())]);
            Live::rest().await;
            assert_eq!(live.status(id).await.state, ProcedureState::Success);
            assert_eq!((live.check().await, live.lost_wakes().await), (Vec::new(), 1));
        });
    });
    assert_eq!(counted.get("procession_lost_wakes_total work"), Some(&1.0));
    assert_eq!(counted.get("procession_lost_wakes_total unknown"), Some(&0.0));
}

#[test]
fn e_115_one_that_waits_for_a_lock_of_nobody_is_starved() {
    live(async |live| {
        let (holder, waiter) = holder_and_waiter(live).await;
        live.lose(Lose::Claim(holder)).await;
        live.clock.advance(Duration::from_mins(2));
        Live::rest().await;
        assert_eq!(live.status(holder).await.state, ProcedureState::Success);
        assert_eq!(live.told().await, [], "it may be on its way");
        live.clock.advance(Duration::from_secs(4));
        assert_eq!(live.told().await, []);
        live.clock.advance(Duration::from_secs(1));
        let [verdict] = &*live.told().await else {
            panic!("there is one")
        };
        assert_eq!(
            (verdict.rule, verdict.procedure, verdict.fact("free")),
            (Rule::Starved, Some(waiter), Some("5s"))
        );
        assert_eq!(verdict.since, Timestamp(120_000_000));
        assert!(verdict.text.contains("has been free for 5s"), "{}", verdict.text);
    });
}

#[test]
fn a_grant_in_the_moment_of_a_quarantine_goes_to_the_next() {
    live(async |live| {
        let (holder, waiter) = holder_and_waiter(live).await;
        live.lose(Lose::Family(holder, waiter)).await;
        Live::rest().await;
        let next = live.submit(Work {
            locks: true,
            ..Work::default()
        });
        let next = next.await;
        Live::rest().await;
        assert_eq!(live.status(next).await.state, ProcedureState::Success);
    });
}

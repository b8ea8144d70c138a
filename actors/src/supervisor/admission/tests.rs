//! The wing against a kernel and a limiter. Each test decides when an answer is taken.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use actix::prelude::*;
use procession_kernel::{
    Admissions, Birth, Blob, Claim, ClaimId, Commit, Effect, Epoch, Event, Grant, Kernel, Kind, KindRules, LockNeed,
    OperatorRequest, PauseScope, ProcedureId, Receipt, RequestId, Rules, StageEnded, StageOutcome, StoredTarget,
    Timestamp, Verb, WaitReason,
};

use super::{Admission, BirthPlace, Demand, PendingDemand, admit_births, admit_report};
use crate::clock::SystemClock;
use crate::limiter::{Limiter, LocksHeld, Served};
use crate::queues::{Depth, Ordered, Outbox};
use crate::telemetry::LimiterMetrics;

const KIND: &str = "k";
const PATH: &str = "t";
const HOLDER: ProcedureId = ProcedureId::root(1);
const WAITER: ProcedureId = ProcedureId::root(2);

/// Collects what the limiter serves.
#[derive(Default)]
struct Inbox(Arc<Mutex<Vec<Claim>>>);

impl Actor for Inbox {
    type Context = Context<Self>;
}

impl Handler<Served> for Inbox {
    type Result = ();

    fn handle(&mut self, served: Served, _: &mut Self::Context) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(served.claims);
    }
}

/// A report whose procedure exchanges locks, and the demand that the limiter has answered.
type Exchanged = (Box<StageEnded>, PendingDemand);

/// `HOLDER` holds the one lock; the next stage of `WAITER` needs it.
struct Bench {
    kernel: Kernel,
    wing: Admission<()>,
    limiter: Ordered<Limiter>,
    served: Arc<Mutex<Vec<Claim>>>,
    /// No receipt has come for any of it.
    unproved: Commit,
}

impl Bench {
    async fn new() -> Self {
        let rules = Rules {
            kinds: [(Kind::from(KIND), KindRules::new(1))].into(),
            ..Rules::default()
        };
        let inbox = Inbox::default();
        let served = Arc::clone(&inbox.0);
        let outbox = Outbox::new(inbox.start().recipient(), Arc::new(Depth::default()));
        let metrics = LimiterMetrics::new(&[]);
        let depth = Arc::new(Depth::default());
        let limiter = Limiter::new(
            Admissions::default(),
            metrics,
            outbox,
            Arc::clone(&depth),
            Arc::new(SystemClock),
        )
        .start();
        let limiter = Ordered::new(limiter, depth);
        let mut bench = Self {
            kernel: Kernel::new(rules, Epoch(1), 0),
            wing: Admission::new(limiter.clone(), Vec::new(), Vec::new()),
            limiter,
            served,
            unproved: Commit::new(),
        };
        bench.submit(vec![LockNeed::exclusive(PATH)]).await;
        assert!(bench.runs(HOLDER));
        bench.submit(Vec::new()).await;
        bench
    }

    /// `WAITER` is in the limiter's queue, and its row says so.
    async fn queued() -> Self {
        let mut bench = Self::new().await;
        let exchanged = bench.exchange().await;
        assert_eq!(bench.report(exchanged).await, []);
        assert_eq!(bench.wait(WAITER), Some(WaitReason::Lock(PATH.into())));
        bench
    }

    /// `WAITER` was in the limiter's queue, and was paused before its report was decided. That decision removed it from
    /// the queue; between the two the holder ended if `is_free`, so that the limiter served it.
    async fn paused(is_free: bool) -> (Self, Vec<Claim>) {
        let mut bench = Self::new().await;
        let exchanged = bench.exchange().await;
        assert_eq!(bench.pause().await, []);
        let served = if is_free { bench.free().await } else { Vec::new() };
        assert_eq!(bench.report(exchanged).await, []);
        assert_eq!(bench.wait(WAITER), Some(WaitReason::Paused));
        (bench, served)
    }

    async fn pause(&mut self) -> Vec<Claim> {
        self.operate(Verb::Pause(PauseScope::One(WAITER))).await
    }

    async fn resume(&mut self) -> Vec<Claim> {
        self.operate(Verb::Resume(PauseScope::One(WAITER))).await
    }

    async fn submit(&mut self, locks: Vec<LockNeed>) {
        let mut birth = Birth::new(Kind::from(KIND), 1, Blob::default(), Blob::default());
        birth.next_needs.locks = locks;
        let mut demand = Demand::default();
        self.wing
            .demand(&self.kernel, &mut birth, BirthPlace::Root, true, &mut demand);
        let (pending, answer) = self.wing.ask(demand, None);
        let acquired = answer.await.expect("the limiter runs");
        admit_births(std::iter::once(&mut birth), acquired.answers);
        let submitted = Event::Submitted(RequestId(1), vec![birth.into()]);
        assert_eq!(self.decide(submitted).await, []);
        self.wing.settle(&self.kernel, &BTreeMap::new(), pending);
    }

    /// The stage of `WAITER` ends, and the limiter is asked for the lock of the next one. It queues the request.
    async fn exchange(&mut self) -> Exchanged {
        let row = self.kernel.row(WAITER).expect("it lives");
        let run = row.in_flight.expect("it runs").run;
        let next = StageOutcome::Next(Blob::default());
        let mut report = Box::new(StageEnded::new(WAITER, run, Epoch(1), Timestamp(2), next));
        report.next_needs.locks = vec![LockNeed::exclusive(PATH)];
        let demand = self.wing.demand_of_report(&self.kernel, &mut report);
        let (mut pending, answer) = self.wing.ask(demand, Some(WAITER));
        let acquired = answer.await.expect("the limiter runs");
        admit_report(&mut report, &mut pending, acquired.exchanged, acquired.answers);
        let admitted = report.admission.as_ref().expect("it was asked");
        assert!(!admitted.is_granted());
        (report, pending)
    }

    async fn report(&mut self, (report, pending): Exchanged) -> Vec<Claim> {
        let grants = self.decide(Event::StageEnded(report)).await;
        self.wing.settle(&self.kernel, &BTreeMap::new(), pending);
        grants
    }

    /// The report of a last stage.
    fn ended(&self, id: ProcedureId) -> Event {
        let in_flight = self.kernel.row(id).and_then(|row| row.in_flight).expect("it runs");
        let done = StageOutcome::Done(Blob::default());
        let report = StageEnded::new(id, in_flight.run, Epoch(1), Timestamp(2), done);
        Event::StageEnded(Box::new(report))
    }

    fn wait(&self, id: ProcedureId) -> Option<WaitReason> {
        self.kernel.row(id).and_then(|row| row.wait.clone())
    }

    fn runs(&self, id: ProcedureId) -> bool {
        self.kernel
            .row(id)
            .is_some_and(|row| row.in_flight.is_some() && !row.locked.is_empty())
    }

    fn claim(&self, id: ProcedureId) -> ClaimId {
        self.wing.claims().claim(id).expect("it has a claim")
    }

    /// Decides an event, and tells the limiter, as the supervisor does. Returns the grants that the limiter answered,
    /// which the caller may take at any time.
    async fn decide(&mut self, event: Event) -> Vec<Claim> {
        let decision = self.kernel.decide(Timestamp(2), event);
        let mut grants = Vec::new();
        for effect in self.kernel.fold(decision, &mut self.unproved).admission {
            let Some(id) = self.wing.act(effect, &BTreeMap::new()) else {
                continue;
            };
            if let Some(answer) = self.wing.request(&self.kernel, id) {
                let acquired = answer.await.expect("the limiter runs");
                let granted = acquired.answers.iter().filter(|answer| answer.grant == Grant::Granted);
                grants.extend(granted.map(|answer| answer.claim));
                grants.extend(acquired.served);
            }
        }
        grants
    }

    async fn operate(&mut self, verb: Verb) -> Vec<Claim> {
        let by = Box::new(OperatorRequest::new("ann", "test"));
        self.decide(Event::Requested(RequestId(2), Box::new(verb), by, StoredTarget::None))
            .await
    }

    /// Takes grants as the supervisor does. Returns how many were accepted.
    async fn take(&mut self, grants: Vec<Claim>) -> usize {
        let mut accepted = 0;
        for claim in grants {
            if let Some(id) = self.wing.accept(claim) {
                accepted += 1;
                let further = self.decide(Event::Granted(id)).await;
                assert_eq!(further, [], "nothing else is granted");
            }
        }
        accepted
    }

    /// Ends the holder. Returns what the limiter serves as a result.
    async fn free(&mut self) -> Vec<Claim> {
        self.wing.release(HOLDER);
        self.served().await
    }

    /// Returns what the limiter has served since the last call.
    async fn served(&self) -> Vec<Claim> {
        // Queued behind every message to the limiter. Its notices are in the inbox by the second answer.
        for _ in 0..2 {
            self.limiter.ask(LocksHeld).await.expect("the limiter runs");
        }
        std::mem::take(&mut *self.served.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns `true` if no procedure holds the lock or waits for it.
    async fn is_free(&self) -> bool {
        let (_, locks) = self.limiter.ask(LocksHeld).await.expect("the limiter runs");
        locks.is_empty()
    }
}

#[actix_rt::test]
async fn a_waiter_is_granted_once() {
    let mut bench = Bench::queued().await;
    let served = bench.free().await;
    assert_eq!(served, [Claim::first(bench.claim(WAITER))]);
    assert_eq!(bench.take(served).await, 1);
    assert!(bench.runs(WAITER));
    assert_eq!(bench.served().await, []);
}

/// Who releases a lock, and who is granted it next, may share one sync.
#[actix_rt::test]
async fn a_lock_passes_on_before_the_receipt_and_no_code_runs_under_it() {
    let mut bench = Bench::queued().await;
    let ended = bench.ended(HOLDER);
    let proved = bench.kernel.seq();
    assert_eq!(bench.decide(ended).await, []);
    let served = bench.served().await;
    assert_eq!(bench.take(served).await, 1);
    assert!(bench.runs(WAITER), "as its row says, which is not on disk");

    let receipt = |seq| Receipt::new(Epoch(1), seq);
    let unproved = std::mem::take(&mut bench.unproved);
    let unproved = unproved.release(&receipt(proved)).expect_err("nothing leaves");
    let unproved = unproved.release(&receipt(proved.next())).expect_err("nothing leaves");
    let effects = unproved.release(&receipt(bench.kernel.seq())).expect("all is proved");
    let called: Vec<ProcedureId> = effects.iter().filter_map(Effect::call).map(|call| call.id).collect();
    assert_eq!(called.last(), Some(&WAITER));
}

#[actix_rt::test]
async fn a_grant_of_a_request_that_was_cancelled_is_dropped_and_the_next_answer_counts() {
    // The limiter serves the first request before it receives the cancellation.
    let (mut bench, served) = Bench::paused(true).await;
    assert_eq!(served.len(), 1);
    let answered = bench.resume().await;
    assert_eq!(bench.take(served).await, 0, "it asked again, and the answer counts");
    assert_eq!(answered.len(), 1);
    assert_eq!(bench.take(answered).await, 1);
    assert!(bench.runs(WAITER));
    assert_eq!(bench.served().await, [], "it is granted once");
}

#[actix_rt::test]
async fn of_a_request_cancelled_and_made_again_only_the_second_grant_counts() {
    let (mut bench, _) = Bench::paused(false).await;
    let first = Claim::first(bench.claim(WAITER));
    assert_eq!(bench.resume().await, [], "it queues again");
    let served = bench.free().await;
    assert_eq!(served.len(), 1);
    assert_ne!(served, [first]);
    assert_eq!(bench.take(vec![first]).await, 0);
    assert_eq!(bench.take(served).await, 1);
    assert!(bench.runs(WAITER));
}

#[actix_rt::test]
async fn a_pause_and_a_resume_while_an_answer_is_under_way_grant_once() {
    let (mut bench, _) = Bench::paused(false).await;
    assert_eq!(bench.free().await, []);
    let under_way = bench.resume().await;
    assert_eq!(under_way.len(), 1, "it is granted at once");

    assert_eq!(bench.pause().await, []);
    assert_eq!(bench.resume().await, [], "it asked already");
    assert_eq!(bench.take(under_way).await, 1);
    assert!(bench.runs(WAITER));
    assert_eq!(bench.served().await, [], "it is granted once");
}

#[actix_rt::test]
async fn a_grant_that_meets_a_pause_goes_back_until_the_resume() {
    let mut bench = Bench::queued().await;
    let served = bench.free().await;
    assert_eq!(bench.pause().await, []);
    assert_eq!(bench.take(served).await, 1);
    assert_eq!(bench.wait(WAITER), Some(WaitReason::Paused));
    assert!(bench.is_free().await);

    let answered = bench.resume().await;
    assert_eq!(bench.take(answered).await, 1);
    assert!(bench.runs(WAITER));
}

#[actix_rt::test]
async fn a_grant_that_meets_an_abort_goes_back() {
    let mut bench = Bench::queued().await;
    // The limiter serves it before it receives the abort, and the grant is taken after that.
    let served = bench.free().await;
    assert_eq!(served.len(), 1);
    assert_eq!(bench.operate(Verb::Abort(WAITER)).await, []);
    bench.take(served).await;
    assert!(!bench.runs(WAITER));
    assert!(bench.is_free().await);
}

#[actix_rt::test]
async fn a_request_made_again_and_aborted_gives_back_what_an_older_one_got() {
    let (mut bench, served) = Bench::paused(true).await;
    assert_eq!(served.len(), 1);
    let answered = bench.resume().await;
    assert_eq!(bench.operate(Verb::Abort(WAITER)).await, []);
    assert_eq!(bench.take(served).await, 0, "it asked again");
    bench.take(answered).await;
    assert!(!bench.runs(WAITER));
    assert!(bench.is_free().await);
}

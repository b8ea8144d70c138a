//! Schedules: procedures that are submitted again and again, at the times of a cron expression or of an interval.
//!
//! A [`Schedule`] is a procedure itself. It sleeps until its next tick, submits the procedure of that tick, and sleeps
//! again; it runs for ever, and what is stored of it does not grow. It is on disk like any other procedure, has a page,
//! and can be paused, resumed and aborted.
//!
//! ```
//! use procession::schedule::{Jobs, Schedule};
//! use procession::operate::OperatorRequest;
//! use procession::{Executor, Procedure, StageContext, StageError, Step};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Report { day: String }
//!
//! impl Procedure for Report {
//!     const KIND: &'static str = "report";
//!     type Stage = ();
//!     type Env = ();
//!     type Output = ();
//!
//!     fn first(&self) {}
//!
//!     async fn execute(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
//!         cx.put("reports", &self.day, &true)?;
//!         Ok(Step::Done(()))
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("journal");
//! # actix_rt::System::new().block_on(async {
//! let jobs = Jobs::new().job("report", |tick| Ok(Report { day: tick.date() }));
//! let executor = Executor::builder(path)
//!     .register::<Report>(())
//!     .register::<Schedule>(jobs)
//!     .start()
//!     .await?;
//!
//! // At each start: the schedule is made once, and follows what the code says.
//! let nightly = Schedule::cron("report", "30 2 * * *", "Europe/Berlin")?;
//! let nightly = executor.schedule(nightly).await?;
//!
//! // And once now.
//! executor.run_now(nightly.id(), OperatorRequest::new("ann", "to see it")).await?;
//! # while executor.scan::<bool>("reports", "").await?.is_empty() {
//! #     actix_rt::time::sleep(std::time::Duration::from_millis(5)).await;
//! # }
//! # Ok(())
//! # })
//! # }
//! ```
//!
//! # What is promised
//!
//! - A tick submits its procedure **exactly once**: the submission and the schedule's own progress are one commit. The
//!   procedure has an idempotency key of the schedule's name and the tick's instant, such as
//!   `report 2026-11-25T01:30:00Z`, and that as its name.
//! - Ticks that were missed are [caught up](CatchUp), as far as the schedule says.
//! - A tick that is due while a run goes on meets the schedule's [`Overlap`].
//! - The submitted procedure is a family of its own. Its failure changes nothing about the schedule.
//!
//! # Changes of the clock
//!
//! An expression whose hours begin with `*`, such as `*/15 * * * *`, means a rhythm, and so does `@hourly`: it goes on in
//! elapsed time, so a skipped hour has no ticks, and an hour that the clock shows twice has them twice. Any other
//! expression means times of day, such as `30 2 * * *`, and each is one tick a day: one that the clock skips is due at
//! the end of the gap, and one that it shows twice is due at the first. An interval knows nothing of clocks that change.
//!
//! # Expressions
//!
//! Five fields: minute, hour, day of month, month, day of week (0 and 7 are Sunday), with `*`, lists, ranges, steps and
//! English names, and `L`, `W` and `#` as croner has them. If both days are restricted, either is enough. Names such as
//! `@daily` work as well. The zone is a name of the IANA database, such as `Europe/Berlin`, or `UTC`; the system's own
//! database is used if there is one.

mod error;
mod executor;
mod jobs;
mod plan;
mod policy;
mod progress;
mod request;
mod timetable;

use std::time::Duration;

use procession_actors::journal::codec;
use procession_actors::{Accepts, CodecError, Hooks, Procedure, StageContext, StageError, Step};
use procession_kernel::{Blob, HistoryDetail, RetryPolicy, Timestamp};
use serde::{Deserialize, Serialize};

pub use error::{BadSchedule, ScheduleError};
pub use jobs::{Jobs, Tick};
pub use policy::{CatchUp, Overlap};

use crate::bulk::{Bulk, BulkVerb};
use plan::{Plan, Unusable};
use progress::{Due, Progress, Running, Turn};
use request::Request;
use timetable::Timetable;

/// Longest name, in bytes. It is part of the name and the key of every run, beside the instant.
const NAME_MAX: usize = 128;
/// Newest turns that are kept in the history: a day of ticks at every quarter of an hour.
const HISTORY: u32 = 100;
/// The refusal of a signal whose payload the library did not write.
const NO_PAYLOAD: &str = "a request for a run has no payload, and a schedule is changed by its program alone, with \
                          `Executor::schedule`";
/// How soon a schedule looks again at what no signal tells it.
const LOOK_AGAIN: Duration = Duration::from_mins(1);
/// Requests that may wait, while the schedule is paused for instance.
const REQUESTS: usize = 100;

/// Submits a procedure again and again, until it is aborted: see the [module](self).
///
/// [`Executor::schedule`](crate::Executor::schedule) makes one, or changes the one of its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    name: String,
    plan: Plan,
    #[serde(default)]
    progress: Progress,
    /// Made by this process, and not read from the store.
    #[serde(skip)]
    is_new: bool,
}

impl Schedule {
    /// Name of the event that a schedule waits for. A signal of it without a payload, `null` or `()`, asks for a run
    /// now.
    pub const EVENT: &'static str = "request";

    /// Creates a schedule with the times of a cron expression in a time zone. It submits what the [job](Jobs::job) of
    /// its name makes; [`job`](Self::job) names another.
    ///
    /// ```
    /// use procession::schedule::Schedule;
    ///
    /// assert!(Schedule::cron("nightly", "30 2 * * *", "Europe/Berlin").is_ok());
    /// let wrong = Schedule::cron("nightly", "30 26 * * *", "Europe/Berlin");
    /// assert!(wrong.unwrap_err().to_string().starts_with("the cron expression \"30 26 * * *\" cannot be read"));
    /// ```
    ///
    /// # Errors
    ///
    /// [`BadSchedule`] if the name, the expression or the zone cannot be used.
    pub fn cron(
        name: impl Into<String>,
        expression: impl Into<String>,
        zone: impl Into<String>,
    ) -> Result<Self, BadSchedule> {
        let (expression, zone) = (expression.into(), zone.into());
        Self::new(name.into(), Timetable::Cron { expression, zone })
    }

    /// Creates a schedule with a fixed interval, of a second to 366 days. Its ticks are the multiples of the interval
    /// since 1970, so those of an hour are on the hour, in UTC, whenever the schedule was made.
    ///
    /// # Errors
    ///
    /// [`BadSchedule`] if the name or the interval cannot be used.
    pub fn every(name: impl Into<String>, interval: Duration) -> Result<Self, BadSchedule> {
        Self::new(name.into(), Timetable::every(interval)?)
    }

    fn new(name: String, timetable: Timetable) -> Result<Self, BadSchedule> {
        if name.is_empty() || name.len() > NAME_MAX {
            return Err(BadSchedule::Name { size: name.len() });
        }
        timetable.ticks()?;
        let plan = Plan {
            job: name.clone(),
            timetable,
            input: Blob::default(),
            catch_up: CatchUp::default(),
            overlap: Overlap::default(),
            until: None,
        };
        Ok(Self {
            name,
            plan,
            progress: Progress::default(),
            is_new: true,
        })
    }

    /// Names the job that makes the procedures, for several schedules with one job.
    #[must_use]
    pub fn job(mut self, job: impl Into<String>) -> Self {
        self.plan.job = job.into();
        self
    }

    /// Sets the input that the job reads with [`Tick::input`].
    ///
    /// # Errors
    ///
    /// [`CodecError`] if it cannot be encoded.
    pub fn with_input<T: Serialize + ?Sized>(mut self, input: &T) -> Result<Self, CodecError> {
        self.plan.input = codec::encode_user(input)?;
        Ok(self)
    }

    /// Says what becomes of ticks that were missed. Default: the newest of them runs.
    #[must_use]
    pub fn catch_up(mut self, catch_up: CatchUp) -> Self {
        self.plan.catch_up = catch_up;
        self
    }

    /// Says what becomes of a tick that is due while a run goes on. Default: it is skipped.
    #[must_use]
    pub fn overlap(mut self, overlap: Overlap) -> Self {
        self.plan.overlap = overlap;
        self
    }

    /// Ends the schedule after the last tick at or before this instant. By default it goes on until it is aborted.
    #[must_use]
    pub fn until(mut self, until: Timestamp) -> Self {
        self.plan.until = Some(until);
        self
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns when it is due, in words: the expression and the zone, or the interval.
    #[must_use]
    pub fn timetable(&self) -> String {
        self.plan.timetable.to_string()
    }

    /// Returns the next tick; `None` before the first turn, and after the last tick.
    #[must_use]
    pub fn next(&self) -> Option<Timestamp> {
        self.progress.next
    }

    /// Returns how many runs it has submitted.
    #[must_use]
    pub fn runs(&self) -> u64 {
        self.progress.runs
    }

    /// Returns how many ticks it has skipped because a run went on.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.progress.skipped
    }

    /// Returns the instants of the runs that wait for the end of the one that goes on, the oldest first.
    pub fn waiting(&self) -> impl Iterator<Item = Timestamp> {
        self.progress.waiting.iter().map(|due| due.at)
    }

    /// Returns the idempotency key of the run that goes on, as far as the schedule knows. Runs that may overlap are not
    /// followed.
    #[must_use]
    pub fn running(&self) -> Option<&str> {
        self.progress.running.as_ref().map(|running| running.key.as_str())
    }

    /// Returns the idempotency key of a run, which is its name as well.
    fn key_of(&self, due: Due) -> String {
        let asked = if due.asked { " asked" } else { "" };
        format!("{} {}{asked}", self.name, due.at)
    }

    /// Forgets the run that goes on, if it has ended.
    async fn look_at_running(&mut self, cx: &StageContext<'_, Self>) -> Result<(), StageError> {
        let Some(running) = &self.progress.running else {
            return Ok(());
        };
        let id = cx.submitted(running.key.as_str()).await?;
        let outcome = match id {
            Some(id) => cx.outcome(id).await?,
            None => None,
        };
        // A result that has been evicted had ended before.
        if outcome.is_none_or(|outcome| outcome.has_ended()) {
            self.progress.running = None;
        }
        Ok(())
    }

    /// Submits a run. The end of a run that others must wait for is told.
    fn start(&mut self, due: Due, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        let tick = Tick {
            name: &self.name,
            due,
            timetable: &self.plan.timetable,
            input: &self.plan.input,
        };
        let key = self.key_of(due);
        let mut submit = cx
            .env()
            .make(&self.plan.job, &tick)?
            .key(key.as_str())
            .named(key.as_str());
        if self.plan.overlap != Overlap::Allow {
            submit = submit.signal_at_end(cx.id(), Self::EVENT, &Request::Ended)?;
            let cancelled = false;
            self.progress.running = Some(Running { key, cancelled });
        }
        cx.submit_message(submit)?;
        Ok(())
    }

    /// Aborts the run that goes on, as an operator would.
    async fn cancel(&mut self, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        let Some(running) = &mut self.progress.running else {
            return Ok(());
        };
        if let Some(id) = cx.submitted(running.key.as_str()).await? {
            let who = format!("schedule {}", self.name);
            cx.submit(&Bulk::new(BulkVerb::Abort, [id], who, "the next run is due"))?;
        }
        running.cancelled = true;
        Ok(())
    }

    /// Returns what the signal that woke this stage asks for.
    fn request(&self, cx: &StageContext<'_, Self>) -> Option<Request> {
        let read = cx.signal()?.payload::<Request>();
        // Such as a broadcast, which no kind can refuse. An error would keep the schedule at this signal for ever.
        let warn = |error: &CodecError| {
            tracing::warn!(schedule = self.name(), %error, "a schedule ignores a request that it cannot read");
        };
        read.inspect_err(warn).ok()
    }

    /// Waits until this process may be able to go by the plan. It is a wait and no error, because a stage that backs off
    /// takes no change.
    fn look_again(&self, Unusable { stage, why }: &Unusable) -> Step<Self> {
        tracing::warn!(
            schedule = self.name(),
            %why,
            "a schedule runs nothing: register its job or install its time zone, or call Executor::schedule with another"
        );
        Step::Wait {
            event: Self::EVENT.to_owned(),
            timeout: Some(LOOK_AGAIN),
            then: *stage,
        }
    }

    async fn turn(&mut self, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        // What the turn before has skipped is on disk. A further attempt finds it again.
        let skipped = self.progress.uncounted.take().filter(|_| cx.attempt() == 1);
        cx.env().count_skipped(skipped);
        let (is_asked, mut change) = match self.request(cx) {
            Some(Request::Change(plan)) => (false, Some(plan)),
            Some(Request::Run) => (true, None),
            Some(Request::Ended) | None => (false, None),
        };
        self.look_at_running(cx).await?;
        let now = cx.now();
        let is_last_look = self.progress.is_over() && cx.timed_out();
        let mut ticks = self.plan.ticks(cx.env());
        if ticks.is_err()
            && let Some(plan) = change.take()
        {
            // Nobody can go by the old plan, so what was due by it is due by the new one.
            self.plan = plan;
            ticks = self.plan.ticks(cx.env());
        }
        let ticks = match ticks {
            Ok(ticks) => ticks,
            Err(unusable) => {
                if is_asked {
                    self.progress.keep_asked(now);
                }
                return Ok(self.look_again(&unusable));
            }
        };
        let orders = self.progress.turn(&Turn {
            now,
            ticks: &ticks,
            catch_up: self.plan.catch_up,
            overlap: self.plan.overlap,
            until: self.plan.until,
            is_asked,
        });
        for due in orders.start {
            self.start(due, cx)?;
        }
        if orders.cancel {
            self.cancel(cx).await?;
        }
        if let Some(plan) = change {
            // What was due until now has gone by the plan that it was due by.
            self.plan = plan;
            match self.plan.ticks(cx.env()) {
                Ok(ticks) => self.progress.look_ahead(&ticks, self.plan.until),
                Err(unusable) => return Ok(self.look_again(&unusable)),
            }
        }
        if self.progress.is_over() && is_last_look {
            return Ok(Step::Done(self.progress.runs));
        }
        let (timeout, then) = self.next_look(now);
        Ok(Step::Wait {
            event: Self::EVENT.to_owned(),
            timeout,
            then,
        })
    }

    /// Returns how long to wait for a request, and what for.
    fn next_look(&self, now: Timestamp) -> (Option<Duration>, ScheduleStage) {
        if self.progress.is_over() {
            // Requests in the mailbox were acknowledged. A wait takes a kept request before its timeout, however short that
            // is, so the schedule ends only after a wait that found none.
            return (Some(Duration::ZERO), ScheduleStage::Tick);
        }
        let next = self.progress.next.map(|next| next.since(now));
        if self.progress.waiting.is_empty() || next.is_some_and(|next| next <= LOOK_AGAIN) {
            return (next, ScheduleStage::Tick);
        }
        // A run that is discharged or was imported sends no signal when it ends.
        (Some(LOOK_AGAIN), ScheduleStage::EndOfRun)
    }
}

/// What a schedule waits for. Each stage looks at what is due, and submits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ScheduleStage {
    /// The next tick, or a request.
    Tick,
    /// The end of the run that goes on, because another waits for it. Looks again each minute.
    EndOfRun,
    /// Its job, which is not among the [`Jobs`] of this process, or a change. Each look is logged as a warning.
    UnknownJob,
    /// Its timetable, which this process cannot read, or a change. Each look is logged as a warning. The time zone may
    /// be missing on this machine.
    UnknownTimetable,
}

impl Procedure for Schedule {
    const KIND: &'static str = "procession.schedule";
    /// What was submitted stays submitted.
    const ROLLBACK: bool = false;
    const HISTORY: HistoryDetail = HistoryDetail::Newest(HISTORY);
    const SIGNALS: Option<usize> = Some(REQUESTS);
    type Stage = ScheduleStage;
    type Env = Jobs;
    type Output = u64;

    fn first(&self) -> Self::Stage {
        ScheduleStage::Tick
    }

    async fn execute(&mut self, _: Self::Stage, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        // Nothing that a job returns ends the schedule: other code, or another day, may do better.
        self.turn(cx).await.map_err(|error| match error {
            StageError::Fail(why) => StageError::Retry(why),
            other @ (StageError::Retry(_) | StageError::RetryAfter(..) | StageError::TimedOut(_) | _) => other,
        })
    }

    /// Counts what the last turn has skipped: none follows that would.
    fn hooks() -> Hooks<Self> {
        Hooks::<Self>::new().completion_cleanup(async |schedule: &mut Self, jobs: &Jobs| {
            jobs.count_skipped(schedule.progress.uncounted.take());
        })
    }

    /// Tries for ever, at least once a minute.
    fn retry() -> RetryPolicy {
        RetryPolicy::default().attempts(u32::MAX).max(Duration::from_mins(1))
    }

    /// The result of a schedule is of no use, and its name should be free soon after it was aborted.
    fn keep_after_acknowledgement() -> Option<Duration> {
        Some(Duration::ZERO)
    }

    /// Refuses to submit a schedule whose job is not among [`Jobs`], or whose time zone this machine does not know. One
    /// that is stored waits for them instead, as a quarantined one could not be changed.
    fn check(&self, jobs: &Jobs) -> Result<(), String> {
        if self.is_new { self.plan.check(jobs) } else { Ok(()) }
    }

    fn accepts(jobs: &Jobs) -> Accepts {
        let jobs = jobs.clone();
        Accepts::by(move |offer| {
            if offer.name() != Self::EVENT {
                return Err(format!("a schedule waits for the event \"{}\" alone", Self::EVENT));
            }
            match offer.payload::<Request>() {
                Ok(Request::Change(plan)) => plan.check(&jobs),
                Ok(Request::Run | Request::Ended) => Ok(()),
                Err(_) => Err(NO_PAYLOAD.to_owned()),
            }
        })
    }
}

//! How a host sets up schedules, and asks for a run.

use std::time::Duration;

use procession_actors::journal::codec;
use procession_actors::messages::Operate;
use procession_actors::{AskError, Procedure, ReadError, SubmitError};
use procession_kernel::{Operated, OperatorRequest, ProcedureId};

use super::plan::Plan;
use super::request::Request;
use super::{Schedule, ScheduleError};
use crate::executor::Executor;
use crate::handle::Handle;

/// How often, and at which interval, to check whether an ended schedule has been evicted.
const LOOKS: u32 = 20;
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

impl Executor {
    /// Sets up a schedule: makes it, or changes the live one of its name to what this one says. Call it at each start,
    /// with what the code says, and at any time with something else; the newest call counts.
    ///
    /// A changed timetable begins with the first tick after the change. Runs that wait stay. A paused schedule takes the
    /// change when it is resumed; further starts with the same plan add nothing. One that has ended, because it was
    /// aborted for instance, is made anew.
    ///
    /// A release that no longer registers the job of a live schedule gives it another one here. What was due until then
    /// goes by the new plan.
    ///
    /// ```
    /// use procession::schedule::{Jobs, Overlap, Schedule};
    /// use procession::procedure::Noop;
    /// use procession::Executor;
    /// use std::time::Duration;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("journal");
    /// # actix_rt::System::new().block_on(async {
    /// let executor = Executor::builder(path)
    ///     .register::<Noop>(())
    ///     .register::<Schedule>(Jobs::new().job("probe", |_| Ok(Noop)))
    ///     .start()
    ///     .await?;
    /// let probe = executor.schedule(Schedule::every("probe", Duration::from_secs(3600))?).await?;
    /// // The same schedule, from now on at other times.
    /// let daily = Schedule::cron("probe", "0 6 * * *", "UTC")?.overlap(Overlap::Queue(1));
    /// assert_eq!(executor.schedule(daily).await?.id(), probe.id());
    /// # Ok(())
    /// # })
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ScheduleError`] if it cannot be submitted, or the live one of its name does not take the change.
    pub async fn schedule(&self, schedule: Schedule) -> Result<Handle<Schedule>, ScheduleError> {
        let key = format!("schedule {}", schedule.name());
        let mut looks = 0;
        loop {
            let submission = self.submit(schedule.clone()).key(key.as_str());
            let id = match submission.named(schedule.name()).await {
                Ok(handle) => handle.id(),
                Err(SubmitError::KeyConflict { id, .. }) => id,
                Err(error) => return Err(error.into()),
            };
            match self.change(id, &schedule).await {
                Ok(()) => return Ok(self.handle(id)),
                // The name is free once the result has gone, which an acknowledgement brings about. Whether that was
                // taken is seen with the next look.
                Err(ScheduleError::Ask(AskError::Finished { .. })) => drop(self.acknowledge(id).await),
                // It has gone since.
                Err(ScheduleError::Ask(AskError::Unknown(_))) => {}
                Err(error) => return Err(error),
            }
            looks += 1;
            if looks == LOOKS {
                let name = schedule.name().to_owned();
                return Err(ScheduleError::Ended { name, id });
            }
            self.sleep(BETWEEN_LOOKS).await;
        }
    }

    /// Sends a schedule its new plan, unless it goes by that already, or will.
    async fn change(&self, id: ProcedureId, wanted: &Schedule) -> Result<(), ScheduleError> {
        // Also says that the schedule has ended, or has gone.
        let is_empty = self.mailbox(id).await?.kept.is_empty();
        // In this order: a change that is no longer kept is in the value.
        let kept = if is_empty { None } else { self.kept_plan(id).await? };
        let plan = match kept {
            Some(plan) => Some(plan),
            None => self
                .value::<Schedule>(id)
                .await
                .map_err(read)?
                .map(|stored| stored.plan),
        };
        if plan.as_ref() == Some(&wanted.plan) {
            return Ok(());
        }
        let change = Request::Change(wanted.plan.clone());
        self.signal(id, Schedule::EVENT, &change).await?;
        Ok(())
    }

    /// Returns the newest plan that a schedule has yet to take. A schedule that is paused, or whose job fails, keeps the
    /// change of the first start, and each further start would add one until its mailbox is full.
    async fn kept_plan(&self, id: ProcedureId) -> Result<Option<Plan>, AskError> {
        let stored = self.engine().committed().signals_with_payloads(id, usize::MAX).await?;
        let kept = stored.iter().rev().filter(|(signal, _)| !signal.entry.consumed);
        let mut plans = kept.filter_map(|(_, payload)| match codec::decode_user(payload.as_slice()) {
            Ok(Request::Change(plan)) => Some(plan),
            // The schedule ignores a signal that cannot be read.
            Ok(Request::Run | Request::Ended) | Err(_) => None,
        });
        Ok(plans.next())
    }

    /// Asks a schedule for a run now, beside its timetable, as an operator does. If a run goes on that may not overlap,
    /// this one waits for its end; one such run waits at a time. A paused schedule runs it when it is resumed.
    ///
    /// # Errors
    ///
    /// [`AskError::NotAccepted`] if the procedure is no schedule; [`AskError::Finished`] if it has ended,
    /// [`AskError::Unknown`] if it is not known; [`AskError::NotNow`] if 100 requests wait.
    pub async fn run_now(&self, id: ProcedureId, by: OperatorRequest) -> Result<Operated, AskError> {
        let kind = self.status(id).await?.kind;
        if kind.as_str() != Schedule::KIND {
            let name = Schedule::EVENT.to_owned();
            let why = format!("it is of the kind \"{kind}\", and no schedule");
            return Err(AskError::NotAccepted { id, name, why });
        }
        self.operate(Operate::signal(id, Schedule::EVENT, &Request::Run, by)?)
            .await
    }
}

fn read(error: ReadError) -> ScheduleError {
    ScheduleError::Ask(AskError::Read(error))
}

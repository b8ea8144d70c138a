//! A nightly batch: a schedule submits a procedure at half past two each night, in the time of Berlin. Its takings of a
//! day are closed exactly once, whatever crashes, and a night on which the process was down is made up for.
//!
//! ```text
//! cargo run --example schedule --features schedule
//! ```
//! The schedule is a procedure too: it is made once and found again at each start, goes by what the code says, and can
//! be paused, resumed and run now from the dashboard, the command line and here.
#![expect(clippy::print_stdout, reason = "an example talks")]

use std::error::Error;
use std::time::Duration;

use procession::operate::OperatorRequest;
use procession::provider::{Clock, SystemClock};
use procession::schedule::{BadSchedule, CatchUp, Jobs, Overlap, Schedule};
use procession::{Executor, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

/// Keyspace of what was closed: the day and the instant of the tick → how often.
const CLOSED: &str = "closed";

/// Closes the books of one day.
#[derive(Debug, Serialize, Deserialize)]
struct CloseDay {
    day: String,
    tick: String,
}

impl Procedure for CloseDay {
    const KIND: &'static str = "close_day";
    const ROLLBACK: bool = false;
    type Stage = ();
    type Env = ();
    type Output = ();

    fn first(&self) {}

    async fn execute(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let key = format!("{} {}", self.day, self.tick);
        let times = cx.get::<u32>(CLOSED, &key).await?.unwrap_or_default();
        cx.put(CLOSED, &key, &(times + 1))?;
        Ok(Step::Done(()))
    }
}

/// What ticks submit.
fn jobs() -> Jobs {
    Jobs::new().job("nightly", |tick| {
        Ok(CloseDay {
            day: tick.date(),
            tick: tick.at().to_string(),
        })
    })
}

/// Nights that were missed are made up for, up to a week of them, and a night waits for the one before it.
fn nightly() -> Result<Schedule, BadSchedule> {
    let nightly = Schedule::cron("nightly", "30 2 * * *", "Europe/Berlin")?;
    Ok(nightly.catch_up(CatchUp::All(7)).overlap(Overlap::Queue(7)))
}

#[actix_rt::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let executor = Executor::builder(directory.path().join("journal"))
        .register::<CloseDay>(())
        .register::<Schedule>(jobs())
        .start()
        .await?;
    // At each start. A changed expression in the code is a changed schedule.
    let schedule = executor.schedule(nightly()?).await?.id();
    // Nobody waits for the night here.
    let by = OperatorRequest::new("ann", "to see it");
    executor.run_now(schedule, by).await?;
    let closed = loop {
        let closed = executor.scan::<u32>(CLOSED, "").await?;
        if !closed.is_empty() {
            break closed;
        }
        SystemClock
            .sleep_until(SystemClock.now().after(Duration::from_millis(5)))
            .await;
    };
    for (key, times) in closed {
        println!("{} was closed {times} time", String::from_utf8_lossy(&key));
    }
    if let Some(next) = executor
        .value::<Schedule>(schedule)
        .await?
        .and_then(|schedule| schedule.next())
    {
        println!("next run at {next}");
    }
    Ok(())
}

#[cfg(all(test, feature = "testkit"))]
mod tests {
    use procession::procedure::Timestamp;
    use procession::testkit::{Check, Trouble};

    use super::*;

    #[test]
    fn each_night_is_closed_once_whatever_crashes() -> Result<(), Trouble> {
        let two_nights = Timestamp(0).after(Duration::from_hours(2 * 24));
        let schedule = nightly()?.until(two_nights);
        let check = Check::new(
            |builder| builder.register::<CloseDay>(()).register::<Schedule>(jobs()),
            move || schedule.clone(),
        );
        let check = check.afterwards(async |(), run, outcome| {
            let closed = run.executor.scan::<u32>(CLOSED, "").await?;
            let once = closed.iter().all(|(_, times)| *times == 1);
            match outcome.output::<u64>()? {
                Some(2) if once && closed.len() == 2 => Ok(()),
                runs => Err(format!("{runs:?} runs, and it closed {closed:?}").into()),
            }
        });
        check.crash_at_every_commit()?;
        check.run_stages_twice()?;
        Ok(())
    }
}

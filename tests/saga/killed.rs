//! Cases that a killed process has left, as the demo goes on with them.

use std::future::IntoFuture;
use std::path::Path;

use procession::ProcedureId;
use procession::saga::{Sagas, Standing};
use procession::testkit::{Simulated, TestClock, Trouble};
use procession_cli::saga::cases::Notes;
use serde_json::json;
use tempfile::TempDir;

use crate::kit::KEPT;
use crate::runner::{self, Case, Double};
use crate::{ROOT, Tested};

const CASE: &str = "src/cli/saga/demo/cases/g_066_designer_with_fork_last.json";

/// A process: a double and an engine, which go on in a directory.
struct Process {
    double: Double,
    sagas: Sagas,
    ground: Simulated,
}

impl Process {
    async fn begin(place: &Path, case: &Case) -> Result<Self, Trouble> {
        let (double, clock) = (Double::default(), TestClock::new());
        let sagas = runner::sagas(case, &double)?;
        let (notes, noted) = Notes::open(&place.join("notes.jsonl"))?;
        clock.advance_to(noted.now);
        double.go_on(case, clock.clone(), notes, noted);
        let its = sagas.clone();
        let set_up = |builder: procession::Builder| builder.sagas(its).retention(KEPT, KEPT);
        let ground = Simulated::start(&place.join("journal"), clock, set_up).await?;
        Ok(Self { double, sagas, ground })
    }

    async fn submit(&self, case: &Case) -> Result<ProcedureId, Trouble> {
        let machine = self.sagas.machine(&case.machine)?.params(&case.params)?;
        let submitted = self.ground.executor.submit(machine).key("the case").into_future();
        Ok(self.ground.at_rest(submitted).await.ok_or("no answer")??.id())
    }
}

#[test]
fn a_call_that_a_kill_cut_off_is_answered_by_the_rules_of_its_step() -> Tested {
    actix_rt::System::new().block_on(async {
        let case = runner::read(&Path::new(ROOT).join(CASE))?;
        let place = TempDir::new()?;
        let first = Process::begin(place.path(), &case).await?;
        first.double.set_rules(&serde_json::from_value::<Vec<_>>(
            json!([{ "state": "ForthState", "held": true }]),
        )?);
        let id = first.submit(&case).await?;
        first.ground.settle().await;
        first.ground.executor.shutdown().await;
        // Nobody does anything in the next one before the engine has made the call again.
        let next = Process::begin(place.path(), &case).await?;
        next.ground.pass(std::time::Duration::from_secs(1)).await;
        let saga = next.ground.executor.saga(id);
        let instance = next.ground.at_rest(saga.instance()).await.ok_or("no answer")??;
        assert_eq!(instance.standing, Standing::Ended);
        let expected = json!({ "fooInput": 3, "by": "bar" });
        assert_eq!(instance.context.get("fooResult"), Some(&expected));
        next.ground.executor.shutdown().await;
        Ok(())
    })
}

#[test]
fn a_call_with_which_processes_end_is_told_with_who_lets_it_go_on() -> Tested {
    actix_rt::System::new().block_on(async {
        let case = runner::read(&Path::new(ROOT).join(CASE))?;
        let place = TempDir::new()?;
        let held = serde_json::from_value::<Vec<_>>(json!([{ "state": "ForthState", "held": true }]))?;
        let mut process = Process::begin(place.path(), &case).await?;
        process.double.set_rules(&held);
        let id = process.submit(&case).await?;
        let mut told = Vec::new();
        for _ in 0..4 {
            process.ground.settle().await;
            let saga = process.ground.executor.saga(id);
            let instance = process.ground.at_rest(saga.instance()).await.ok_or("no answer")??;
            told.push(instance.sentence());
            process.ground.executor.shutdown().await;
            process = Process::begin(place.path(), &case).await?;
            process.double.set_rules(&held);
        }
        process.ground.executor.shutdown().await;
        let at = "at [ForthState]".to_owned();
        // The branch of the Fork, which is the one to be retried.
        let branch = ProcedureId::new(id.family, 2);
        let paused = format!("{at}, paused as poison ({branch}): stage ForthState runs once an operator resumes it");
        assert_eq!(told, [at.clone(), at.clone(), at, paused]);
        Ok(())
    })
}

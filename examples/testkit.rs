//! A procedure that provisions a service, and its tests: every property one line.
//!
//! ```text
//! cargo run --example testkit --features saga,testkit
//! ```
//! In your crate the lines of `main` are tests, and `procession` is a dev-dependency
//! with the features `saga` and `testkit`. Take the undo of a stage away, or have a stage append to
//! its file, and see what the kit says. The last line checks a saga.
#![expect(clippy::print_stdout, reason = "an example talks")]

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use procession::limits::{LockNeed, LockPath};
use procession::saga::{Call, Sagas};
use procession::testkit::{Check, Checked, Effects, Finding};
use procession::{Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

/// What the host gives to all stages: a directory, and a provider to call.
#[derive(Clone)]
struct Host {
    root: PathBuf,
    provider: Effects,
}

#[derive(Clone, Serialize, Deserialize)]
struct Provision {
    service: String,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Stage {
    Reserve,
    WriteConfig,
    CreateMachine,
    AwaitReady,
    Publish,
}

impl Provision {
    fn config(&self, root: &Path) -> PathBuf {
        root.join(format!("{}.toml", self.service))
    }

    fn machine(&self) -> String {
        format!("a machine for {}", self.service)
    }
}

impl Procedure for Provision {
    const KIND: &'static str = "provision";
    const HOLD_LOCKS: bool = true;
    type Stage = Stage;
    type Env = Host;
    type Output = String;

    fn first(&self) -> Stage {
        Stage::Reserve
    }

    fn locks(&self, _: &Stage) -> Vec<LockNeed> {
        vec![LockNeed::exclusive(LockPath::of(["service", &self.service]))]
    }

    async fn execute(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        match stage {
            Stage::Reserve => {
                cx.put("services", &self.service, &"reserved")?;
                Ok(Step::Next(Stage::WriteConfig))
            }
            Stage::WriteConfig => {
                let (config, text) = (self.config(&cx.env().root), format!("name = \"{}\"\n", self.service));
                cx.blocking(move || fs::write(config, text)).await??;
                Ok(Step::Next(Stage::CreateMachine))
            }
            Stage::CreateMachine => {
                // The provider deduplicates: the same token makes no second machine.
                cx.env().provider.happens(cx.token(), self.machine());
                Ok(Step::Sleep {
                    until: cx.now().after(Duration::from_secs(90)),
                    then: Stage::AwaitReady,
                })
            }
            Stage::AwaitReady if cx.attempt() == 1 => Err(StageError::retry("the machine does not answer yet")),
            Stage::AwaitReady => Ok(Step::Next(Stage::Publish)),
            Stage::Publish => {
                cx.put("services", &self.service, &"there")?;
                Ok(Step::Done(format!("https://{}.example", self.service)))
            }
        }
    }

    async fn rollback(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        match stage {
            Stage::Reserve => cx.delete("services", &self.service),
            Stage::WriteConfig => {
                let config = self.config(&cx.env().root);
                // There may be nothing to undo: the stage was cut off, or this undo was.
                cx.blocking(move || match fs::remove_file(config) {
                    Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
                    Ok(()) | Err(_) => Ok(()),
                })
                .await??;
            }
            Stage::CreateMachine => cx.env().provider.is_taken_back(self.machine()),
            Stage::Publish => cx.put("services", &self.service, &"reserved")?,
            Stage::AwaitReady => {}
        }
        Ok(())
    }
}

/// What lies outside the engine in a test; it is made anew for each run.
struct Outside {
    directory: tempfile::TempDir,
    provider: Effects,
}

/// All files, by name.
fn files(root: &Path) -> io::Result<BTreeMap<String, String>> {
    let text = |file: fs::DirEntry| Ok((file.file_name().display().to_string(), fs::read_to_string(file.path())?));
    fs::read_dir(root)?.map(|file| text(file?)).collect()
}

/// The scenario: what is outside, how the kind is registered, what is submitted; then
/// what of the outside the kit is to look at.
fn provision() -> Check<Outside> {
    Check::with(
        || {
            Ok(Outside {
                directory: tempfile::tempdir()?,
                provider: Effects::new(),
            })
        },
        |outside, builder| {
            builder.register::<Provision>(Host {
                root: outside.directory.path().to_owned(),
                provider: outside.provider.clone(),
            })
        },
        |_| Provision { service: "mail".into() },
    )
    .picture(|outside| Ok(files(outside.directory.path())?))
    .effects(|outside| outside.provider.clone())
}

/// A saga that reserves an article, and undoes that if the saga fails.
const ORDER: &str = r#"{ "Name": "order", "StartState": "Reserve", "States": {
    "Reserve": { "Type": "ServiceTask", "ServiceName": "stock", "ServiceMethod": "reserve", "Input": ["$.[article]"],
                 "CompensateState": "Release" },
    "Release": { "Type": "ServiceTask", "ServiceName": "stock", "ServiceMethod": "release", "Input": ["$.[article]"] } } }"#;

/// What is reserved. A reservation that is there stays the same one, so a call may be repeated.
type Stock = Arc<Mutex<BTreeSet<String>>>;

fn order() -> Check<(Stock, Sagas)> {
    let fresh = || {
        let stock = Stock::default();
        let (add, remove) = (Arc::clone(&stock), Arc::clone(&stock));
        let sagas = Sagas::builder()
            .json("order.json", ORDER)
            .method("stock", "reserve", async move |_: Call, (article,): (String,)| {
                Ok(add.lock().map(|mut all| all.insert(article)).unwrap_or_default())
            })
            .method("stock", "release", async move |_: Call, (article,): (String,)| {
                Ok(remove.lock().map(|mut all| all.remove(&article)).unwrap_or_default())
            })
            .build()?;
        Ok((stock, sagas))
    };
    Check::saga_with(fresh, "order", &BTreeMap::from([("article", "tea")]))
        .picture(|(stock, _)| Ok(stock.lock().map(|all| all.clone()).unwrap_or_default()))
}

fn main() -> Result<(), Box<dyn Error>> {
    let told = |name: &str, checked: Result<Checked, Finding>| -> Result<(), Finding> {
        let Checked { runs, crashes, .. } = checked?;
        println!("{name:<26} holds: {runs} runs, {crashes} crashes");
        Ok(())
    };
    told("succeeds", provision().succeeds())?;
    told("run_stages_twice", provision().run_stages_twice())?;
    told("fail_each_stage", provision().fail_each_stage())?;
    told("fail_each_undo", provision().fail_each_undo())?;
    told("run_undos_twice", provision().run_undos_twice())?;
    told("nothing_left", provision().nothing_left())?;
    told("crash_at_every_commit", provision().crash_at_every_commit())?;
    told("crash_while_rolling_back", provision().crash_while_rolling_back())?;
    told("crash_again_in_recovery", provision().crash_again_in_recovery())?;
    told("everything, seed 7", provision().seed(7).everything())?;
    told("everything, a saga", order().everything())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Finding, order, provision};

    #[test]
    fn a_service_survives_everything() -> Result<(), Finding> {
        provision().everything().map(drop)
    }

    #[test]
    fn a_saga_survives_everything() -> Result<(), Finding> {
        order().everything().map(drop)
    }
}

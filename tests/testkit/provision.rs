//! A procedure of a few stages with effects of every sort, and one planted fault.

use std::fs::{self, OpenOptions};
use std::io::Write;

use procession::limits::{LockNeed, LockPath};
use procession::testkit::Check;
use procession::{Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use crate::outside::{Outside, remove};

/// What is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// A stage that does not bear repetition: it appends to its file.
    Appends,
    /// A stage that leaves a file for each time it runs.
    FileEachTime,
    /// A stage without an undo.
    NoUndo,
    /// An undo that leaves a file over.
    Leftover,
    /// An undo that does not bear that there is nothing to undo.
    UndoOfNothing,
    /// An undo that does not bear repetition.
    UndoTwice,
    /// Two stages do the same.
    EffectTwice,
    /// An effect is not taken back.
    EffectStays,
    /// User data are not restored.
    DataStay,
    /// It fails by itself.
    Fails,
    /// It waits for an event that nobody sends.
    Waits,
}

/// Provisions a volume: a file, a payment, a call.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Provision {
    pub(crate) name: String,
    pub(crate) fault: Fault,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Stage {
    Reserve,
    Write,
    Pay,
    Announce,
}

impl Provision {
    fn file(&self, outside: &Outside, ending: &str) -> std::path::PathBuf {
        outside.path().join(format!("{}{ending}", self.name))
    }

    async fn write(&self, cx: &StageContext<'_, Self>) -> Result<(), StageError> {
        let (file, lock) = (self.file(cx.env(), ""), self.file(cx.env(), ".lock"));
        let each = self.file(cx.env(), &format!(".{}.{}", cx.fence().epoch, cx.fence().call));
        let fault = self.fault;
        cx.blocking(move || {
            if fault == Fault::Appends {
                let mut file = OpenOptions::new().create(true).append(true).open(file)?;
                file.write_all(b"volume\n")?;
            } else {
                let file = if fault == Fault::FileEachTime { each } else { file };
                fs::write(file, "volume\n")?;
            }
            fs::write(lock, "")
        })
        .await??;
        Ok(())
    }
}

impl Procedure for Provision {
    const KIND: &'static str = "provision";
    const HOLD_LOCKS: bool = true;
    type Stage = Stage;
    type Env = Outside;
    type Output = String;

    fn first(&self) -> Stage {
        Stage::Reserve
    }

    fn locks(&self, _: &Stage) -> Vec<LockNeed> {
        vec![LockNeed::exclusive(LockPath::of(["volume", &self.name]))]
    }

    async fn execute(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        match stage {
            Stage::Reserve => {
                cx.put("volumes", &self.name, &"reserved")?;
                Ok(Step::Next(Stage::Write))
            }
            Stage::Write => {
                self.write(cx).await?;
                if self.fault == Fault::EffectTwice {
                    cx.env().effects.happens(cx.token(), "announced");
                }
                Ok(Step::Next(Stage::Pay))
            }
            Stage::Pay if cx.attempt() == 1 => Err(StageError::retry("the bank did not answer")),
            Stage::Pay => {
                cx.env().pay(cx.token());
                Ok(Step::Next(Stage::Announce))
            }
            Stage::Announce if self.fault == Fault::Fails => Err(StageError::fail("it is planted")),
            Stage::Announce if self.fault == Fault::Waits => Ok(Step::Wait {
                event: "never".into(),
                timeout: None,
                then: Stage::Announce,
            }),
            Stage::Announce => {
                cx.env().effects.happens(cx.token(), "announced");
                cx.put("volumes", &self.name, &"there")?;
                Ok(Step::Done(self.name.clone()))
            }
        }
    }

    async fn rollback(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        match stage {
            Stage::Reserve if self.fault == Fault::DataStay => cx.put("volumes", &self.name, &"gone")?,
            Stage::Reserve => cx.delete("volumes", &self.name),
            Stage::Write if self.fault == Fault::NoUndo => {}
            Stage::Write => {
                let (file, lock) = (self.file(cx.env(), ""), self.file(cx.env(), ".lock"));
                let fault = self.fault;
                cx.blocking(move || {
                    if fault == Fault::UndoOfNothing {
                        fs::remove_file(file)?;
                    } else {
                        remove(&file)?;
                    }
                    if fault == Fault::Leftover {
                        Ok(())
                    } else {
                        remove(&lock)
                    }
                })
                .await??;
            }
            Stage::Pay => cx.env().pay_back(cx.token(), self.fault == Fault::UndoTwice),
            Stage::Announce if self.fault == Fault::EffectStays => {}
            Stage::Announce => cx.env().effects.is_taken_back("announced"),
        }
        Ok(())
    }
}

/// The scenario with this fault.
pub(crate) fn provision(fault: Fault) -> Check<Outside> {
    Check::with(
        Outside::new,
        |outside, builder| builder.register::<Provision>(outside.clone()).limit("provision", 1),
        move |_| Provision {
            name: "v1".into(),
            fault,
        },
    )
    .picture(Outside::picture)
    .effects(|outside| outside.effects.clone())
}

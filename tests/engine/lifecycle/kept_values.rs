//! The value that each stage and undo left, kept in the commit of its history entry where the kind asks for it.

use std::time::Duration;

use procession::procedure::{KindSettings, RetryPolicy};
use procession::status::{Ending, HistoryEntry, left_value};
use procession::testkit::{FaultPlan, Run, Trouble, World};
use procession::{Builder, Procedure, ProcedureId, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use super::kit::submit;
use crate::support::{Tested, each_crash};

/// Adds words, fails, and takes them off again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Words(Vec<String>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Stage {
    Short,
    Look,
    Long,
}

impl Procedure for Words {
    const KIND: &'static str = "words";
    const KEEP_VALUES: usize = 64;
    type Stage = Stage;
    type Env = ();
    type Output = ();

    fn first(&self) -> Stage {
        Stage::Short
    }

    async fn execute(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        match stage {
            Stage::Short => {
                self.0.push("a".to_owned());
                Ok(Step::Next(Stage::Look))
            }
            Stage::Look if cx.attempt() == 1 => {
                self.0.push("of an attempt that failed".to_owned());
                Err(StageError::retry("not yet"))
            }
            Stage::Look => Ok(Step::Next(Stage::Long)),
            Stage::Long if self.0.len() == 1 => {
                self.0.push("x".repeat(100));
                Ok(Step::Next(Stage::Long))
            }
            Stage::Long => Err(StageError::fail("enough")),
        }
    }

    async fn rollback(&mut self, stage: Stage, _: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        if stage == Stage::Long && self.0.len() > 1 {
            self.0.pop();
        }
        Ok(())
    }

    fn retry() -> RetryPolicy {
        RetryPolicy::default().attempts(3)
    }
}

/// What an entry says of the value: whether it is known, the size, and the words that it has.
fn told(entry: &HistoryEntry) -> Result<(bool, Option<u32>, Option<usize>), Trouble> {
    let words: Option<Words> = left_value(entry)?;
    let size = entry.value.as_ref().and_then(|left| left.size);
    Ok((entry.value.is_some(), size, words.map(|words| words.0.len())))
}

async fn rolled_back(run: &Run, words: Words) -> Result<Vec<HistoryEntry>, Trouble> {
    let handle = submit(run, words, "a").await?;
    let ended = run.wait(handle.outcome()).await?;
    if ended.is_ok() {
        return Err("it fails in the end".into());
    }
    run.pass(Duration::from_secs(1)).await;
    Ok(run.executor.history(handle.id()).await?)
}

#[test]
fn each_entry_has_the_value_that_its_call_left_however_it_crashes() -> Tested {
    let done = each_crash(
        |_: &World| (),
        |(), builder| builder.register::<Words>(()),
        async |(), run| {
            let entries = rolled_back(run, Words(Vec::new())).await?;
            let first = entries.iter().find(|entry| entry.ending == Ending::Next);
            assert_eq!(
                first.map(told).transpose()?,
                Some((true, Some(3), Some(1))),
                "{entries:?}"
            );
            let large = entries.iter().filter_map(|entry| entry.value.as_ref()?.size);
            assert_eq!(large.filter(|size| *size > 64).count(), 1, "{entries:?}");
            assert!(entries.iter().all(|entry| entry.value.is_some()), "{entries:?}");
            let family = entries.first().map_or(0, |entry| entry.family);
            let last = run.executor.value::<Words>(ProcedureId::root(family)).await?;
            assert_eq!(last, Some(Words(vec!["a".to_owned()])));
            Ok(())
        },
        |(), _| Ok(()),
    )?;
    assert!(done.commits >= 6, "{done:?}");
    Ok(())
}

#[test]
fn a_value_that_is_unchanged_or_too_large_is_told_so() -> Tested {
    let set_up = |builder: Builder| builder.register::<Words>(());
    let drive = async |run: &Run| {
        let entries = rolled_back(run, Words(Vec::new())).await?;
        let told = entries.iter().map(told).collect::<Result<Vec<_>, Trouble>>()?;
        assert_eq!(
            told,
            [
                (true, Some(3), Some(1)),
                (true, None, None),
                (true, None, None),
                (true, Some(105), None),
                (true, None, None),
                // Undos, the newest stage first; that of the last call takes the long word off.
                (true, Some(3), Some(1)),
                (true, None, None),
                (true, None, None),
                (true, None, None),
            ]
        );
        Ok(())
    };
    World::new().run(FaultPlan::none(), set_up, drive)?.done()
}

#[test]
fn a_kind_that_did_not_ask_keeps_nothing() -> Tested {
    let set_up = |builder: Builder| {
        let settings = KindSettings::default().keep_values(0);
        builder.register_as::<Words>(Words::KIND, settings, ())
    };
    let drive = async |run: &Run| {
        let entries = rolled_back(run, Words(Vec::new())).await?;
        assert!(
            !entries.is_empty() && entries.iter().all(|entry| entry.value.is_none()),
            "{entries:?}"
        );
        Ok(())
    };
    World::new().run(FaultPlan::none(), set_up, drive)?.done()
}

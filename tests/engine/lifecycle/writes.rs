//! What a stage writes for its user is in the stage's commit, or nowhere.

use std::time::Duration;

use procession::testkit::Run;
use procession::{Children, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use super::kit::{enumerate_in, submit};
use crate::support::{Call, Lab, Planned, Tested, chain, kinds};

/// How the stage ends that has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum How {
    Next,
    Done,
    Spawn,
    Sleep,
    Wait,
    Retry,
    Fail,
    Yield,
    Panic,
}

/// Adds 1 to a row in its first stage, which ends in one way. Where that lets
/// the stage run again, it does not add again.
#[derive(Clone, Serialize, Deserialize)]
struct Adding {
    how: How,
}

impl Procedure for Adding {
    const KIND: &'static str = "adding";
    type Stage = u32;
    type Env = Lab;
    type Output = ();

    fn first(&self) -> u32 {
        1
    }

    #[expect(clippy::panic, reason = "this is what is tested")]
    async fn execute(&mut self, stage: u32, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let (lab, attempt) = (cx.env().clone(), cx.attempt());
        let call = Call {
            name: "a".to_owned(),
            stage,
            undo: false,
            attempt,
            value: Vec::new(),
        };
        lab.called(cx.id(), call);
        let yields = self.how == How::Yield && lab.yields("a", 1);
        if stage == 2 || attempt > 1 || (self.how == How::Yield && !yields) {
            return Ok(Step::Done(()));
        }
        let before = cx.get::<i64>("rows", "x").await?.unwrap_or(0);
        cx.put("rows", "x", &(before + 1))?;
        let (second, then) = (Duration::from_secs(1), 2);
        match self.how {
            How::Next => Ok(Step::Next(then)),
            How::Done => Ok(Step::Done(())),
            How::Spawn => Ok(Step::Spawn {
                children: Children::new().and(&Planned(chain("c", 1)))?,
                then,
            }),
            How::Sleep => Ok(Step::Sleep {
                until: cx.now().after(second),
                then,
            }),
            How::Wait => Ok(Step::Wait {
                event: "never".to_owned(),
                timeout: Some(second),
                then,
            }),
            How::Retry => Err(StageError::retry("again")),
            How::Fail => Err(StageError::fail("no")),
            How::Yield => Ok(Step::Yield),
            How::Panic => panic!("after it has written"),
        }
    }
}

#[test]
fn e_007_user_writes_share_the_stages_commit() -> Tested {
    let grows = [How::Next, How::Done, How::Spawn, How::Sleep, How::Wait].map(|how| (how, Some(1)));
    let stays = [How::Retry, How::Fail, How::Yield, How::Panic].map(|how| (how, None));
    for (how, expected) in grows.into_iter().chain(stays) {
        let drive = async |_: &Lab, run: &Run| {
            let handle = submit(run, Adding { how }, "k").await?;
            let failed = run.wait(handle.outcome()).await?.is_err();
            assert_eq!(failed, how == How::Fail, "{how:?}");
            assert_eq!(run.executor.get::<i64>("rows", "x").await?, expected, "{how:?}");
            Ok(())
        };
        let set_up = |lab: &Lab, builder| kinds(lab, builder).register::<Adding>(lab.clone());
        let (_, lab) = enumerate_in(Lab::default, set_up, drive).map_err(|why| format!("{how:?}: {why}"))?;
        assert!(lab.has("a1"), "{how:?}");
    }
    Ok(())
}

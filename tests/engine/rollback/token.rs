//! The token of an undo is that of the stage that it undoes.

use procession::testkit::{FaultPlan, Run, World};
use procession::{Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use crate::lifecycle::kit::submit;
use crate::support::Tested;

/// Two stages that leave their tokens, and a third that fails. Each undo leaves its own.
#[derive(Serialize, Deserialize)]
struct Marked;

impl Procedure for Marked {
    const KIND: &'static str = "marked";
    type Stage = u8;
    type Env = ();
    type Output = ();

    fn first(&self) -> u8 {
        0
    }

    async fn execute(&mut self, stage: u8, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        if stage == 2 {
            return Ok(Step::Fail(cx.token().to_string()));
        }
        let token = cx.token().to_string();
        cx.put("done", stage.to_string(), &token)?;
        Ok(Step::Next(stage + 1))
    }

    async fn rollback(&mut self, stage: u8, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        if cx.attempt() == 1 {
            return Err(StageError::retry("its next attempt has the same token"));
        }
        let token = cx.token().to_string();
        cx.put("undone", stage.to_string(), &token)?;
        Ok(())
    }
}

#[test]
fn an_undo_has_the_token_of_its_stage() -> Tested {
    let drive = async |run: &Run| {
        let handle = submit(run, Marked, "a").await?;
        run.wait(handle.outcome()).await?.err().ok_or("it ended well")?;
        let done = run.executor.scan::<String>("done", "").await?;
        let undone = run.executor.scan::<String>("undone", "").await?;
        let tokens = |entries: &[(Vec<u8>, String)]| entries.iter().map(|(_, token)| token.clone()).collect::<Vec<_>>();
        let (done, undone) = (tokens(&done), tokens(&undone));
        assert_eq!((done.len(), undone.len()), (2, 3));
        assert_eq!(undone.get(..2), Some(&done[..]));
        assert!(!done.contains(&undone[2]), "the failed stage has another one");
        Ok(())
    };
    World::new()
        .run(FaultPlan::none(), |builder| builder.register::<Marked>(()), drive)?
        .done()
}

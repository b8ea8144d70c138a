//! A store has so many keyspaces of user data: a stage that would make one more fails, and the engine goes on.

use procession::errors::ProcedureError;
use procession::testkit::{FaultPlan, Run, World};
use procession::{Builder, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use super::kit::submit;
use crate::support::{Lab, Tested, kinds};

/// Writes one row to a keyspace of this name.
#[derive(Clone, Serialize, Deserialize)]
struct Writing {
    space: String,
}

impl Procedure for Writing {
    const KIND: &'static str = "writing";
    type Stage = u32;
    type Env = Lab;
    type Output = ();

    fn first(&self) -> u32 {
        1
    }

    async fn execute(&mut self, _: u32, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        cx.put(&self.space, "x", &1_i64)?;
        Ok(Step::Done(()))
    }
}

/// Whether one ended that writes to this keyspace; if it failed, why.
async fn writes(run: &Run, space: &str, key: &str) -> Result<Option<String>, procession::testkit::Trouble> {
    let space = space.to_owned();
    let handle = submit(run, Writing { space }, key).await?;
    match run.wait(handle.outcome()).await? {
        Ok(()) => Ok(None),
        Err(ProcedureError::Ask(why)) => Err(why.into()),
        Err(why) => Ok(Some(why.to_string())),
    }
}

#[test]
fn one_keyspace_too_many_fails_its_stage_also_after_a_restart() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let live = |life: &str, first: [&str; 2]| {
        let set_up = |builder: Builder| {
            let builder = kinds(&lab, builder).register::<Writing>(lab.clone());
            builder.max_keyspaces(2)
        };
        let drive = async |run: &Run| {
            for space in first {
                assert_eq!(writes(run, space, &format!("{life}-{space}")).await?, None);
            }
            let why = writes(run, "c", &format!("{life}-c")).await?.ok_or("it is refused")?;
            assert!(why.contains("max_keyspaces") && why.contains("\"c\""), "{why}");
            assert_eq!(run.executor.snapshot().await?.poisoned, None);
            assert_eq!(writes(run, "a", &format!("{life}-again")).await?, None);
            Ok(())
        };
        world.run(FaultPlan::none(), set_up, drive)?.done()
    };
    live("first", ["a", "b"])?;
    live("second", ["b", "a"])
}

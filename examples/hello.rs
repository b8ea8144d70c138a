//! Two stages and their undo, submitted with a key, awaited. Kill it at any time, and start it again.
#![expect(clippy::print_stdout, reason = "an example talks")]

use procession::{Executor, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Greet(String);

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Stage {
    Invite,
    Greet,
}

impl Procedure for Greet {
    const KIND: &'static str = "greet";
    type Stage = Stage;
    type Env = ();
    type Output = String;

    fn first(&self) -> Stage {
        Stage::Invite
    }

    async fn execute(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        match stage {
            Stage::Invite => cx.put("guests", &self.0, &true)?, // part of this stage's commit
            Stage::Greet => return Ok(Step::Done(format!("hello, {}", self.0))),
        }
        Ok(Step::Next(Stage::Greet))
    }

    async fn rollback(&mut self, _: Stage, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        cx.delete("guests", &self.0);
        Ok(())
    }
}

#[actix_rt::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let executor = Executor::builder("data/hello").register::<Greet>(()).start().await?;
    let handle = executor.submit(Greet("world".into())).key("hello-1").await?; // on disk from here on
    println!("{} ended: {}", handle.id(), handle.outcome().await?);
    executor.drain(std::time::Duration::from_secs(5)).await?;
    Ok(())
}

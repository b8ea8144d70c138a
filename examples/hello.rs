//! Two stages with rollback, submitted with a key, awaited.
#![expect(clippy::print_stdout, reason = "an example talks")]

use procession::{Executor, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

type Cx<'a> = StageContext<'a, Greet>;

#[derive(Serialize, Deserialize)]
struct Greet(String);

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Stage {
    Reserve,
    Greet,
}

impl Procedure for Greet {
    const KIND: &'static str = "greet";
    type Stage = Stage;
    type Env = ();
    type Output = String;

    fn first(&self) -> Stage {
        Stage::Reserve
    }

    async fn execute(&mut self, stage: Stage, cx: &mut Cx<'_>) -> Result<Step<Self>, StageError> {
        match stage {
            Stage::Reserve => cx.put("names", &self.0, &"taken")?,
            Stage::Greet if self.0.is_empty() => return Err(StageError::fail("nobody to greet")),
            Stage::Greet => return Ok(Step::Done(format!("hello, {}", self.0))),
        }
        Ok(Step::Next(Stage::Greet))
    }

    async fn rollback(&mut self, stage: Stage, cx: &mut Cx<'_>) -> Result<(), StageError> {
        match stage {
            Stage::Reserve => cx.delete("names", &self.0),
            Stage::Greet => {}
        }
        Ok(())
    }
}

#[actix_rt::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let builder = Executor::builder("data/hello").register::<Greet>(());
    let executor = builder.start().await?;
    let greet = Greet("world".into());
    let handle = executor.submit(greet).key("hello-1").await?;
    println!("{} ended: {}", handle.id(), handle.outcome().await?);
    executor.drain(std::time::Duration::from_secs(5)).await?;
    Ok(())
}

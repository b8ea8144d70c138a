//! The same engine, spoken to by actix messages: what an actor of yours would do.
//!
//! Every verb of the engine is a message to `Addr<Supervisor>`; the executor's
//! methods are thin sugar over them.
#![expect(clippy::print_stdout, reason = "an example talks")]

use std::error::Error;
use std::time::Duration;

use procession::messages::{AwaitOutcome, Limits, Operate, Query, Submit};
use procession::operate::OperatorRequest;
use procession::{Executor, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Square(u64);

impl Procedure for Square {
    const KIND: &'static str = "square";
    type Stage = ();
    type Env = ();
    type Output = u64;

    fn first(&self) -> Self::Stage {}

    async fn execute(&mut self, (): (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let square = self
            .0
            .checked_mul(self.0)
            .ok_or_else(|| StageError::fail("too large to square"))?;
        Ok(Step::Done(square))
    }
}

#[actix_rt::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let executor = Executor::builder("data/actix_messages")
        .register::<Square>(())
        .start()
        .await?;
    let supervisor = executor.supervisor();

    // The first `?` is the mailbox's, the second the engine's answer.
    let by = OperatorRequest::new("the example", "two squares at once are enough");
    supervisor.send(Operate::set_limit(Square::KIND, Some(2), by)).await??;
    let id = supervisor.send(Submit::new(&Square(12))?).await??;
    let outcome = supervisor.send(AwaitOutcome(id)).await??;
    println!("{id} ended {} with {:?}", outcome.state, outcome.output::<u64>()?);
    let status = supervisor.send(Query(id)).await??;
    println!("{id} is a {}, submitted at {}", status.kind, status.submitted.0);
    for limit in supervisor.send(Limits).await?? {
        println!("limit {}: {} of {:?} in use", limit.key, limit.used, limit.limit);
    }
    executor.drain(Duration::from_secs(5)).await?;
    Ok(())
}

//! An approval with a time limit: an order above 1,000 waits for a person, and is declined if nobody decides in a day.
//!
//! The question is on disk with the stage that asks it, so it survives any restart. People see it on the dashboard, with
//! its *Answer* button, as a verdict, and with `procession ls reason:decision`; programs answer with `Executor::decide`.
#![expect(clippy::print_stdout, reason = "an example talks")]

use std::error::Error;
use std::time::Duration;

use procession::operate::OperatorRequest;
use procession::{Executor, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

const DAY: Duration = Duration::from_hours(24);

#[derive(Clone, Serialize, Deserialize)]
struct Order {
    item: String,
    price: u32,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Stage {
    Check,
    Decide,
}

impl Procedure for Order {
    const KIND: &'static str = "order";
    type Stage = Stage;
    type Env = ();
    type Output = String;

    fn first(&self) -> Stage {
        Stage::Check
    }

    async fn execute(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        match stage {
            Stage::Check if self.price <= 1_000 => Ok(Step::Done("ordered".to_owned())),
            Stage::Check => Ok(Step::Ask {
                question: format!("Order {} for {}? Answer true or false.", self.item, self.price),
                timeout: Some(DAY),
                then: Stage::Decide,
            }),
            // Nobody decided, or somebody let it go on without an answer: that is a no.
            Stage::Decide => match cx.answer::<bool>()? {
                Some(true) => Ok(Step::Done("ordered after approval".to_owned())),
                Some(false) => Ok(Step::Done("declined".to_owned())),
                None => Ok(Step::Done("declined: nobody decided".to_owned())),
            },
        }
    }
}

fn order(price: u32) -> Order {
    Order {
        item: "a desk".to_owned(),
        price,
    }
}

#[actix_rt::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let executor = Executor::builder("data/approval").register::<Order>(()).start().await?;
    println!("for 900: {}", executor.submit(order(900)).await?.await?);

    let handle = executor.submit(order(2_500)).await?;
    // It asks in a moment. A program would rather follow changes with `Executor::subscribe`.
    let question = loop {
        match handle.status().await?.question {
            Some(question) => break question,
            None => tokio::task::yield_now().await,
        }
    };
    println!("{} asks: {question}", handle.id());
    let by = OperatorRequest::new("ann", "it is in the budget");
    executor.decide(handle.id(), &true, by).await?;
    println!("for 2500: {}", handle.await?);

    executor.drain(Duration::from_secs(5)).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use procession::testkit::{Check, Finding};

    use super::{Order, order};

    /// Nobody decides: whatever crashes come, it is declined after a day of the simulated clock.
    #[test]
    fn an_order_that_nobody_approves_survives_every_crash() -> Result<(), Finding> {
        Check::new(|builder| builder.register::<Order>(()), || order(2_500))
            .everything()
            .map(drop)
    }
}

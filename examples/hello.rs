//! Two stages with ten seconds between them. Kill it meanwhile, start it again: it goes on where it was.
#![expect(clippy::print_stdout, reason = "an example talks")]

use std::error::Error;
use std::time::Duration;

use procession::{Executor, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Order(String);

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Stage {
    Reserve,
    Ship,
}

impl Procedure for Order {
    const KIND: &'static str = "order";
    type Stage = Stage;
    type Env = ();
    type Output = String;

    fn first(&self) -> Stage {
        Stage::Reserve
    }

    async fn execute(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        println!("{stage:?} {}", self.0);
        match stage {
            Stage::Reserve => {
                cx.put("reserved", &self.0, &1)?; // part of this stage's commit
                let (until, then) = (cx.now().after(Duration::from_secs(10)), Stage::Ship);
                Ok(Step::Sleep { until, then })
            }
            Stage::Ship => Ok(Step::Done(format!("{} is on its way", self.0))),
        }
    }

    async fn rollback(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        match stage {
            Stage::Reserve => cx.delete("reserved", &self.0),
            Stage::Ship => {}
        }
        Ok(())
    }
}

#[actix_rt::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let executor = Executor::builder("data/hello").register::<Order>(()).start().await?;
    let order = executor.submit(Order("tea".into())).key("order-1").await?; // on disk from here on, once
    println!("{}", order.await?);
    executor.drain(Duration::from_secs(5)).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use procession::testkit::{Check, Finding};

    use super::Order;

    #[test]
    fn an_order_survives_everything() -> Result<(), Finding> {
        let check = Check::new(|builder| builder.register::<Order>(()), || Order("tea".into()));
        println!("{:?}", check.everything()?);
        Ok(())
    }
}

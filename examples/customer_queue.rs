//! A queue for each customer: orders of one customer are handled one at a time, in the order in which they came, and
//! customers do not wait for each other.
//!
//! ```text
//! cargo run --example customer_queue
//! ```
//! A queue is a procedure that waits for signals. It is found by its idempotency key and created by whoever comes
//! first. A signal is an order: it is on disk before its sender is answered, and the sender's key, here the number of
//! the order, makes a repeat harmless. The last signal closes the queue.
//!
//! A crash between two orders loses none and handles none twice; the test at the end of this file shows it.
#![expect(clippy::print_stdout, reason = "an example talks")]

use std::error::Error;

use procession::messages::SendSignal;
use procession::procedure::Hold;
use procession::{Executor, Procedure, ProcedureId, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

/// Name of the event.
const ORDER: &str = "order";
/// Keyspace of what each customer has got: customer and order number → item.
const SHIPPED: &str = "shipped";
/// So many queues are busy at once. The others keep their orders on disk.
const BUSY: u32 = 8;

#[derive(Debug, Serialize, Deserialize)]
struct Order {
    number: u32,
    item: String,
}

/// The queue of one customer.
#[derive(Debug, Serialize, Deserialize)]
struct Queue {
    customer: String,
    handled: u32,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Stage {
    Open,
    Handle,
}

impl Procedure for Queue {
    const KIND: &'static str = "queue";
    // Orders that were handled stay handled: the queue as a whole is never taken back.
    const ROLLBACK: bool = false;
    // Between two orders, and while it waits for one, it gives its permit to another customer.
    const HOLD: Hold = Hold::WhileActive;
    // A sender that comes too fast is refused, and comes again.
    const SIGNALS: Option<usize> = Some(1_000);
    type Stage = Stage;
    type Env = ();
    type Output = u32;

    fn first(&self) -> Stage {
        Stage::Open
    }

    async fn execute(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        if let (Stage::Handle, Some(signal)) = (stage, cx.signal()) {
            let order: Order = signal.payload()?;
            // This write, the count and the end of the signal are one commit.
            cx.put(SHIPPED, format!("{}/{}", self.customer, order.number), &order.item)?;
            self.handled += 1;
            if signal.last {
                return Ok(Step::Done(self.handled));
            }
        }
        Ok(Step::Wait {
            event: ORDER.to_owned(),
            timeout: None,
            then: Stage::Handle,
        })
    }
}

fn queue_of(customer: &str) -> Queue {
    Queue {
        customer: customer.to_owned(),
        handled: 0,
    }
}

/// Makes the signal of an order, which may be sent any number of times.
fn order(to: ProcedureId, number: u32, item: &str) -> Result<SendSignal, Box<dyn Error>> {
    let item = item.to_owned();
    Ok(SendSignal::new(to, ORDER, &Order { number, item })?.key(format!("order {number}")))
}

/// What a customer orders; the last order closes the queue.
fn orders(to: ProcedureId) -> Result<Vec<SendSignal>, Box<dyn Error>> {
    Ok(vec![
        order(to, 1, "tea")?,
        order(to, 2, "milk")?,
        order(to, 3, "sugar")?.last(),
    ])
}

#[actix_rt::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let executor = Executor::builder(directory.path().join("journal"))
        .register::<Queue>(())
        .limit(Queue::KIND, BUSY)
        .start()
        .await?;
    let mut queues = Vec::new();
    for customer in ["ann", "bob"] {
        let queue = executor.submit(queue_of(customer)).key(customer).await?;
        // All or none, in this order. A repeat is answered with the numbers of the first.
        let numbers = executor.signal_all(orders(queue.id())?).await?;
        assert_eq!(executor.signal_all(orders(queue.id())?).await?, numbers);
        queues.push((customer, queue));
    }
    for (customer, queue) in queues {
        println!("{customer}: {} orders were handled", queue.await?);
        for (_, item) in executor.scan::<String>(SHIPPED, customer).await? {
            println!("  {item}");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use procession::testkit::{Check, Trouble};

    use super::*;

    #[test]
    fn no_order_is_lost_or_handled_twice_whatever_crashes() -> Result<(), Trouble> {
        let check = Check::new(|builder| builder.register::<Queue>(()), || queue_of("ann"));
        let check = check.client(async |(), run, id| {
            let sent = orders(id).map_err(|error| error.to_string())?;
            // The queue may have ended by now.
            run.executor.signal_all(sent).await.ok();
            Ok(())
        });
        let check = check.afterwards(async |(), run, outcome| {
            let shipped = run.executor.scan::<String>(SHIPPED, "ann").await?;
            let shipped: Vec<String> = shipped.into_iter().map(|(_, item)| item).collect();
            let expected = outcome
                .output::<u32>()?
                .map_or(shipped.len(), |handled| handled as usize);
            let sound = shipped.len() == expected && ["tea", "milk", "sugar"].starts_with(&text(&shipped));
            if sound {
                Ok(())
            } else {
                Err(format!("it shipped {shipped:?}").into())
            }
        });
        check.everything()?;
        Ok(())
    }

    fn text(items: &[String]) -> Vec<&str> {
        items.iter().map(String::as_str).collect()
    }
}

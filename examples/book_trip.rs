//! A saga: a trip books flight, hotel and car as children. The car cannot be
//! had, so what was booked is cancelled again, newest first.
//!
//! Each child is listed with `and_compensated`: though it succeeded, it is
//! undone when the family rolls back. What the bookings wrote is user data,
//! committed with the stage that wrote it, so the store tells at any time what
//! is booked.
#![expect(clippy::print_stdout, reason = "an example talks")]

use std::error::Error;
use std::time::Duration;

use procession::{Children, Executor, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

/// Keyspace of the bookings: place → price.
const BOOKINGS: &str = "bookings";

#[derive(Clone, Serialize, Deserialize)]
struct BookTrip {
    wishes: Vec<Book>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum TripStage {
    BookAll,
    Confirm,
}

impl Procedure for BookTrip {
    const KIND: &'static str = "book_trip";
    type Stage = TripStage;
    type Env = ();
    type Output = u32;

    fn first(&self) -> TripStage {
        TripStage::BookAll
    }

    async fn execute(&mut self, stage: TripStage, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        match stage {
            TripStage::BookAll => {
                // One at a time, so that the order of the undos shows.
                let children = self
                    .wishes
                    .iter()
                    .try_fold(Children::new(), Children::and_compensated)?;
                Ok(Step::Spawn {
                    children: children.width(1),
                    then: TripStage::Confirm,
                })
            }
            TripStage::Confirm => {
                let mut total = 0;
                for child in cx.children() {
                    total += child.output::<u32>()?.unwrap_or_default();
                }
                Ok(Step::Done(total))
            }
        }
    }
}

/// One booking. Its stage writes the booking, its rollback takes it away.
#[derive(Clone, Serialize, Deserialize)]
struct Book {
    place: String,
    price: u32,
}

impl Procedure for Book {
    const KIND: &'static str = "book";
    type Stage = ();
    type Env = ();
    type Output = u32;

    fn first(&self) -> Self::Stage {}

    async fn execute(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        println!("{} books {}", cx.id(), self.place);
        if self.place == "car" {
            return Err(StageError::fail("no car is left"));
        }
        cx.put(BOOKINGS, &self.place, &self.price)?;
        Ok(Step::Done(self.price))
    }

    async fn rollback(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        println!("{} cancels {}", cx.id(), self.place);
        cx.delete(BOOKINGS, &self.place);
        Ok(())
    }
}

#[actix_rt::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let executor = Executor::builder("data/book_trip")
        .register::<BookTrip>(())
        .register::<Book>(())
        .start()
        .await?;
    let wishes = [("flight", 300), ("hotel", 200), ("car", 100)];
    let wishes = wishes.map(|(place, price)| Book {
        place: place.to_owned(),
        price,
    });
    let handle = executor
        .submit(BookTrip {
            wishes: wishes.to_vec(),
        })
        .await?;
    match handle.outcome().await {
        Ok(total) => println!("{} is booked for {total}", handle.id()),
        Err(error) => println!("{} was not booked: {error}", handle.id()),
    }
    for member in executor.tree(handle.id()).await? {
        println!("  {} {} ended {}", member.id, member.kind, member.state);
    }
    let booked = executor.scan::<u32>(BOOKINGS, "").await?;
    println!("bookings left: {}", booked.len());
    executor.drain(Duration::from_secs(5)).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use procession::testkit::{Check, Finding};

    use super::*;

    /// Without a car: it succeeds, and is also failed at each stage.
    #[test]
    fn a_trip_is_booked_or_cancelled_whatever_crashes() -> Result<(), Finding> {
        let trip = || BookTrip {
            wishes: [("flight", 300), ("hotel", 200)]
                .map(|(place, price)| Book {
                    place: place.to_owned(),
                    price,
                })
                .to_vec(),
        };
        let check = Check::new(|builder| builder.register::<BookTrip>(()).register::<Book>(()), trip);
        check.everything().map(drop)
    }
}

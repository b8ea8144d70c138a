//! New code under procedures that are under way: a value with other fields, and a stage with another name.
//!
//! ```text
//! cargo run --example upgrade
//! ```
//! An order is submitted to the code of last year and waits for its pick-up. Then the process ends, and one with the
//! code of this year goes on with it.
#![expect(clippy::print_stdout, reason = "an example talks")]

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use procession::errors::UpgradeError;
use procession::procedure::Old;
use procession::{Executor, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

const KEY: &str = "order 1";
const PICKED_UP: &str = "picked up";

/// As it is now: two fields for the name, and a stage `Wrap` that was called `Pack`.
#[derive(Serialize, Deserialize)]
struct Order {
    first_name: String,
    last_name: String,
    /// New as well. Rows without it are read as they are: a default needs no version.
    #[serde(default)]
    is_gift: bool,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Stage {
    /// Rows on disk have the old name.
    #[serde(alias = "Pack")]
    Wrap,
    /// Orders may still wait for this.
    HandOver,
}

/// The value of version 1, for `upgrade` alone.
#[derive(Deserialize)]
struct Order1 {
    name: String,
}

impl Procedure for Order {
    const KIND: &'static str = "order";
    const VERSION: u16 = 2;
    const OLDEST: u16 = 1;
    type Stage = Stage;
    type Env = ();
    type Output = String;

    fn first(&self) -> Stage {
        Stage::Wrap
    }

    async fn execute(&mut self, stage: Stage, _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        match stage {
            Stage::Wrap => Ok(Step::Wait {
                event: PICKED_UP.to_owned(),
                timeout: None,
                then: Stage::HandOver,
            }),
            Stage::HandOver => {
                let paper = if self.is_gift { "in gold paper" } else { "in a bag" };
                Ok(Step::Done(format!(
                    "for {}, {}, {paper}",
                    self.last_name, self.first_name
                )))
            }
        }
    }

    fn upgrade(version: u16, old: Old<'_>) -> Result<Self, UpgradeError> {
        match version {
            1 => {
                let Order1 { name } = old.decode()?;
                let (first_name, last_name) = name.split_once(' ').unwrap_or(("", &name));
                Ok(Self {
                    first_name: first_name.to_owned(),
                    last_name: last_name.to_owned(),
                    is_gift: false,
                })
            }
            _ => Err(UpgradeError::new("only version 1 came before this one")),
        }
    }
}

/// The code of last year. In your program it is in the history of the repository.
mod last_year {
    use super::{Deserialize, PICKED_UP, Procedure, Serialize, StageContext, StageError, Step};

    #[derive(Serialize, Deserialize)]
    pub(super) struct Order {
        pub(super) name: String,
    }

    #[derive(Clone, Copy, Debug, Serialize, Deserialize)]
    pub(super) enum Stage {
        Pack,
        HandOver,
    }

    impl Procedure for Order {
        const KIND: &'static str = "order";
        type Stage = Stage;
        type Env = ();
        type Output = String;

        fn first(&self) -> Stage {
            Stage::Pack
        }

        async fn execute(&mut self, stage: Stage, _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
            match stage {
                Stage::Pack => Ok(Step::Wait {
                    event: PICKED_UP.to_owned(),
                    timeout: None,
                    then: Stage::HandOver,
                }),
                Stage::HandOver => Ok(Step::Done(format!("for {}", self.name))),
            }
        }
    }
}

/// Runs an order through both, and returns what became of it.
async fn rolled_out(journal: &Path) -> Result<String, Box<dyn Error>> {
    let patience = Duration::from_secs(5);
    let before = Executor::builder(journal)
        .register::<last_year::Order>(())
        .start()
        .await?;
    let name = "Ann Smith".to_owned();
    let id = before.submit(last_year::Order { name }).key(KEY).await?.id();
    before.drain(patience).await?;

    let after = Executor::builder(journal).register::<Order>(()).start().await?;
    after.signal(id, PICKED_UP, &()).key("pick-up of order 1").await?;
    let end = after.handle::<Order>(id).await?;
    after.drain(patience).await?;
    Ok(end)
}

#[actix_rt::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    println!("{}", rolled_out(&directory.path().join("journal")).await?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::rolled_out;

    #[actix_rt::test]
    async fn an_order_of_last_year_is_handed_over_by_the_code_of_this_year() -> Result<(), Box<dyn std::error::Error>> {
        let directory = tempfile::tempdir()?;
        assert_eq!(
            rolled_out(&directory.path().join("journal")).await?,
            "for Smith, Ann, in a bag"
        );
        Ok(())
    }
}

//! An order: reserved, charged, shipped. What fails on the way is undone in reverse, so that an order ends shipped and
//! paid, or with nothing left of it.

use std::fmt;
use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::goods::Goods;
use super::partner::{Answer, Deal, Partner};
use super::{BANK_CALLS, SHELVES, Shop};
use procession::limits::{LimitKey, LockNeed, LockPath};
use procession::procedure::RetryPolicy;
use procession::{Procedure, StageContext, StageError, Step};

/// What a customer has ordered. The engine stores the value after each stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The order's number.
    pub number: u64,
    /// The goods.
    pub goods: String,
    /// How many of them.
    pub quantity: u32,
    price: u32,
    customer: String,
    town: String,
    is_reserved: bool,
}

/// The stages of an order. The name of the next one is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Takes the goods from their shelf.
    Reserve,
    /// Has the bank charge the customer.
    Charge,
    /// Hands the parcel to the carrier.
    Ship,
}

impl Procedure for Order {
    const KIND: &'static str = "order";
    type Stage = Stage;
    type Env = Shop;
    /// What was paid.
    type Output = u32;

    fn first(&self) -> Stage {
        Stage::Reserve
    }

    async fn execute(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        match stage {
            Stage::Reserve => {
                let left = self.left(cx).await?;
                let Some(rest) = left.checked_sub(self.quantity) else {
                    return Err(StageError::fail(format!(
                        "{} × {} is more than the {left} on the shelf",
                        self.quantity, self.goods
                    )));
                };
                // The shelf, this value and the name of the next stage are one commit.
                cx.put(SHELVES, &self.goods, &rest)?;
                tracing::info!(goods = self.goods, quantity = self.quantity, rest, "reserved");
                self.is_reserved = true;
                Ok(Step::Next(Stage::Charge))
            }
            Stage::Charge => {
                self.agree(cx, &cx.env().bank, self.cost()).await?;
                Ok(Step::Next(Stage::Ship))
            }
            Stage::Ship => {
                self.agree(cx, &cx.env().carrier, self.quantity).await?;
                Ok(Step::Done(self.cost()))
            }
        }
    }

    /// The stage that failed is undone as well, because it may have done half of its work. So an undo bears that there
    /// is nothing to undo.
    async fn rollback(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        match stage {
            Stage::Reserve if self.is_reserved => {
                let left = self.left(cx).await?;
                cx.put(SHELVES, &self.goods, &(left + self.quantity))?;
                self.is_reserved = false;
                Ok(())
            }
            Stage::Reserve => Ok(()),
            Stage::Charge => call(cx, &cx.env().bank, Partner::take_back).await,
            Stage::Ship => call(cx, &cx.env().carrier, Partner::take_back).await,
        }
    }

    /// Two orders of the same goods take them one after the other.
    fn locks(&self, stage: &Stage) -> Vec<LockNeed> {
        match stage {
            Stage::Reserve => vec![LockNeed::exclusive(LockPath::of(["shelf", self.goods.as_str()]))],
            Stage::Charge | Stage::Ship => Vec::new(),
        }
    }

    /// The bank takes few calls at once.
    fn limits(&self, stage: &Stage) -> Vec<LimitKey> {
        match stage {
            Stage::Charge => vec![LimitKey::from(BANK_CALLS)],
            Stage::Reserve | Stage::Ship => Vec::new(),
        }
    }

    /// A line that dropped is there again soon.
    fn retry() -> RetryPolicy {
        RetryPolicy::default().attempts(5).base(Duration::from_millis(100))
    }
}

impl Order {
    /// Writes an order down.
    #[must_use]
    pub fn new(number: u64, (customer, town): (&str, &str), goods: &Goods, quantity: u32) -> Self {
        Self {
            number,
            goods: goods.name.to_owned(),
            quantity,
            price: goods.price,
            customer: customer.to_owned(),
            town: town.to_owned(),
            is_reserved: false,
        }
    }

    /// Returns the key under which it is submitted: the same order twice is one order.
    #[must_use]
    pub fn key(&self) -> String {
        format!("order-{}", self.number)
    }

    /// Returns what the customer pays.
    #[must_use]
    pub const fn cost(&self) -> u32 {
        self.quantity.saturating_mul(self.price)
    }

    /// Agrees with a partner. An error of the line runs the stage again; a refusal fails the order.
    async fn agree(&self, cx: &StageContext<'_, Self>, partner: &Partner, amount: u32) -> Result<(), StageError> {
        let deal = Deal {
            order: self.number,
            amount,
            town: self.town.clone(),
        };
        match call(cx, partner, move |partner, token| partner.agree(token, &deal)).await? {
            Answer::Agreed => {
                tracing::info!(amount, "agreed");
                Ok(())
            }
            Answer::Refused(why) => {
                tracing::warn!(amount, "refused");
                Err(StageError::fail(why))
            }
        }
    }

    async fn left(&self, cx: &StageContext<'_, Self>) -> Result<u32, StageError> {
        let left = cx.get(SHELVES, &self.goods).await?;
        left.ok_or_else(|| StageError::fail(format!("the shop has no {}", self.goods)))
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            number,
            goods,
            quantity,
            customer,
            town,
            ..
        } = self;
        write!(f, "order {number}, {quantity} × {goods} for {customer} of {town}")
    }
}

/// Calls a partner on a thread of its own, because the stages of many orders share this one. The token is that of the
/// stage: the same on every run of it and of its undo.
async fn call<T, F>(cx: &StageContext<'_, Order>, partner: &Partner, work: F) -> Result<T, StageError>
where
    T: Send + 'static,
    F: FnOnce(&Partner, &str) -> io::Result<T> + Send + 'static,
{
    let (partner, token) = (partner.clone(), cx.token().to_string());
    Ok(cx.blocking(move || work(&partner, &token)).await??)
}

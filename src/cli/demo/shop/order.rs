//! An order: reserved, charged, shipped. What fails on the way is undone in reverse, so that an order ends shipped and
//! paid, or with nothing left of it.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::goods::Goods;
use super::partner::{Deal, Partner};
use super::{BANK_CALLS, SHELVES, Shop};
use procession::limits::{LimitKey, LockNeed, LockPath};
use procession::procedure::RetryPolicy;
use procession::{Procedure, StageContext, StageError, Step};

/// The bank pays no more than this for one order.
const CREDIT: u32 = 1_000;
/// Where no carrier goes.
const OUT_OF_REACH: &str = "Atlantis";

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
                self.is_reserved = true;
                Ok(Step::Next(Stage::Charge))
            }
            Stage::Charge if self.cost() > CREDIT => Err(StageError::fail(format!(
                "the bank declines the card for {}",
                self.cost()
            ))),
            Stage::Charge => {
                call(cx, &cx.env().bank, self.deal(self.cost()), Partner::agree).await?;
                Ok(Step::Next(Stage::Ship))
            }
            Stage::Ship if self.town == OUT_OF_REACH => {
                Err(StageError::fail(format!("no carrier goes to {}", self.town)))
            }
            Stage::Ship => {
                call(cx, &cx.env().carrier, self.deal(self.quantity), Partner::agree).await?;
                Ok(Step::Done(self.cost()))
            }
        }
    }

    /// The stage that failed is undone as well, because it may have done half of its work. So an undo bears that there
    /// is nothing to undo.
    async fn rollback(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        let take_back = |partner: &Partner, token: &str, _: &Deal| partner.take_back(token);
        match stage {
            Stage::Reserve if self.is_reserved => {
                let left = self.left(cx).await?;
                cx.put(SHELVES, &self.goods, &(left + self.quantity))?;
                self.is_reserved = false;
                Ok(())
            }
            Stage::Reserve => Ok(()),
            Stage::Charge => call(cx, &cx.env().bank, self.deal(self.cost()), take_back).await,
            Stage::Ship => call(cx, &cx.env().carrier, self.deal(self.quantity), take_back).await,
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

    const fn deal(&self, amount: u32) -> Deal {
        Deal {
            order: self.number,
            amount,
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
async fn call<F>(cx: &StageContext<'_, Order>, partner: &Partner, deal: Deal, work: F) -> Result<(), StageError>
where
    F: FnOnce(&Partner, &str, &Deal) -> std::io::Result<()> + Send + 'static,
{
    let (partner, token) = (partner.clone(), cx.token().to_string());
    cx.blocking(move || work(&partner, &token, &deal)).await??;
    Ok(())
}

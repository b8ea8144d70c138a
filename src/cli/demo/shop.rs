//! The shop: each order takes goods from a shelf, is paid by a bank and sent by a carrier, or is undone in reverse.
//!
//! ```text
//! DIR/journal/     the engine's store; in it, as user data, how much is on each shelf
//! DIR/bank/        the bank, which is not the shop's: a file for each payment
//! DIR/carrier/     the carrier, not the shop's either: a file for each parcel
//! DIR/shop.json    what this directory was begun with
//! ```
//! To learn from it, read [`order`], which is the procedure, then [`partner`], which is what stands outside and may
//! fail, then [`books`], which says what must be true whatever crashed. [`goods`] is what is sold, and to whom.

pub mod books;
pub mod goods;
pub mod order;
pub mod partner;
pub mod record;

pub(crate) mod command;
mod run;

use std::io;
use std::path::Path;
use std::time::Duration;

use procession::errors::AskError;
use procession::{Builder, Executor, Procedure};

use goods::CATALOGUE;
use order::Order;
use partner::{Deal, Partner};

/// Keyspace of the shelves: name of the goods → how many are left.
pub const SHELVES: &str = "shelves";
/// Limit of the stages that call the bank.
pub const BANK_CALLS: &str = "bank calls";
/// How many orders are under way at once, and how many calls the bank takes at once.
const LIMITS: [(&str, u32); 2] = [(Order::KIND, 8), (BANK_CALLS, 4)];

/// The bank pays no more than this for one order.
const CREDIT: u32 = 1_000;
/// Where no carrier goes.
const OUT_OF_REACH: &str = "Atlantis";

/// What the stages of an order need from the program. Each worker thread gets a clone.
#[derive(Debug, Clone)]
pub struct Shop {
    /// Takes the money.
    pub bank: Partner,
    /// Takes the parcels.
    pub carrier: Partner,
}

impl Shop {
    /// Makes the directories of bank and carrier, who take up to `pace` for an answer.
    ///
    /// # Errors
    ///
    /// Whatever the system says.
    pub fn open(root: &Path, pace: Duration) -> io::Result<Self> {
        Ok(Self {
            bank: Partner::open(root.join("bank"), pace, bank_refuses)?,
            carrier: Partner::open(root.join("carrier"), pace, carrier_refuses)?,
        })
    }

    /// Registers the procedure and its limits.
    #[must_use]
    pub fn register(&self, builder: Builder) -> Builder {
        let builder = builder.register::<Order>(self.clone());
        LIMITS
            .into_iter()
            .fold(builder, |builder, (name, limit)| builder.limit(name, limit))
    }
}

/// Fills the shelves that nobody has filled before.
///
/// # Errors
///
/// [`AskError`] if the engine does not answer.
pub async fn fill_shelves(executor: &Executor) -> Result<(), AskError> {
    let filled = executor.scan::<u32>(SHELVES, "").await?;
    for goods in &CATALOGUE {
        if !filled.iter().any(|(name, _)| name == goods.name.as_bytes()) {
            executor.put(SHELVES, goods.name, &goods.delivered).await?;
        }
    }
    Ok(())
}

fn bank_refuses(deal: &Deal) -> Option<String> {
    let amount = deal.amount;
    (amount > CREDIT).then(|| format!("the bank declines the card for {amount}"))
}

fn carrier_refuses(deal: &Deal) -> Option<String> {
    let town = &deal.town;
    (town == OUT_OF_REACH).then(|| format!("no carrier goes to {town}"))
}

//! The books: what must be true once all orders have ended, whatever crashed meanwhile.

use std::collections::BTreeMap;
use std::io;

use super::goods::CATALOGUE;
use super::order::Order;
use super::partner::Deal;
use super::{SHELVES, Shop};
use procession::Executor;
use procession::errors::ReadError;

/// How an order has ended.
#[derive(Debug, Clone)]
pub struct Ended {
    /// The order, as it was submitted.
    pub order: Order,
    /// Why it was undone; `None` if it was shipped.
    pub undone: Option<String>,
}

/// What the books say.
#[derive(Debug, Clone, Default)]
pub struct Books {
    /// What the shipped orders cost.
    pub sold: u64,
    /// The money that the bank has taken.
    pub money: u64,
    /// For each of the goods: delivered, shipped, left on the shelf.
    pub shelves: Vec<(&'static str, u32, u32, u32)>,
    /// What is wrong, a line each.
    pub findings: Vec<String>,
}

/// Why the books cannot be checked.
#[derive(Debug, thiserror::Error)]
pub enum BooksError {
    /// The files of bank or carrier cannot be read.
    #[error("the files of bank and carrier cannot be read: {0}")]
    Files(#[from] io::Error),
    /// The shelves cannot be read.
    #[error("the shelves cannot be read: {0}")]
    Shelves(#[from] ReadError),
}

/// Compares what the engine says of the orders with what bank and carrier have, and with what is left on the shelves.
///
/// # Errors
///
/// [`BooksError`] if one of them cannot be read.
pub async fn check(executor: &Executor, shop: &Shop, orders: &[Ended]) -> Result<Books, BooksError> {
    let (payments, parcels) = (shop.bank.deals()?, shop.carrier.deals()?);
    let mut books = Books {
        sold: shipped(orders).map(|order| u64::from(order.cost())).sum(),
        money: payments.iter().map(|deal| u64::from(deal.amount)).sum(),
        ..Books::default()
    };
    let paid = shipped(orders).map(|order| (order.number, order.cost()));
    books.compare("paid", paid, &payments);
    let sent = shipped(orders).map(|order| (order.number, order.quantity));
    books.compare("sent", sent, &parcels);
    let left: BTreeMap<Vec<u8>, u32> = executor.scan(SHELVES, "").await?.into_iter().collect();
    for goods in &CATALOGUE {
        let of_these = shipped(orders).filter(|order| order.goods == goods.name);
        let gone = of_these.map(|order| order.quantity).sum();
        let left = left.get(goods.name.as_bytes()).copied().unwrap_or(0);
        if gone + left != goods.delivered {
            books.findings.push(format!(
                "{}: {} were delivered, {gone} shipped, and {left} are left",
                goods.name, goods.delivered
            ));
        }
        books.shelves.push((goods.name, goods.delivered, gone, left));
    }
    Ok(books)
}

fn shipped(orders: &[Ended]) -> impl Iterator<Item = &Order> {
    let shipped = orders.iter().filter(|ended| ended.undone.is_none());
    shipped.map(|ended| &ended.order)
}

impl Books {
    /// Names each order whose deals are not the one that it should have, or none if it was undone.
    fn compare(&mut self, what: &str, expected: impl Iterator<Item = (u64, u32)>, deals: &[Deal]) {
        let mut expected: BTreeMap<u64, u32> = expected.collect();
        for Deal { order, amount, .. } in deals {
            match expected.remove(order) {
                Some(wanted) if wanted == *amount => {}
                Some(wanted) => self.findings.push(format!(
                    "order {order} is {what} {amount}, and should be {what} {wanted}"
                )),
                None => self.findings.push(format!(
                    "order {order} is {what} {amount}, though it was undone, or {what} before"
                )),
            }
        }
        let missing = expected
            .keys()
            .map(|order| format!("order {order} was shipped, and is not {what}"));
        self.findings.extend(missing);
    }
}

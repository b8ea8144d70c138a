//! What is sold, and who buys it.

use super::order::Order;
use crate::demo::draw::Draw;

/// Goods of the shop.
#[derive(Debug, Clone, Copy)]
pub struct Goods {
    /// Their name.
    pub name: &'static str,
    /// The price of one.
    pub price: u32,
    /// How many the shop has to sell.
    pub delivered: u32,
}

const fn goods(name: &'static str, price: u32, delivered: u32) -> Goods {
    Goods { name, price, delivered }
}

/// All that is sold. Of lamps there are too few, and the bank pays no piano.
pub const CATALOGUE: [Goods; 5] = [
    goods("tea", 4, 5_000),
    goods("coffee", 7, 5_000),
    goods("lamp", 35, 20),
    goods("chair", 80, 1_000),
    goods("piano", 2_400, 10),
];

const CUSTOMERS: [(&str, &str); 6] = [
    ("Ada", "Turin"),
    ("Ben", "Oslo"),
    ("Chloe", "Lyon"),
    ("Dan", "Cork"),
    ("Eva", "Graz"),
    // Where no carrier goes.
    ("Finn", "Atlantis"),
];
/// How often each of the goods is wanted, and each customer orders.
const WANTED: [usize; 12] = [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 4];
const ORDERING: [usize; 11] = [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5];
/// Most of the same goods in one order.
const QUANTITY_MAX: usize = 3;

/// Draws an order: the same seed and number give the same order.
#[must_use]
pub fn draw(seed: u64, number: u64) -> Order {
    let mut draw = Draw::of(seed, number);
    let goods = draw.one(&WANTED).and_then(|place| CATALOGUE.get(*place));
    let goods = goods.unwrap_or(&CATALOGUE[0]);
    let (customer, town) = draw
        .one(&ORDERING)
        .and_then(|place| CUSTOMERS.get(*place))
        .unwrap_or(&CUSTOMERS[0]);
    let quantity = u32::try_from(1 + draw.below(QUANTITY_MAX)).unwrap_or(1);
    Order::new(number, (customer, town), goods, quantity)
}

//! `procession demo`: the orders of the shop, and the check of its books.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::record::Record;
use super::run::{self, Told};
use crate::demo::story::{Place, Story};
use crate::demo::watch::WatchArgs;
use crate::demo::{DemoError, console};

/// Most orders: all of them are submitted at once, and held in memory.
const ORDERS_MAX: u64 = 10_000;
/// Most milliseconds for an answer of bank or carrier.
const PACE_MAX: u64 = 60_000;
/// How many findings are named.
const FINDINGS_NAMED: usize = 30;

/// Arguments of the shop.
#[derive(Debug, Clone, Args)]
pub(crate) struct ShopArgs {
    /// Directory to work in; run again on the same one, it goes on. Without it, one of this
    /// user's own, which begins anew once a run has ended.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// How many orders there are [default: 100].
    #[arg(long, value_name = "N")]
    orders: Option<u64>,
    /// Seed of the orders [default: 1].
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// How long bank and carrier take for an answer, at most, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 250)]
    pace: u64,
    /// Run a shop in which everything is the matter, with all rights on its dashboard for whoever is on this machine,
    /// until Ctrl-C.
    #[arg(long, conflicts_with_all = ["orders", "seed", "pace", "json", "serve", "no_serve", "no_dashboard"])]
    pub(crate) trouble: bool,
    /// Be a life of that shop which is killed.
    #[arg(long, hide = true, requires = "trouble", requires = "data")]
    pub(crate) earlier_life: bool,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
}

/// Carries out the command.
pub(crate) async fn run(args: ShopArgs) -> Result<(), DemoError> {
    check(&args)?;
    let place = Place::open(args.data.as_deref(), Story::Shop)?;
    let record = Record::open(&place.root, args.seed, args.orders)?;
    let open = run::open(&place, &record, Duration::from_millis(args.pace), args.watch.view()).await?;
    for finding in open.told.books.findings.iter().take(FINDINGS_NAMED) {
        console::notice(finding);
    }
    let said = if args.watch.json {
        json(&open.told)
    } else {
        summary(&open.told)
    };
    console::result(&said);
    let findings = open.told.books.findings.len();
    if args.watch.stays() {
        console::notice("the dashboard stays, and the shop is open: an order every second, until Ctrl-C");
        open.stay(&record).await?;
    }
    open.close().await?;
    if findings > 0 {
        return Err(DemoError::Unverified {
            findings,
            path: place.root,
        });
    }
    place.end()
}

fn check(args: &ShopArgs) -> Result<(), DemoError> {
    match args {
        ShopArgs {
            orders: Some(orders), ..
        } if !(1..=ORDERS_MAX).contains(orders) => Err(DemoError::Argument(format!(
            "--orders {orders} makes no sense; give a number from 1 to {ORDERS_MAX}"
        ))),
        ShopArgs { pace, .. } if *pace > PACE_MAX => Err(DemoError::Argument(format!(
            "--pace {pace} is too slow; give milliseconds up to {PACE_MAX}"
        ))),
        _ => Ok(()),
    }
}

fn json(told: &Told) -> String {
    let books = &told.books;
    json!({
        "orders": told.orders,
        "shipped": told.orders - told.undone,
        "undone": told.undone,
        "resumed": told.resumed,
        "money_expected": books.sold,
        "money_found": books.money,
        "findings": books.findings,
        "seconds": (told.elapsed.as_secs_f64() * 1_000.0).round() / 1_000.0,
    })
    .to_string()
}

fn summary(told: &Told) -> String {
    let mut text = String::new();
    match write_summary(&mut text, told) {
        Ok(()) => text,
        Err(error) => format!("{text}\n{error}"),
    }
}

fn write_summary(out: &mut String, told: &Told) -> std::fmt::Result {
    let books = &told.books;
    let (orders, undone) = (told.orders, told.undone);
    writeln!(
        out,
        "\n{orders} orders in {:.1} s: {} were shipped, {undone} were undone in reverse, to the state before them",
        told.elapsed.as_secs_f64(),
        orders - undone
    )?;
    if told.resumed > 0 {
        writeln!(
            out,
            "{} were unfinished when this run started, and went on",
            told.resumed
        )?;
    }
    writeln!(out, "\nThe books: files of bank and carrier, and the shelves")?;
    if books.findings.is_empty() {
        writeln!(
            out,
            "  ok  each order that was shipped is paid once and sent once, and no other"
        )?;
        writeln!(out, "  ok  {} were sold, and the bank has {}", books.sold, books.money)?;
        let shelves: Vec<String> = books
            .shelves
            .iter()
            .map(|(goods, delivered, gone, left)| format!("{goods} {delivered} = {gone} + {left}"))
            .collect();
        writeln!(out, "  ok  delivered = shipped + left: {}", shelves.join(", "))?;
    } else {
        writeln!(out, "  BROKEN: {} finding(s), named above", books.findings.len())?;
    }
    write!(
        out,
        "\nKill it in the middle (kill -9) and run it again: it goes on. With --trouble there is a deadlock to break."
    )
}

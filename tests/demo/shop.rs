//! The shop: one order under every crash that there is, a whole day under kills, and books that can be wrong.

use std::fs;
use std::path::Path;
use std::time::Duration;

use procession::status::ProcedureState;
use procession::testkit::{Check, Trouble};
use procession_cli::demo::shop::goods::CATALOGUE;
use procession_cli::demo::shop::order::Order;
use procession_cli::demo::shop::{SHELVES, Shop, fill_shelves};
use serde_json::Value;
use tempfile::TempDir;

use crate::Outcome;
use crate::command::{Running, closing, said, shop};
use crate::watched::{address_of, ask};

const SIZES: &str = "--orders 60 --seed 7 --pace 0 --no-dashboard";
/// So slow that it is not over before it is killed.
const SLOW: &str = "--orders 60 --seed 7 --pace 300 --no-dashboard";

/// Runs to the end. Returns the closing line.
fn day(data: &Path, arguments: &str) -> Outcome<Value> {
    closing(&shop(data, &format!("{arguments} --json")).output()?)
}

/// An order with a bank and a carrier of its own, which answer at once.
fn order(town: &'static str) -> Check<(TempDir, Shop)> {
    let fresh = || {
        let directory = tempfile::tempdir()?;
        let shop = Shop::open(directory.path(), Duration::ZERO)?;
        Ok((directory, shop))
    };
    let order = move |_: &(TempDir, Shop)| Order::new(17, ("Ada", town), &CATALOGUE[0], 3);
    Check::with(fresh, |(_, shop), builder| shop.register(builder), order)
        .given(async |_, run| Ok(fill_shelves(&run.executor).await?))
        .picture(|(_, shop)| Ok((shop.bank.deals()?, shop.carrier.deals()?)))
}

#[test]
fn an_order_survives_everything() -> Outcome {
    let sold = order("Turin").afterwards(async |(_, shop), run, outcome| {
        let left: Option<u32> = run.executor.get(SHELVES, CATALOGUE[0].name).await?;
        let (paid, sent) = (shop.bank.deals()?, shop.carrier.deals()?);
        let is_sold = outcome.state == ProcedureState::Success;
        let expected = if is_sold { (3, 1, 1) } else { (0, 0, 0) };
        let gone = left.map(|left| CATALOGUE[0].delivered - left);
        if (gone, paid.len(), sent.len()) == (Some(expected.0), expected.1, expected.2) {
            return Ok(());
        }
        Err(Trouble::from(format!(
            "{:?}: {gone:?}, {paid:?}, {sent:?}",
            outcome.state
        )))
    });
    sold.everything()?;
    Ok(())
}

#[test]
fn an_order_to_where_nobody_goes_leaves_nothing() -> Outcome {
    let undone = order("Atlantis");
    undone.crash_at_every_commit()?;
    undone.crash_while_rolling_back()?;
    undone.run_undos_twice()?;
    Ok(())
}

#[test]
fn a_day_is_killed_and_goes_on() -> Outcome {
    let directory = tempfile::tempdir()?;
    let mut kills = 0;
    for look in [2, 5, 3] {
        let mut running = Running::start(shop(directory.path(), SLOW))?;
        running.until("the shop is open")?.ok_or("it did not open")?;
        for _ in 0..look {
            running.until(": ")?;
        }
        kills += usize::from(running.kill_after(0)?);
    }
    assert_eq!(kills, 3, "the day ended before it was killed often enough");
    let last = day(directory.path(), SIZES)?;
    assert_eq!(last["findings"], Value::Array(Vec::new()), "{last}");
    assert_eq!(last["money_found"], last["money_expected"], "{last}");
    assert!(last["resumed"].as_u64() > Some(0), "{last}");
    let count = |name: &str| last[name].as_u64().unwrap_or(0);
    assert_eq!(
        (count("orders"), count("shipped") + count("undone")),
        (60, 60),
        "{last}"
    );
    assert!(count("shipped") > 0 && count("undone") > 0, "{last}");
    // Nothing is left to do, and the books are checked again.
    assert_eq!(day(directory.path(), SIZES)?["resumed"], 0);
    Ok(())
}

#[test]
fn books_that_are_wrong_are_named() -> Outcome {
    let directory = tempfile::tempdir()?;
    let arguments = "--orders 8 --pace 0 --no-dashboard";
    day(directory.path(), arguments)?;
    let payment = fs::read_dir(directory.path().join("bank"))?
        .next()
        .ok_or("nobody paid")??;
    fs::copy(payment.path(), directory.path().join("bank/again"))?;
    let output = shop(directory.path(), arguments).output()?;
    let text = said(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("or paid before") && text.contains("1 finding"), "{text}");
    Ok(())
}

#[test]
fn after_its_day_the_shop_stays_open_and_whoever_watches_may_abort() -> Outcome {
    let directory = tempfile::tempdir()?;
    let mut running = Running::start(shop(directory.path(), "--orders 3 --pace 0 --serve --port 0"))?;
    let address = address_of(&mut running)?;
    running.until("order 4, ")?.ok_or("no order came after the day")?;
    let (status, body) = ask(&address, "GET /api/v1/me", &format!("host: {address}\r\n"), "")?;
    let rights = |name| body.contains(&format!("\"{name}\""));
    assert!(status == 200 && rights("abort") && !rights("repair"), "{body}");
    let (status, text) = running.interrupt()?;
    assert!(status.success(), "{text}");
    // The orders that came later are in the books too.
    let last = day(directory.path(), "--no-dashboard")?;
    assert!(last["orders"].as_u64() > Some(3), "{last}");
    assert_eq!(last["findings"], Value::Array(Vec::new()), "{last}");
    Ok(())
}

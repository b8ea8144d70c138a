//! What is the matter: one procedure for each kind of trouble, and what it waits for.

use std::time::Duration;

use super::script::{Act, Life, QUICK_LOOKS, Script};
use crate::demo::engine::has_ended;
use crate::demo::{DemoError, pace};
use procession::errors::SubmitError;
use procession::health::KindThresholds;
use procession::operate::{OperatorRequest, PauseScope};
use procession::procedure::{KindSettings, RetryPolicy};
use procession::{Builder, Executor, ProcedureId};

const DELIVERY: &str = "delivery";
const EXPORT: &str = "export";
const GIFT_CARD: &str = "gift_card";
const LABEL: &str = "print_label";
const NEWSLETTER: &str = "newsletter";
const ORDER: &str = "order";
const PARCEL: &str = "parcel";
const PAYMENT: &str = "payment";
const PICK: &str = "pick";
const SMALL_ORDER: &str = "small_order";
const STOCKTAKING: &str = "stocktaking";
const SUPPLIER: &str = "ask_supplier";
const TRANSFER: &str = "stock_transfer";

const KINDS: [&str; 12] = [
    DELIVERY,
    EXPORT,
    LABEL,
    NEWSLETTER,
    ORDER,
    PARCEL,
    PAYMENT,
    PICK,
    SMALL_ORDER,
    STOCKTAKING,
    SUPPLIER,
    TRANSFER,
];
/// How many pick at once.
const PICKERS: u32 = 2;
/// How long orders that only pass by are kept: they never end.
const SMALL_ORDERS_KEPT: Duration = Duration::from_secs(10 * 60);
/// How long between two of them.
const SMALL_ORDER_EVERY: Duration = Duration::from_millis(700);
/// Keys of the two that wait for each other.
const TRANSFERS: [&str; 2] = ["transfer-1", "transfer-2"];
/// Length of the text that makes a value large.
const LETTER: usize = 40_000;

/// Registers all kinds but the one whose code was taken out.
pub(super) fn register(builder: Builder, life: Life) -> Builder {
    let builder = KINDS.into_iter().fold(builder, |builder, kind| {
        builder.register_as::<Script>(kind, settings(kind), life)
    });
    builder.limit(PICK, PICKERS)
}

/// Registers the kind that the last life has no code for.
pub(super) fn register_gift_cards(builder: Builder, life: Life) -> Builder {
    builder.register_as::<Script>(GIFT_CARD, settings(GIFT_CARD), life)
}

/// Retries are quick at first, so that a storm is soon one, and go on for ever; undos are given up soon.
fn settings(kind: &str) -> KindSettings {
    let retry = RetryPolicy::default().base(Duration::from_millis(100));
    let settings = KindSettings::default()
        .retry(retry.attempts(100_000).max(Duration::from_secs(20)))
        .retry_undo(retry.attempts(2));
    match kind {
        SMALL_ORDER => settings.keep_after_end(SMALL_ORDERS_KEPT),
        SUPPLIER => settings.thresholds(KindThresholds::default().same_stage(QUICK_LOOKS)),
        _ => settings,
    }
}

/// Submits what an earlier life leaves, and returns the one that kills it.
pub(super) async fn set_early(executor: &Executor) -> Result<ProcedureId, DemoError> {
    let card = Script::of(GIFT_CARD).then("Send", Act::Wait("the card is paid".to_owned()));
    submit(executor, "gift-card-1", "a gift card, sold by an older release", card).await?;
    let label = Script::of(LABEL).then("Print", Act::Crash);
    submit(executor, "label-1", "a label that kills the program", label).await
}

/// Submits one of everything. Done again, it submits nothing twice.
pub(super) async fn set(executor: &Executor) -> Result<(), DemoError> {
    transfers(executor).await?;
    calls_and_undos(executor).await?;
    waits(executor).await?;
    long_ones(executor).await
}

/// Two that take the same two locks, each in its own order.
async fn transfers(executor: &Executor) -> Result<(), DemoError> {
    let towns = [["oslo", "turin"], ["turin", "oslo"]];
    for (key, [from, to]) in TRANSFERS.into_iter().zip(towns) {
        let transfer = Script::of(TRANSFER)
            .then("Unload", Act::Lock(format!("warehouse/{from}")))
            .then("Drive", Act::Work(500))
            .then("Load", Act::Lock(format!("warehouse/{to}")));
        submit(executor, key, &format!("tea from {from} to {to}"), transfer).await?;
    }
    Ok(())
}

/// What fails: a storm of retries, an undo that does not work, failures that nobody has acknowledged.
async fn calls_and_undos(executor: &Executor) -> Result<(), DemoError> {
    let storm = Script::of(PAYMENT).then("Reserve", Act::Work(20)).then(
        "Charge",
        Act::Retry("the bank does not answer: timeout after 30 s".to_owned()),
    );
    submit(executor, "payment-1", "a payment that the bank does not answer", storm).await?;
    let stuck = Script::of(ORDER)
        .then("Reserve", Act::Work(20))
        .then("Charge", Act::Stick("the account is closed: no refund".to_owned()))
        .then("Ship", Act::Fail("no carrier goes to Atlantis".to_owned()));
    submit(executor, "order-1", "an order that cannot be undone", stuck).await?;
    for number in 2..=4 {
        let declined = Script::of(PAYMENT).then("Charge", Act::Fail(format!("the card is declined for {number}400")));
        submit(executor, &format!("payment-{number}"), "a declined card", declined).await?;
    }
    Ok(())
}

/// What waits: for a person, an event, an operator, a permit, a lock.
async fn waits(executor: &Executor) -> Result<(), DemoError> {
    let ask = Script::of(ORDER)
        .then("Reserve", Act::Work(20))
        .then(
            "Approve",
            Act::Ask("Ship 10 pianos to Finn of Atlantis? Answer true or false.".to_owned()),
        )
        .then("Ship", Act::Work(20));
    submit(executor, "order-2", "an order that a person decides about", ask).await?;
    let event = Script::of(ORDER)
        .then("Reserve", Act::Wait("goods are in".to_owned()))
        .then("Ship", Act::Work(20));
    submit(executor, "order-3", "an order of goods that are to come", event).await?;
    let by = OperatorRequest::new("ann", "the wording is being checked");
    executor.pause(PauseScope::Kind(NEWSLETTER.into()), by).await?;
    let letter = Script::of(NEWSLETTER).then("Send", Act::Work(20));
    submit(executor, "newsletter-1", "a newsletter that Ann has paused", letter).await?;
    for number in 1..=PICKERS + 1 {
        let pick = Script::of(PICK)
            .then("Fetch", Act::Wait("the picker is back".to_owned()))
            .then("Pack", Act::Work(20));
        submit(
            executor,
            &format!("pick-{number}"),
            &format!("{PICKERS} pick at once: number {number}"),
            pick,
        )
        .await?;
    }
    let count = Script::of(STOCKTAKING)
        .then("Close", Act::Lock("shelf/lamp".to_owned()))
        .then("Count", Act::Wait("the count is in".to_owned()));
    submit(executor, "stocktaking-1", "lamps are counted", count).await?;
    let held = Script::of(ORDER).then("Reserve", Act::Lock("shelf/lamp".to_owned()));
    submit(executor, "order-4", "an order of lamps, which are being counted", held).await?;
    Ok(())
}

/// Submits procedures that hang, make no progress or grow too large, and a family with some members in trouble.
async fn long_ones(executor: &Executor) -> Result<(), DemoError> {
    let export = Script::of(EXPORT).then("Write", Act::Hang);
    submit(executor, "export-1", "an export that hangs", export).await?;
    let supplier = Script::of(SUPPLIER).then("Look", Act::Look(0));
    submit(executor, "supplier-1", "a supplier without news", supplier).await?;
    let large = Script::of(ORDER)
        .then("Engrave", Act::Carry("Dear Ada, ".repeat(LETTER / 10)))
        .then("Ship", Act::Wait("the engraver is done".to_owned()));
    submit(executor, "order-5", "an order with a very long letter", large).await?;
    let later = Script::of(DELIVERY)
        .then("Load", Act::Work(100))
        .then("Drop", Act::Have((0..12).map(parcel).collect()))
        .then("Return", Act::Sleep(3_600));
    submit(executor, "delivery-1", "a van with twelve parcels", later).await?;
    Ok(())
}

/// Every fourth customer is not at home, and one address does not exist.
fn parcel(number: u64) -> Script {
    let parcel = Script::of(PARCEL).then("Find", Act::Work(40 + number * 37 % 200));
    match number {
        7 => parcel.then("Ring", Act::Retry("there is no house 17".to_owned())),
        _ if number % 4 == 2 => parcel.then("Ring", Act::Wait("somebody is at home".to_owned())),
        _ => parcel.then("Ring", Act::Work(200 + number * 131 % 900)),
    }
}

/// Submits a small order now and then.
pub(super) async fn go_on(executor: &Executor) -> Result<(), DemoError> {
    for number in 0_u64.. {
        let order = Script::of(SMALL_ORDER)
            .then("Reserve", Act::Work(90 + number * 37 % 400))
            .then("Ship", Act::Work(60 + number * 91 % 700));
        match executor.submit(order).await {
            // Viewers of the page may also drain the engine.
            Ok(_) | Err(SubmitError::Busy { .. }) => pace::pause(SMALL_ORDER_EVERY).await,
            Err(_) => break,
        }
    }
    std::future::pending().await
}

/// Returns `true` if the two transfers wait for each other, or soon will.
pub(super) async fn is_locked(executor: &Executor) -> Result<bool, DemoError> {
    for key in TRANSFERS {
        let Some(found) = executor.find(key).await? else {
            return Ok(false);
        };
        if has_ended(executor.status(found.id()).await?.state) {
            return Ok(false);
        }
    }
    Ok(true)
}

async fn submit(executor: &Executor, key: &str, name: &str, script: Script) -> Result<ProcedureId, DemoError> {
    let submitted = executor.submit(script).key(key).named(name).await;
    submitted.map(|handle| handle.id()).map_err(|why| DemoError::Submit {
        key: key.to_owned(),
        why,
    })
}

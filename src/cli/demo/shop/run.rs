//! A day of the shop: submits all orders, prints how each ends, and checks the books. Run again in the same directory it
//! submits the same orders under the same keys, and so goes on.

use std::time::Duration;

use futures::{StreamExt, stream};

use super::books::{self, Books, Ended};
use super::order::Order;
use super::record::Record;
use super::{Shop, fill_shelves, goods};
use crate::demo::engine::{Engine, Entrance, has_ended, interrupted, list};
use crate::demo::pace::{self, Stopwatch};
use crate::demo::story::Place;
use crate::demo::watch::View;
use crate::demo::{DemoError, console};
use procession::dashboard::Right;
use procession::errors::SubmitError;
use procession::status::{ListFilter, Outcome, ProcedureState, Status};
use procession::{Executor, Procedure, ProcedureId};

/// Callers on this machine may also abort an order: an aborted order is undone, and the books hold. Nobody
/// may repair: an order that is bypassed keeps what it has.
const RIGHTS: [Right; 5] = [
    Right::View,
    Right::Payload,
    Right::Operate,
    Right::Abort,
    Right::Configure,
];
/// How many ends are waited for at once.
const WAITED_FOR: usize = 64;
/// How long between two orders once the story has been told.
const ORDER_EVERY: Duration = Duration::from_secs(1);

/// What a day came to.
#[derive(Debug)]
pub(super) struct Told {
    /// How many orders there were.
    pub(super) orders: usize,
    /// How many of them were undone.
    pub(super) undone: usize,
    /// How many were unfinished when this run started.
    pub(super) resumed: usize,
    /// What the books say.
    pub(super) books: Books,
    /// How long this run took.
    pub(super) elapsed: Duration,
}

/// A shop whose day has been told, and which is still open.
pub(super) struct Open {
    /// What the day came to.
    pub(super) told: Told,
    engine: Engine,
}

/// Opens the shop, and tells its day to the end.
pub(super) async fn open(place: &Place, record: &Record, pace: Duration, view: View) -> Result<Open, DemoError> {
    let watch = Stopwatch::start();
    let entrance = Entrance::open(view)?;
    let shop = Shop::open(&place.root, pace).map_err(|error| DemoError::file(&place.root, &error))?;
    let engine = entrance
        .start(&place.root, |builder| shop.register(builder), &RIGHTS)
        .await?;
    let resumed = engine.resume(&place.root).await?;
    console::notice(&format!(
        "the shop is open: {} orders, {resumed} of them unfinished since an earlier run",
        record.orders
    ));
    let orders = tokio::select! {
        orders = tell(&engine.executor, record) => Some(orders?),
        () = interrupted() => None,
    };
    let Some(orders) = orders else {
        console::notice("interrupted: letting the stages that run come to their end");
        engine.close().await?;
        return Err(DemoError::Interrupted(place.again()));
    };
    let told = Told {
        orders: orders.len(),
        undone: orders.iter().filter(|ended| ended.undone.is_some()).count(),
        resumed,
        books: books::check(&engine.executor, &shop, &orders).await?,
        elapsed: watch.elapsed(),
    };
    Ok(Open { told, engine })
}

impl Open {
    /// Takes an order every second until it is interrupted, for whoever watches.
    pub(super) async fn stay(&self, record: &Record) -> Result<(), DemoError> {
        let executor = &self.engine.executor;
        let all_day = async {
            let known = orders(executor)
                .await?
                .into_iter()
                .filter_map(|status| number(&status))
                .max();
            for next in known.unwrap_or(record.orders) + 1.. {
                let order = goods::draw(record.seed, next);
                let id = submit(executor, &order).await?;
                tell_of(&order, &executor.outcome(id).await?);
                pace::pause(ORDER_EVERY).await;
            }
            Ok(())
        };
        tokio::select! {
            ended = all_day => ended,
            () = interrupted() => Ok(()),
        }
    }

    /// Lets the stages that run come to their end, and closes everything.
    pub(super) async fn close(self) -> Result<(), DemoError> {
        self.engine.close().await
    }
}

/// Submits the orders, says how each ends that had not ended before, and returns all of them.
async fn tell(executor: &Executor, record: &Record) -> Result<Vec<Ended>, DemoError> {
    fill_shelves(executor).await?;
    let before = orders(executor).await?;
    let had_ended = |id: ProcedureId| before.iter().any(|status| status.id == id && has_ended(status.state));
    for number in 1..=record.orders {
        submit(executor, &goods::draw(record.seed, number)).await?;
    }
    // Also those that came after the last of these, while somebody watched.
    let all = orders(executor).await?;
    let ends = all.iter().filter_map(|status| Some((status.id, number(status)?)));
    let ends = ends.map(|(id, number)| async move {
        let outcome = executor.outcome(id).await?;
        Ok::<_, DemoError>((id, goods::draw(record.seed, number), outcome))
    });
    let mut ends = stream::iter(ends).buffer_unordered(WAITED_FOR);
    let mut ended = Vec::new();
    while let Some(end) = ends.next().await {
        let (id, order, outcome) = end?;
        if !had_ended(id) {
            tell_of(&order, &outcome);
        }
        let undone = (outcome.state != ProcedureState::Success).then(|| cause(&outcome));
        ended.push(Ended { order, undone });
    }
    Ok(ended)
}

fn tell_of(order: &Order, outcome: &Outcome) {
    console::notice(&if outcome.state == ProcedureState::Success {
        format!("{order}: paid {}, shipped", order.cost())
    } else {
        format!("{order}: undone, because {}", cause(outcome))
    });
}

fn cause(outcome: &Outcome) -> String {
    let cause = outcome.cause.as_ref();
    cause.map_or_else(|| "of an unknown cause".to_owned(), |cause| cause.text.clone())
}

async fn orders(executor: &Executor) -> Result<Vec<Status>, DemoError> {
    let orders = ListFilter {
        kind: Some(Order::KIND.into()),
        ..ListFilter::default()
    };
    list(executor, orders).await
}

/// Reads the number of an order in its key.
fn number(status: &Status) -> Option<u64> {
    status.key.as_ref()?.as_str().strip_prefix("order-")?.parse().ok()
}

/// Submits an order; an engine that is busy is asked again when it says so.
async fn submit(executor: &Executor, order: &Order) -> Result<ProcedureId, DemoError> {
    loop {
        match executor.submit(order.clone()).key(order.key()).await {
            Ok(handle) => return Ok(handle.id()),
            Err(SubmitError::Busy { retry_after, .. }) => pace::pause(retry_after).await,
            Err(why) => return Err(DemoError::Submit { key: order.key(), why }),
        }
    }
}

//! An engine under mixed load for a long time: its memory must not grow.
//!
//! Orders write to eleven keyspaces, spawn children, wait for a signal, and every fifth is rolled back. Timers pace
//! the clients.

use std::cell::Cell;
use std::io::Write;
use std::time::Duration;

use futures::future::{try_join, try_join_all};
use procession::{Children, Executor, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use crate::Outcome;
use crate::memory::kilobytes;
use crate::place::Ground;

/// How long the load lasts; without it a few orders are enough.
const SECONDS_VARIABLE: &str = "PROCESSION_SOAK_SECONDS";
const KEYSPACES: u64 = 11;
/// Keys in a keyspace, so that what is stored does not grow.
const KEYS: u64 = 5_000;
const CHILDREN: u64 = 4;
const CLIENTS: u64 = 8;
/// Orders of each client in the short form.
const ORDERS: u64 = 25;
/// Pause of a client after an order in the long form: the machine should be busy, not full.
const PAUSE: Duration = Duration::from_millis(40);
/// How long it is between two looks at the memory.
const EVERY: Duration = Duration::from_secs(60);
/// How long what has ended is kept: not so long that memory grows for all of a first half.
const KEPT: Duration = Duration::from_secs(120);
/// How much more memory than its least may be taken in the second half, in percent.
const GROWTH: u64 = 5;

fn space(number: u64) -> String {
    format!("tenant-{}", number % KEYSPACES)
}

fn key(number: u64) -> String {
    (number % KEYS).to_string()
}

fn is_refused(number: u64) -> bool {
    number.is_multiple_of(5)
}

#[derive(Serialize, Deserialize)]
struct Order {
    number: u64,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Stage {
    Reserve,
    Pick,
    Pay,
    Close,
}

impl Procedure for Order {
    const KIND: &'static str = "order";
    type Stage = Stage;
    type Env = ();
    type Output = u64;

    fn first(&self) -> Stage {
        Stage::Reserve
    }

    async fn execute(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        match stage {
            Stage::Reserve => {
                cx.put(&space(self.number), key(self.number), &vec![7_u8; 500])?;
                Ok(Step::Next(Stage::Pick))
            }
            Stage::Pick => {
                let items = (0..CHILDREN).map(|child| self.number * CHILDREN + child);
                let mut children = items.map(|number| Item { number });
                Ok(Step::Spawn {
                    children: children.try_fold(Children::new(), |all, item| all.and(&item))?,
                    then: Stage::Pay,
                })
            }
            Stage::Pay => Ok(Step::Wait {
                event: "paid".to_owned(),
                timeout: None,
                then: Stage::Close,
            }),
            Stage::Close if is_refused(self.number) => Err(StageError::fail("the payment was refused")),
            Stage::Close => Ok(Step::Done(self.number)),
        }
    }

    async fn rollback(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        if matches!(stage, Stage::Reserve) {
            cx.delete(&space(self.number), key(self.number));
        }
        Ok(())
    }
}

#[derive(Serialize, Deserialize)]
struct Item {
    number: u64,
}

impl Procedure for Item {
    const KIND: &'static str = "item";
    type Stage = ();
    type Env = ();
    type Output = ();

    fn first(&self) {}

    async fn execute(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        cx.put(&space(self.number), key(self.number), &vec![9_u8; 500])?;
        Ok(Step::Done(()))
    }
}

/// Sleeps once.
#[derive(Serialize, Deserialize)]
struct Rest {
    time: Duration,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Asleep {
    Before,
    After,
}

impl Procedure for Rest {
    const KIND: &'static str = "rest";
    type Stage = Asleep;
    type Env = ();
    type Output = ();

    fn first(&self) -> Asleep {
        Asleep::Before
    }

    async fn execute(&mut self, stage: Asleep, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Ok(match stage {
            Asleep::Before => Step::Sleep {
                until: cx.now().after(self.time),
                then: Asleep::After,
            },
            Asleep::After => Step::Done(()),
        })
    }
}

/// The load, and when it is over.
struct Load {
    executor: Executor,
    /// Orders of each client, or none if it goes on until it is told.
    orders: Option<u64>,
    is_over: Cell<bool>,
}

impl Load {
    /// Waits for a timer of the engine's, which is part of the load.
    async fn rest(&self, time: Duration) -> Outcome {
        let rest = self.executor.submit(Rest { time }).await?;
        Ok(rest.outcome().await?)
    }

    /// One client: an order after the other, each paid and waited for.
    async fn buy(&self, client: u64) -> Outcome {
        for order in 0..self.orders.unwrap_or(u64::MAX) {
            if self.is_over.get() {
                break;
            }
            let number = order * CLIENTS + client;
            let handle = self.executor.submit(Order { number }).await?;
            self.executor.signal(handle.id(), "paid", &()).await?;
            match handle.outcome().await {
                Ok(output) => assert_eq!((output, is_refused(number)), (number, false)),
                Err(error) => assert!(is_refused(number), "{number}: {error}"),
            }
            if self.orders.is_none() {
                self.rest(PAUSE).await?;
            }
        }
        Ok(())
    }

    /// Looks at the memory again and again, then ends the load. Returns what was taken, in KiB.
    async fn watch(&self, seconds: u64) -> Outcome<Vec<u64>> {
        let mut taken = Vec::new();
        for _ in 0..seconds.div_ceil(EVERY.as_secs()) {
            self.rest(EVERY).await?;
            let resident = kilobytes("VmRSS:", std::process::id())?;
            let commits = self.executor.snapshot().await?.commits;
            writeln!(std::io::stderr(), "{commits} commits, {resident} KiB resident")?;
            taken.push(resident);
        }
        self.is_over.set(true);
        Ok(taken)
    }
}

async fn soak(ground: &Ground, seconds: Option<u64>) -> Outcome {
    let builder = Executor::builder(&ground.journal)
        .register::<Order>(())
        .register::<Item>(())
        .register::<Rest>(());
    let executor = builder.retention(KEPT, KEPT).keep_failures(KEPT).start().await?;
    let load = Load {
        executor,
        orders: seconds.is_none().then_some(ORDERS),
        is_over: Cell::new(false),
    };
    let clients = try_join_all((0..CLIENTS).map(|client| load.buy(client)));
    // In the short form the clients know themselves when it is over.
    let watched = async {
        match seconds {
            Some(seconds) => load.watch(seconds).await,
            None => Ok(Vec::new()),
        }
    };
    let (_, taken) = try_join(clients, watched).await?;
    for number in 0..KEYSPACES {
        let rows = load.executor.scan::<Vec<u8>>(&space(number), "").await?;
        assert!(!rows.is_empty(), "{} was written to", space(number));
    }
    let (_, second) = taken.split_at(taken.len() / 2);
    if let (Some(least), Some(most)) = (second.iter().min(), second.iter().max()) {
        assert!(
            most * 100 <= least * (100 + GROWTH),
            "{least} to {most} KiB in the second half"
        );
    }
    load.executor.drain(Duration::from_secs(30)).await?;
    Ok(())
}

#[test]
fn memory_is_flat_under_mixed_load_on_eleven_keyspaces() -> Outcome {
    let seconds = std::env::var(SECONDS_VARIABLE).ok();
    let seconds = seconds.map(|seconds| seconds.parse()).transpose()?;
    let ground = Ground::new()?;
    actix_rt::System::new().block_on(soak(&ground, seconds))
}

//! The dashboard over an engine in which something is always the matter: a queue for a lock, a
//! retry storm, a deadlock, a rollback that fails, and more.
//!
//! ```text
//! cargo run --features dashboard --example dashboard -- --port 8080
//! ```
//! Open the address that it prints. Whoever does may act upon all that is there, so it listens on
//! this machine alone, and under this machine's names alone: a page whose name was made to lead here
//! gets nothing. `--port 0` takes any port that is free; `--rows 10000` adds so many that wait,
//! `--regions 5000` makes the first table so wide.
#![expect(clippy::print_stdout, reason = "an example talks")]
#![expect(clippy::wildcard_enum_match_arm, reason = "an example names what it looks for")]

use std::error::Error;
use std::marker::PhantomData;
use std::time::Duration;

use actix_web::{App, HttpRequest, HttpServer, web};
use procession::dashboard::{Dashboard, Grant};
use procession::errors::SubmitError;
use procession::limits::{LockNeed, LockPath};
use procession::operate::{OperatorRequest, PauseScope};
use procession::procedure::RetryPolicy;
use procession::{Children, Executor, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

/// What a stage does.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Act {
    /// Works for so many milliseconds.
    Work(u64),
    /// Takes this lock, which it keeps to the end.
    Lock(String),
    /// Waits for an event.
    Wait(String),
    /// Sleeps for so many seconds.
    Sleep(u64),
    /// Fails, and is tried again.
    Retry(String),
    /// Fails for good: all stages are undone.
    Fail(String),
    /// Cannot be undone, for this reason.
    Stick(String),
    /// Has children, and waits for them.
    Regions(Vec<Flow<OpenRegion>>),
}

/// A procedure is its stages in a row, each with its name; `K` names its kind.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
struct Flow<K: Kind>(Vec<(String, Act)>, PhantomData<K>);

trait Kind: Clone + std::fmt::Debug + 'static {
    const NAME: &'static str;
}

macro_rules! kinds {
    ($($kind:ident $name:literal,)*) => { $(
        #[derive(Clone, Debug)]
        struct $kind;

        impl Kind for $kind {
            const NAME: &'static str = $name;
        }
    )* };
}

kinds! {
    CreateTable "create_table",
    OpenRegion "open_region",
    TruncateTable "truncate_table",
    Compact "compact",
    Transfer "transfer",
    Payment "payment",
    Backup "backup",
    Migrate "migrate",
}

impl<K: Kind> Flow<K> {
    const fn new() -> Self {
        Self(Vec::new(), PhantomData)
    }

    fn then(mut self, name: &str, act: Act) -> Self {
        self.0.push((name.to_owned(), act));
        self
    }

    fn place(&self, name: &str) -> usize {
        let mut stages = self.0.iter();
        stages.position(|(stage, _)| stage == name).unwrap_or(self.0.len())
    }

    /// The name of a stage; behind the last there is one more.
    fn name(&self, place: usize) -> String {
        let found = self.0.get(place);
        found.map_or_else(|| "End".to_owned(), |(name, _)| name.clone())
    }
}

impl<K: Kind> Procedure for Flow<K> {
    const KIND: &'static str = K::NAME;
    const HOLD_LOCKS: bool = true;
    /// The stage's name: the engine shows it.
    type Stage = String;
    type Env = ();
    type Output = String;

    fn first(&self) -> String {
        self.name(0)
    }

    fn locks(&self, name: &String) -> Vec<LockNeed> {
        let begun = self.0.iter().take(self.place(name) + 1);
        let lock = |(_, act): &(String, Act)| match act {
            Act::Lock(path) => Some(LockNeed::exclusive(LockPath::parse(path))),
            _ => None,
        };
        begun.filter_map(lock).collect()
    }

    fn retry() -> RetryPolicy {
        let policy = RetryPolicy::default().attempts(1_000);
        policy.max(Duration::from_secs(20))
    }

    /// Clients see the table from here on: there is no way back.
    fn rollback_supported(&self, name: &String) -> bool {
        !["UpdateCache", "Announce"].contains(&name.as_str())
    }

    async fn execute(&mut self, name: String, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let place = self.place(&name);
        let then = self.name(place + 1);
        let Some((_, act)) = self.0.get(place) else {
            return Ok(Step::Done(format!("{place} stages")));
        };
        match act {
            #[expect(clippy::disallowed_methods, reason = "a stage that works")]
            Act::Work(time) => actix_rt::time::sleep(Duration::from_millis(*time)).await,
            Act::Lock(_) | Act::Stick(_) => {}
            Act::Wait(event) => {
                let (event, timeout) = (event.clone(), None);
                return Ok(Step::Wait { event, timeout, then });
            }
            Act::Sleep(time) => {
                let until = cx.now().after(Duration::from_secs(*time));
                return Ok(Step::Sleep { until, then });
            }
            Act::Retry(why) => return Err(StageError::retry(why)),
            Act::Fail(why) => return Err(StageError::fail(why)),
            Act::Regions(regions) => {
                let children = Children::of(regions)?.width(4);
                return Ok(Step::Spawn { children, then });
            }
        }
        Ok(Step::Next(then))
    }

    async fn rollback(&mut self, name: String, _: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        match self.0.get(self.place(&name)) {
            Some((_, Act::Stick(why))) => Err(StageError::retry(why)),
            _ => Ok(()),
        }
    }
}

/// Opens a region; every fifth waits for its server, and one has trouble.
fn region(number: u64) -> Flow<OpenRegion> {
    let flow = Flow::new().then("Plan", Act::Work(40 + number * 7 % 90));
    match number % 5 {
        3 => flow.then("Open", Act::Wait(format!("rs-{:02} reports", number % 7))),
        4 if number > 6 => flow.then("Open", Act::Retry("rpc timeout rs-17".to_owned())),
        _ => flow.then("Open", Act::Work(300 + number * 131 % 900)),
    }
}

fn table(regions: u64) -> Flow<CreateTable> {
    Flow::new()
        .then("Prepare", Act::Work(400))
        .then("WriteLayout", Act::Work(900))
        .then("AssignRegions", Act::Regions((0..regions).map(region).collect()))
        .then("UpdateCache", Act::Work(100))
        .then("Announce", Act::Wait("balancer is idle".to_owned()))
}

fn transfer(first: &str, second: &str) -> Flow<Transfer> {
    Flow::new()
        .then("Debit", Act::Lock(format!("account/{first}")))
        .then("Check", Act::Work(1_500))
        .then("Credit", Act::Lock(format!("account/{second}")))
}

fn fails(switch: Act) -> Flow<Migrate> {
    let flow = Flow::new().then("CopyRows", Act::Work(300)).then("SwitchReads", switch);
    flow.then("DropOld", Act::Fail("checksum differs".to_owned()))
}

/// Submits one of everything.
async fn set_the_scene(executor: &Executor) -> Result<(), SubmitError> {
    let users = || Act::Lock("default/users".to_owned());
    let storm = Flow::<TruncateTable>::new().then("Lock", users());
    let storm = storm.then("CloseRegions", Act::Retry("rpc timeout rs-17".to_owned()));
    executor.submit(storm).key("req-37").await?;
    executor
        .submit(table(option("--regions").unwrap_or(12)))
        .key("req-42")
        .priority(5)
        .await?;
    executor.submit(table(3)).key("req-41").await?;
    for key in ["req-43", "req-44", "req-45"] {
        let waits = Flow::<CreateTable>::new().then("Prepare", users());
        executor.submit(waits).key(key).await?;
    }
    executor.submit(transfer("alice", "bob")).key("pay-1").await?;
    executor.submit(transfer("bob", "alice")).key("pay-2").await?;
    for key in ["pay-3", "pay-4"] {
        let payment = Flow::<Payment>::new().then("Authorize", Act::Work(200));
        let payment = payment.then("Settle", Act::Wait("bank".to_owned()));
        executor.submit(payment.then("Receipt", Act::Work(5))).key(key).await?;
    }
    let backup = Flow::<Backup>::new().then("Snapshot", Act::Sleep(5_400));
    executor.submit(backup).key("nightly").await?;
    executor
        .submit(fails(Act::Stick("rs-03 is gone".to_owned())))
        .key("users-v2")
        .await?;
    executor.submit(fails(Act::Work(100))).key("users-v1").await?;
    for number in 0..option("--rows").unwrap_or_default() {
        let flow = Flow::<Payment>::new().then("Settle", Act::Wait("bank".to_owned()));
        executor.submit(flow).key(format!("row-{number}")).await?;
    }
    for number in 0..9 {
        let compact = Flow::<Compact>::new().then("Rewrite", Act::Work(240_000));
        executor.submit(compact).key(format!("compact-{number}")).await?;
    }
    Ok(())
}

/// A little goes on all the time, so that something moves.
async fn go_on(executor: Executor) {
    let mut beat = actix_rt::time::interval(Duration::from_millis(700));
    for number in 0_u64.. {
        beat.tick().await;
        let flow = Flow::<Payment>::new().then("Authorize", Act::Work(90 + number * 37 % 400));
        let flow = flow.then("Settle", Act::Work(60 + number * 91 % 700));
        if executor.submit(flow).await.is_err() {
            return;
        }
    }
}

fn option(name: &str) -> Option<u64> {
    let mut words = std::env::args().skip_while(|word| word != name).skip(1);
    words.next().and_then(|word| word.parse().ok())
}

#[actix_web::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let executor = Executor::builder("data/dashboard")
        .register::<Flow<CreateTable>>(())
        .register::<Flow<OpenRegion>>(())
        .register::<Flow<TruncateTable>>(())
        .register::<Flow<Compact>>(())
        .register::<Flow<Transfer>>(())
        .register::<Flow<Payment>>(())
        .register::<Flow<Backup>>(())
        .register::<Flow<Migrate>>(())
        .limit("compact", 2)
        .start()
        .await?;
    // Without a login, this rests on the dashboard's names, which are this machine's unless `hosts` gives others,
    // and on nothing that forwards to this port.
    let may_do_all = |_: &HttpRequest| Grant::All { who: "you".to_owned() };
    let dashboard = Dashboard::builder(&executor).access(may_do_all).start().await?;
    let streams = dashboard.clone();
    let port = u16::try_from(option("--port").unwrap_or(8080))?;
    let scope = move || web::scope("/ops/procedures").configure(dashboard.routes());
    let server = HttpServer::new(move || App::new().service(scope()));
    let server = server.disable_signals().workers(2).bind(("127.0.0.1", port))?;
    for address in server.addrs() {
        println!("open http://{address}/ops/procedures/ ; Ctrl-C stops");
    }
    let server = server.run();
    let stop = server.handle();
    actix_rt::spawn(async move {
        if actix_rt::signal::ctrl_c().await.is_ok() {
            // The server waits for whatever is open, as streams are.
            streams.close();
            stop.stop(true).await;
        }
    });
    // What an earlier start has left goes on.
    if executor.snapshot().await?.recovered.families == 0 {
        set_the_scene(&executor).await?;
        let by = OperatorRequest::new("ann", "the store is being moved");
        executor.pause(PauseScope::Kind("backup".into()), by).await?;
    }
    actix_rt::spawn(go_on(executor.clone()));
    server.await?;
    executor.drain(Duration::from_secs(10)).await?;
    Ok(())
}

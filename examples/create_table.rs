//! HBase's `CreateTableProcedure`, the same six states, on files and directories.
//!
//! ```text
//! data/create_table/tables/orders/desc    the layout that WriteFsLayout writes
//! data/create_table/servers/rs1/orders-0  a region that a server has opened
//! ```
//! Three tables are asked for. The first is created, and an abort comes too late.
//! The second waits for a server that is not there, until it is aborted and every
//! stage is undone, newest first. The third has the same name: it waits for the
//! lock that the second holds to the very end of its rollback.
#![expect(clippy::print_stdout, reason = "an example talks")]

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use procession::limits::{LockNeed, LockPath};
use procession::operate::OperatorRequest;
use procession::procedure::RetryPolicy;
use procession::status::{Status, WaitReason};
use procession::{Executor, Handle, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

/// Keyspace of the meta table: region → server. Committed with the stages.
const META: &str = "meta";
/// Keyspace of the tables that clients may use.
const ENABLED: &str = "enabled";

/// What the host gives to all stages. It is cloned to each worker.
#[derive(Clone)]
struct Master {
    root: PathBuf,
}

impl Master {
    fn table(&self, table: &str) -> PathBuf {
        self.root.join("tables").join(table)
    }

    fn server(&self, server: &str) -> PathBuf {
        self.root.join("servers").join(server)
    }
}

/// The value is the state: stored after each stage, given to the next.
#[derive(Clone, Serialize, Deserialize)]
struct CreateTable {
    table: String,
    /// A region for each of these servers.
    servers: Vec<String>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Stage {
    PreOperation,
    WriteFsLayout,
    AddToMeta,
    AssignRegions,
    UpdateDescCache,
    PostOperation,
}

impl CreateTable {
    fn regions(&self) -> impl Iterator<Item = AssignRegion> {
        let region = |(number, server): (usize, &String)| AssignRegion {
            region: format!("{}-{number}", self.table),
            table: self.table.clone(),
            server: server.clone(),
        };
        self.servers.iter().enumerate().map(region)
    }
}

impl Procedure for CreateTable {
    const KIND: &'static str = "create_table";
    /// HBase's `holdLock`: the table is ours from the first stage until the
    /// procedure has ended, whether it waits, rolls back or is restarted meanwhile.
    const HOLD_LOCKS: bool = true;
    type Stage = Stage;
    type Env = Master;
    type Output = usize;

    fn first(&self) -> Stage {
        Stage::PreOperation
    }

    fn locks(&self, _: &Stage) -> Vec<LockNeed> {
        vec![LockNeed::exclusive(LockPath::of(["table", &self.table]))]
    }

    /// Clients see the table from `UpdateDescCache` on, so from there it only goes
    /// forward: what fails is tried again, and an abort comes too late.
    fn rollback_supported(&self, stage: &Stage) -> bool {
        !matches!(stage, Stage::UpdateDescCache | Stage::PostOperation)
    }

    async fn execute(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        println!("{} {} does {stage:?}", cx.id(), self.table);
        let layout = cx.env().table(&self.table);
        match stage {
            Stage::PreOperation => {
                if cx.get::<usize>(ENABLED, &self.table).await?.is_some() {
                    // Not worth another attempt: `Fail`, not `Retry`.
                    return Err(StageError::fail(format!("there is a table {} already", self.table)));
                }
                Ok(Step::Next(Stage::WriteFsLayout))
            }
            Stage::WriteFsLayout => {
                // A crash before the commit runs the stage again: effects outside the
                // engine must bear that, as these do. `blocking` spares the worker.
                let desc = format!("{} regions\n", self.servers.len());
                cx.blocking(move || fs::create_dir_all(&layout).and_then(|()| fs::write(layout.join("desc"), desc)))
                    .await??;
                Ok(Step::Next(Stage::AddToMeta))
            }
            Stage::AddToMeta => {
                // Part of this stage's own commit: it happens exactly once.
                for assign in self.regions() {
                    cx.put(META, &assign.region, &"nowhere")?;
                }
                Ok(Step::Next(Stage::AssignRegions))
            }
            Stage::AssignRegions => {
                // Collected one by one (HBase's addChildProcedure); the next stage runs
                // when all have succeeded. Compensated: undone though they succeeded.
                for assign in self.regions() {
                    cx.add_compensated_child(&assign)?;
                }
                Ok(Step::Next(Stage::UpdateDescCache))
            }
            Stage::UpdateDescCache => {
                cx.put(ENABLED, &self.table, &self.servers.len())?;
                Ok(Step::Next(Stage::PostOperation))
            }
            // An observer that answers only the second time.
            Stage::PostOperation if cx.attempt() == 1 => Err(StageError::retry("an observer did not answer")),
            Stage::PostOperation => Ok(Step::Done(self.servers.len())),
        }
    }

    /// Called once for each executed stage, newest first over the whole family.
    /// The stage may have been cut short before it had any effect.
    async fn rollback(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        println!("{} {} undoes {stage:?}", cx.id(), self.table);
        match stage {
            Stage::WriteFsLayout => {
                let layout = cx.env().table(&self.table);
                cx.blocking(move || {
                    if layout.exists() {
                        fs::remove_dir_all(layout)
                    } else {
                        Ok(())
                    }
                })
                .await??;
            }
            Stage::AddToMeta => self.regions().for_each(|assign| cx.delete(META, assign.region)),
            // Its children are undone for themselves.
            Stage::PreOperation | Stage::AssignRegions | Stage::UpdateDescCache | Stage::PostOperation => {}
        }
        Ok(())
    }

    fn retry() -> RetryPolicy {
        RetryPolicy::default().base(Duration::from_millis(100))
    }
}

/// Has a server open a region.
#[derive(Clone, Serialize, Deserialize)]
struct AssignRegion {
    region: String,
    table: String,
    server: String,
}

impl Procedure for AssignRegion {
    const KIND: &'static str = "assign_region";
    const HOLD_LOCKS: bool = true;
    // One stage needs no enum.
    type Stage = ();
    type Env = Master;
    type Output = ();

    fn first(&self) -> Self::Stage {}

    /// Below its parent's lock, which it enters as a child; strangers wait.
    fn locks(&self, (): &()) -> Vec<LockNeed> {
        vec![LockNeed::exclusive(LockPath::of([
            "table",
            &self.table,
            &self.region.to_string(),
        ]))]
    }

    async fn execute(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let server = cx.env().server(&self.server);
        if !server.exists() {
            // Parked, it costs a row and no actor; the signal may come before it waits.
            println!("{} {} waits for {}", cx.id(), self.region, self.server);
            return Ok(Step::Wait {
                event: format!("{} is up", self.server),
                timeout: None,
                then: (),
            });
        }
        fs::write(server.join(&self.region), "open\n")?;
        cx.put(META, &self.region, &self.server)?;
        println!("{} {} is open on {}", cx.id(), self.region, self.server);
        Ok(Step::Done(()))
    }

    async fn rollback(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        println!("{} {} is closed", cx.id(), self.region);
        let file = cx.env().server(&self.server).join(&self.region);
        if file.exists() {
            fs::remove_file(file)?;
        }
        cx.put(META, &self.region, &"nowhere")?;
        Ok(())
    }
}

#[actix_rt::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from("data/create_table");
    if root.exists() {
        fs::remove_dir_all(&root)?;
    }
    let master = Master { root: root.clone() };
    for server in ["rs1", "rs2"] {
        fs::create_dir_all(master.server(server))?;
    }
    let executor = Executor::builder(root.join("journal"))
        .register::<CreateTable>(master.clone())
        .register::<AssignRegion>(master)
        .start()
        .await?;
    let create = |table: &str, servers: [&str; 2]| CreateTable {
        table: table.to_owned(),
        servers: servers.map(str::to_owned).to_vec(),
    };

    let orders = executor.submit(create("orders", ["rs1", "rs2"])).await?;
    until(&executor, &orders, |member| member.stage.contains("PostOperation")).await?;
    let answer = executor
        .abort(orders.id(), OperatorRequest::new("ann", "a mistake"))
        .await?;
    println!("abort of {}: {:?}", orders.id(), answer.abort);
    println!("orders has {} regions\n", orders.await?);

    let stuck = executor.submit(create("logs", ["rs1", "rs3"])).await?;
    let second = executor.submit(create("logs", ["rs1", "rs2"])).await?;
    let on_event = |member: &Status| matches!(member.wait, Some(WaitReason::Event(..)));
    until(&executor, &stuck, on_event).await?;
    println!("{} {}", second.id(), second.status().await?.next);
    let answer = executor
        .abort(stuck.id(), OperatorRequest::new("ann", "rs3 is gone"))
        .await?;
    println!("abort of {}: {:?}", stuck.id(), answer.abort);
    if let Err(error) = stuck.await {
        println!("logs on rs3: {error}");
    }
    println!("logs has {} regions\n", second.await?);

    println!("look at the files below {}", root.display());
    executor.drain(Duration::from_secs(5)).await?;
    Ok(())
}

/// Waits until some member of the family stands so.
async fn until(executor: &Executor, of: &Handle<CreateTable>, so: fn(&Status) -> bool) -> Result<(), Box<dyn Error>> {
    while !executor.tree(of.id()).await?.iter().any(so) {
        // It will not end before, and the short wait is what is wanted.
        of.wait_for(Duration::from_millis(5)).await.ok();
    }
    Ok(())
}

//! A small world in the test's own process.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use procession::Executor;
use procession::status::{Outcome as Ended, ProcedureState};
use procession_cli::demo::engine::journal_of;
use procession_cli::demo::faults::Lot;
use procession_cli::demo::input::{Input, Share};
use procession_cli::demo::master::Master;
use procession_cli::demo::meta::{TableState, TabletRow};
use procession_cli::demo::procedures::{CreateTable, DisableTable, Target, UnloadTablet};
use procession_cli::demo::verify::{self, World as Meta};
use procession_cli::demo::workload::{Action, Expected, ExpectedTable};
use tempfile::TempDir;

use crate::Outcome;

/// A world: its directory, its engine, and what must be in it.
pub(crate) struct World {
    directory: Rc<TempDir>,
    pub(crate) master: Master,
    pub(crate) executor: Executor,
    pub(crate) expected: Expected,
    keys: std::cell::Cell<u64>,
}

/// Everything that can be seen of a world from outside.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Picture {
    pub(crate) meta: Meta,
    pub(crate) files: BTreeMap<PathBuf, Vec<u8>>,
}

/// Runs a test in a world of `rows` rows and `servers` servers without any table.
pub(crate) fn in_world<F>(rows: usize, servers: u32, test: impl FnOnce(World) -> F) -> Outcome
where
    F: Future<Output = Outcome>,
{
    actix_rt::System::new().block_on(async {
        let directory = Rc::new(tempfile::tempdir()?);
        let master = Master::open(directory.path(), servers, numbered(rows))?;
        let executor = master
            .register(Executor::builder(journal_of(directory.path())))
            .start()
            .await?;
        test(World::of(directory, master, executor)).await
    })
}

/// Makes so many rows.
pub(crate) fn numbered(rows: usize) -> Input {
    let text: String = (0..rows).map(|number| format!("{number:06};row {number}\n")).collect();
    Input::of(&text)
}

impl World {
    /// Looks at a world whose engine runs.
    pub(crate) fn of(directory: Rc<TempDir>, master: Master, executor: Executor) -> Self {
        World {
            directory,
            master,
            executor,
            expected: Expected::default(),
            keys: 0.into(),
        }
    }

    pub(crate) fn root(&self) -> &Path {
        self.directory.path()
    }

    /// Carries out an action; gives its end.
    pub(crate) async fn perform(&self, action: impl Into<Action>) -> Outcome<Ended> {
        self.keys.set(self.keys.get() + 1);
        let id = action
            .into()
            .submit(&self.executor, &format!("test-{}", self.keys.get()))
            .await?;
        Ok(self.executor.outcome(id).await?)
    }

    /// Carries out actions at once; gives their ends in the same order.
    pub(crate) async fn perform_all(&self, actions: Vec<Action>) -> Outcome<Vec<Ended>> {
        futures::future::join_all(actions.into_iter().map(|action| self.perform(action)))
            .await
            .into_iter()
            .collect()
    }

    /// Carries out an action that must succeed.
    pub(crate) async fn succeed(&self, action: impl Into<Action>) -> Outcome<Ended> {
        let ended = self.perform(action).await?;
        assert_eq!(ended.state, ProcedureState::Success, "{} {:?}", ended.kind, ended.cause);
        Ok(ended)
    }

    /// Carries out an action that must be rolled back for this reason.
    pub(crate) async fn fail(&self, action: impl Into<Action>, why: &str) -> Outcome {
        let ended = self.perform(action).await?;
        let text = ended.cause.as_ref().map(|cause| cause.text.clone()).unwrap_or_default();
        assert_eq!(ended.state, ProcedureState::RolledBack, "{} {text}", ended.kind);
        assert!(text.contains(why), "\"{text}\" does not say \"{why}\"");
        assert!(ended.not_undone.is_empty());
        Ok(())
    }

    /// Creates a table with a third of the rows.
    pub(crate) async fn create(&mut self, name: &str, share: u32, tablets: u32) -> Outcome {
        let share = Share { index: share, of: 3 };
        self.succeed(CreateTable::new(Lot::fair(0), name, share, tablets))
            .await?;
        self.expected.tables.insert(name.to_owned(), ExpectedTable::new(share));
        Ok(())
    }

    /// Makes three tables: `on` is enabled, `off` is disabled, and of `part` the
    /// first tablet is offline.
    pub(crate) async fn furnish(&mut self) -> Outcome {
        for (share, name) in (0..).zip(["on", "off", "part"]) {
            self.create(name, share, 3).await?;
        }
        self.succeed(DisableTable::new(Lot::fair(0), "off")).await?;
        self.succeed(UnloadTablet::new(Lot::fair(0), "part", Target::Holding(String::new())))
            .await?;
        self.table("off").state = TableState::Disabled;
        self.table("part").offline = 1;
        self.verify().await
    }

    /// What is expected of a table; one that was never created shows in the verification.
    pub(crate) fn table(&mut self, name: &str) -> &mut ExpectedTable {
        let unknown = ExpectedTable::new(Share { index: 0, of: 3 });
        self.expected.tables.entry(name.to_owned()).or_insert(unknown)
    }

    /// The tablets of a table, in order.
    pub(crate) async fn tablets(&self, table: &str) -> Outcome<Vec<TabletRow>> {
        Ok(Meta::read(&self.executor).await?.tablets_of(table).cloned().collect())
    }

    /// Checks the world rule.
    pub(crate) async fn verify(&self) -> Outcome {
        verify::settle(&self.executor).await?;
        let (files, input) = (self.master.files(), self.master.input());
        let verdict = verify::verify(&self.executor, files, input, &self.expected).await?;
        assert_eq!(verdict.findings, []);
        Ok(())
    }

    /// Looks at everything, once nothing is left to do.
    pub(crate) async fn picture(&self) -> Outcome<Picture> {
        verify::settle(&self.executor).await?;
        let meta = Meta::read(&self.executor).await?;
        let mut files = BTreeMap::new();
        for directory in ["servers", "shared"] {
            read_below(&self.root().join(directory), &mut files)?;
        }
        Ok(Picture { meta, files })
    }

    /// Stops the engine.
    pub(crate) async fn stop(self) -> Outcome {
        self.executor.drain(Duration::from_secs(5)).await?;
        Ok(())
    }
}

fn read_below(directory: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) -> Outcome {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            read_below(&path, files)?;
        } else {
            files.insert(path.clone(), fs::read(&path)?);
        }
    }
    Ok(())
}

//! A world on a disk in memory, in which an engine lives several short lives. The
//! tablets' files are real; they outlive each life as the disk does.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use procession::Builder;
use procession::provider::{Space, SystemClock};
use procession::status::{ListFilter, Outcome as End, ProcedureState, Status, WaitReason};
use procession::testkit::{Ended, Fault, FaultPlan, Run, World as Disk};
use procession_actors::journal::codec;
use procession_cli::demo::master::Master;
use procession_cli::demo::workload::{Action, Expected};
use procession_kernel::Row;
use tempfile::TempDir;

use crate::Outcome;
use crate::world::{Picture, World, numbered};

/// Lives after which a scenario is taken to crash for ever.
const LIVES_MAX: usize = 1_000;
/// The key of the one operation that is crashed.
const KEY: &str = "the operation";

/// What survives a crash.
pub(crate) struct Lab {
    directory: Rc<TempDir>,
    disk: Disk,
    rows: usize,
    servers: u32,
    pub(crate) expected: Expected,
}

/// A scenario's end, and how many lives it took.
pub(crate) struct Survived {
    pub(crate) end: End,
    pub(crate) lives: usize,
}

impl Lab {
    /// Sets up a world, undisturbed.
    pub(crate) fn new(rows: usize, servers: u32, set_up: impl AsyncFnOnce(&mut World) -> Outcome) -> Outcome<Self> {
        let mut lab = Self {
            directory: Rc::new(tempfile::tempdir()?),
            disk: Disk::new(),
            rows,
            servers,
            expected: Expected::default(),
        };
        let ended = lab.live(FaultPlan::none(), async |world: &mut World| {
            set_up(world).await?;
            world.verify().await?;
            Ok(world.expected.clone())
        })?;
        lab.expected = ended.done()?;
        Ok(lab)
    }

    /// Lives one life.
    pub(crate) fn live<T>(
        &self,
        plan: FaultPlan,
        drive: impl AsyncFnOnce(&mut World) -> Outcome<T>,
    ) -> Outcome<Ended<T>> {
        self.live_with(plan, |builder| builder, drive)
    }

    /// Lives one life of an engine that knows more kinds.
    pub(crate) fn live_with<T>(
        &self,
        plan: FaultPlan,
        set_up: impl FnOnce(Builder) -> Builder,
        drive: impl AsyncFnOnce(&mut World) -> Outcome<T>,
    ) -> Outcome<Ended<T>> {
        let master = Master::open(self.directory.path(), self.servers, numbered(self.rows))?;
        let register = master.clone();
        self.disk.run(
            plan,
            // Waits are real: file work runs on other threads, and is no step of the simulated clock.
            |builder| register.register(set_up(builder).clock(Arc::new(SystemClock))),
            async |run: &Run| {
                spare_the_operator(run).await?;
                let mut world = World::of(self.directory.clone(), master, run.executor.clone());
                world.expected = self.expected.clone();
                drive(&mut world).await
            },
        )
    }

    /// Carries out one action, life after life, with these faults. Before each
    /// life `look` sees what the crash left on the disk.
    pub(crate) fn survive(
        &self,
        action: &Action,
        mut faults: impl FnMut(usize) -> FaultPlan,
        look: impl Fn(&Files) -> Outcome,
    ) -> Outcome<Survived> {
        for life in 0..LIVES_MAX {
            look(&self.files()?)?;
            let ended = self.live(faults(life), async |world: &mut World| {
                let id = action.submit(&world.executor, KEY).await?;
                let end = world.executor.outcome(id).await?;
                procession_cli::demo::verify::settle(&world.executor).await?;
                Ok(end)
            })?;
            if let Ended::Done(end) = ended {
                return Ok(Survived { end, lives: life + 1 });
            }
        }
        Err("it does not come to an end".into())
    }

    /// Counts the procedures on the disk that have not ended: so many the next life resumes.
    pub(crate) fn unfinished(&self) -> Outcome<usize> {
        let rows = self.disk.disk.dump(&Space::Procedures);
        let decoded = rows.iter().map(|(_, row)| codec::decode::<Row>(row));
        let rows = decoded.collect::<Result<Vec<_>, _>>()?;
        Ok(rows.iter().filter(|row| !row.is_ended()).count())
    }

    /// Checks the world rule.
    pub(crate) fn verify(&self) -> Outcome {
        self.live(FaultPlan::none(), async |world: &mut World| world.verify().await)?
            .done()
    }

    /// Looks at everything.
    pub(crate) fn picture(&self) -> Outcome<Picture> {
        self.live(FaultPlan::none(), async |world: &mut World| world.picture().await)?
            .done()
    }

    /// Reads all tablets' files.
    fn files(&self) -> Outcome<Files> {
        let mut files = Files::default();
        for directory in ["servers", "shared"] {
            below(&self.directory.path().join(directory), &mut files)?;
        }
        Ok(files)
    }
}

/// The tablets' files by name, with the directories that each is in.
#[derive(Default)]
pub(crate) struct Files(pub(crate) BTreeMap<String, Vec<(String, String)>>);

pub(crate) fn below(directory: &Path, files: &mut Files) -> Outcome {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            below(&path, files)?;
            continue;
        }
        let name = |path: Option<&Path>| {
            path.and_then(Path::file_name)
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned()
        };
        let places = files.0.entry(name(Some(&path))).or_default();
        places.push((name(path.parent()), fs::read_to_string(&path)?));
    }
    Ok(())
}

/// Resumes what the crashes made look like their cause. These commits use up none of the faults: with several such
/// procedures each life would otherwise hold one resumption and one crash, and nothing of the scenario, for ever.
async fn spare_the_operator(run: &Run) -> Outcome {
    let live = ListFilter {
        live_only: true,
        ..ListFilter::default()
    };
    let page = run.executor.list(live, None, 1_000).await?;
    let is_poisoned = |status: &&Status| status.wait == Some(WaitReason::Poison);
    let poisoned = page.items.iter().filter(is_poisoned).count();
    run.store.postpone_faults(u64::try_from(poisoned)?);
    Ok(procession_cli::demo::engine::resume_poisoned(&run.executor).await?)
}

/// Crashes in front of every second commit: each stage and undo runs exactly twice.
pub(crate) fn twice_each(life: usize) -> FaultPlan {
    // The start's own commit is number 0; the one that was lost passes as number 1.
    let lost = if life == 0 { 1 } else { 2 };
    FaultPlan::at(lost, Fault::CrashBefore)
}

/// Succeeded, or rolled back without a rest.
pub(crate) fn clean(end: &End) -> bool {
    end.not_undone.is_empty() && matches!(end.state, ProcedureState::Success | ProcedureState::RolledBack)
}

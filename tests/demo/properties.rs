//! E-117 to E-120 once more, by the test kit: each of the twelve procedures is crashed
//! at every commit, with every stage and undo run twice and failed in turn, and every
//! time the files, the meta table and the engine must be as they are to be.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::rc::Rc;

use procession::status::{Outcome as End, ProcedureState, Status};
use procession::testkit::{Check, Checked, Run, Trouble};
use procession_cli::demo::faults::Lot;
use procession_cli::demo::master::Master;
use procession_cli::demo::verify;
use procession_cli::demo::workload::Expected;
use tempfile::TempDir;

use crate::Outcome;
use crate::lab::{self, Files};
use crate::twelve::{Case, cases};
use crate::world::{World, numbered};

const ROWS: usize = 30;

/// What survives a crash beside disk and clock.
struct Tablets {
    directory: Rc<TempDir>,
    master: Master,
    expected: RefCell<Expected>,
}

impl Tablets {
    fn new() -> Result<Self, Trouble> {
        let directory = Rc::new(tempfile::tempdir()?);
        let master = Master::open(directory.path(), 3, numbered(ROWS))?;
        Ok(Self {
            directory,
            master,
            expected: RefCell::default(),
        })
    }

    /// Copies the files, so that the scene need not be set for each run.
    fn copy(&self) -> Result<Self, Trouble> {
        let copy = Self::new()?;
        copy_below(self.directory.path(), copy.directory.path())?;
        *copy.expected.borrow_mut() = self.expected.borrow().clone();
        Ok(copy)
    }

    fn world(&self, run: &Run) -> World {
        let mut world = World::of(self.directory.clone(), self.master.clone(), run.executor.clone());
        world.expected = self.expected.borrow().clone();
        world
    }

    /// Sets the scene that all tests of the twelve begin in.
    async fn furnish(&self, run: &Run) -> Outcome {
        let mut world = self.world(run);
        world.furnish().await?;
        *self.expected.borrow_mut() = world.expected;
        Ok(())
    }

    /// Files, meta table and engine are as after this procedure, or as before it if all of
    /// it was rolled back.
    async fn verify(&self, run: &Run, case: fn(&mut World), outcome: End) -> Outcome {
        let mut world = self.world(run);
        // What a child did that looked the tablet up stands, whatever became of its parent since.
        let family = run.executor.tree(outcome.id).await?;
        let done = |status: &Status| status.state == ProcedureState::Success;
        if family.iter().any(done) {
            case(&mut world);
        }
        let (files, input) = (self.master.files(), self.master.input());
        let verdict = verify::verify(&run.executor, files, input, &world.expected).await?;
        if verdict.findings.is_empty() {
            Ok(())
        } else {
            Err(format!("{:?}", verdict.findings).into())
        }
    }

    fn files(&self) -> Outcome<BTreeMap<String, Vec<(String, String)>>> {
        let mut files = Files::default();
        for directory in ["servers", "shared"] {
            lab::below(&self.directory.path().join(directory), &mut files)?;
        }
        Ok(files.0)
    }
}

fn copy_below(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let to = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy_below(&path, &to)?;
        } else {
            fs::copy(&path, &to)?;
        }
    }
    Ok(())
}

fn check(case: &Case) -> Check<Tablets> {
    let (action, then) = ((case.make)(Lot::fair(1)), case.then);
    Check::submitting(
        Tablets::new,
        |tablets, builder| tablets.master.register(builder),
        async move |_, run: &Run| Ok(action.submit(&run.executor, "the operation").await?),
    )
    .given(async |tablets: &Tablets, run: &Run| tablets.furnish(run).await)
    .copied_by(Tablets::copy)
    .picture(Tablets::files)
    .afterwards(async move |tablets: &Tablets, run: &Run, outcome| tablets.verify(run, then, outcome).await)
}

/// All procedures of this kind have all properties.
fn sound(kind: &str) -> Outcome {
    let mut runs = 0;
    for case in cases() {
        if (case.make)(Lot::fair(1)).kind() == kind {
            let Checked { runs: more, .. } = check(&case).everything()?;
            runs += more;
        }
    }
    assert!(runs > 0, "there is no case of {kind}");
    Ok(())
}

macro_rules! sound {
    ($($test:ident: $kind:literal,)*) => {
        $(#[test]
        fn $test() -> Outcome {
            sound($kind)
        })*

        #[test]
        fn e_117_none_of_the_twelve_is_left_out() {
            let here: std::collections::BTreeSet<&str> = [$($kind),*].into();
            let all = cases().into_iter().map(|case| (case.make)(Lot::fair(1)).kind()).collect();
            assert_eq!(here, all);
            assert_eq!(here.len(), 12);
        }
    };
}

sound! {
    e_117_create_table_has_every_property: "create_table",
    e_117_delete_table_has_every_property: "delete_table",
    e_117_disable_table_has_every_property: "disable_table",
    e_117_enable_table_has_every_property: "enable_table",
    e_117_update_table_has_every_property: "update_table",
    e_117_load_tablet_has_every_property: "load_tablet",
    e_117_unload_tablet_has_every_property: "unload_tablet",
    e_118_move_tablet_has_every_property: "move_tablet",
    e_119_merge_tablet_has_every_property: "merge_tablet",
    e_119_split_tablet_has_every_property: "split_tablet",
    e_117_set_quota_has_every_property: "set_quota",
    e_117_update_auth_has_every_property: "update_auth",
}

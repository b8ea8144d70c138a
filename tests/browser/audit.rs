//! The audit of a small root, whose packages wait for a person where they differ.

use std::sync::{Arc, Mutex, PoisonError};

use procession::Builder;
use procession::flow::SetHandle;
use procession::testkit::{Run, Trouble};

use crate::dpkg::{Installed, Root};
use crate::ground::Ground;
use crate::nodes::{self, ReportDirectory};
use crate::plan::plan;

/// The root of the world: a new one for each.
static GROUND: Mutex<Option<Arc<Ground>>> = Mutex::new(None);

fn ground() -> Result<Arc<Ground>, Trouble> {
    let ground = GROUND.lock().unwrap_or_else(PoisonError::into_inner).clone();
    ground.ok_or_else(|| "no world has begun".into())
}

/// Makes a root on which one package was changed, for the world that begins.
pub(crate) fn new_root() -> Result<(), Trouble> {
    let ground = Ground::damaged()?;
    ground.reinstall("data")?;
    ground.reinstall("locked")?;
    *GROUND.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(ground));
    Ok(())
}

/// Returns what registers the processors of its nodes.
pub(crate) fn registration() -> Result<impl FnOnce(Builder) -> Builder, Trouble> {
    let ground = ground()?;
    let (root, report) = (Root(ground.root()), ReportDirectory(ground.data("report")));
    Ok(|builder| nodes::register(builder, root, report))
}

/// Starts an audit that holds what was changed.
pub(crate) async fn start(run: &Run) -> Result<SetHandle, Trouble> {
    let set = plan("audit".to_owned(), &Installed::read(&ground()?.root())?, true)?;
    Ok(run.executor.start_set(set).await?)
}

/// Puts a package's files there, as they should be.
pub(crate) fn reinstall(package: &str) -> Result<(), Trouble> {
    ground()?.reinstall(package)
}

/// Returns the lines of the report.
pub(crate) fn lines() -> Result<Vec<String>, Trouble> {
    ground()?.lines(".")
}

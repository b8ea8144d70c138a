//! Earlier lives of the shop, for trouble that only they can leave: a stage that killed the process each time while it
//! ran, and a procedure of a kind whose code the last life no longer has.
//!
//! A life is this program again, with an engine on the same directory. It says when it has begun what it will not survive,
//! and is killed then. Once the engine has seen through the culprit, a life ends by itself.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;

use super::scene;
use super::script::{BEGUN, Life};
use crate::demo::engine::Entrance;
use crate::demo::pace;
use crate::demo::watch::View;
use crate::demo::{DemoError, console};
use procession::dashboard::Right;
use procession::status::WaitReason;
use procession::{Executor, ProcedureId};

/// Most lives: the engine sees through the culprit at its third death.
const LIVES_MAX: usize = 8;
/// How long between two looks at what became of the culprit.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Lets lives begin, and kills them, until the engine sees through the culprit.
pub(super) fn end_early(root: &Path) -> Result<(), DemoError> {
    console::notice("making trouble: a label kills the program each time while it is printed");
    for _ in 0..LIVES_MAX {
        if is_over(root).map_err(|error| DemoError::file(root, &error))? {
            return Ok(());
        }
    }
    Err(DemoError::Stuck(format!(
        "the earlier lives of the shop in {} die of something else; remove the directory, and run it again",
        root.display()
    )))
}

/// Lets one life begin, and kills it; returns `true` if it ended by itself.
fn is_over(root: &Path) -> std::io::Result<bool> {
    let mut life = Command::new(std::env::current_exe()?)
        .args(["demo", "--trouble", "--earlier-life", "--data"])
        .arg(root)
        // It ends with its standard input, and so with this process.
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    for line in life
        .stdout
        .take()
        .into_iter()
        .flat_map(|said| BufReader::new(said).lines())
    {
        if line? == BEGUN {
            life.kill()?;
            life.wait()?;
            return Ok(false);
        }
    }
    Ok(life.wait()?.success())
}

/// Lives: submits what this life alone can leave, and waits for its end.
pub(super) async fn live(root: &Path) -> Result<(), DemoError> {
    let register = |builder| scene::register_gift_cards(super::register(builder, Life::Earlier), Life::Earlier);
    let engine = Entrance::open(View::None)?
        .start(root, register, &[Right::View])
        .await?;
    let label = scene::set_early(&engine.executor).await?;
    tokio::select! {
        seen = seen_through(&engine.executor, label) => seen?,
        () = parent_gone() => {}
    }
    engine.close_within(super::DRAIN_MAX).await
}

async fn seen_through(executor: &Executor, label: ProcedureId) -> Result<(), DemoError> {
    while executor.status(label).await?.wait != Some(WaitReason::Poison) {
        pace::pause(LOOK_EVERY).await;
    }
    Ok(())
}

/// Waits for the end of the standard input. The thread ends with the process.
async fn parent_gone() {
    let (told, gone) = oneshot::channel::<()>();
    thread::spawn(move || {
        let read = std::io::stdin().lock().read(&mut [0]);
        drop((read, told));
    });
    drop(gone.await);
}

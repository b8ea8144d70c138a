//! A shop in which everything is the matter: each kind of trouble at once, on a dashboard on which whoever is on this
//! machine may do everything. It runs until Ctrl-C, and goes on when it is started again.

mod lives;
mod scene;
mod script;

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::console;
use super::engine::{Entrance, interrupted};
use super::error::DemoError;
use super::pace;
use super::story::{self, Place, Story};
use super::watch::View;
use procession::dashboard::Right;
use procession::health::{Rule, Verdict};
use procession::{Builder, Executor};
use script::Life;

/// Format of the record.
const FORMAT: u32 = 1;
/// How long stages that run may take when it is stopped: some never end.
const DRAIN_MAX: Duration = Duration::from_millis(500);
/// How often the health check runs: whoever acts wants to see soon what became of it.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// How long between two looks for the deadlock.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Most bytes of a value: little, so that one is near it.
const VALUE_MAX: usize = 64 * 1_024;

/// What a directory was begun with.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    format: u32,
    /// Whether all trouble has been made. Making it again would undo what a user did about it.
    is_made: bool,
}

impl Record {
    fn open(root: &Path) -> Result<Self, DemoError> {
        let Some(text) = story::read_record(root, Story::Trouble)? else {
            let record = Self {
                format: FORMAT,
                is_made: false,
            };
            return record.write(root).map(|()| record);
        };
        serde_json::from_str(&text).map_err(|error| DemoError::File {
            path: root.join(Story::Trouble.file()),
            why: error.to_string(),
        })
    }

    fn write(&self, root: &Path) -> Result<(), DemoError> {
        let text = serde_json::to_string(self).map_err(|error| DemoError::file(root, &error.into()))?;
        story::write_record(root, Story::Trouble, &text)
    }
}

/// Makes the trouble, and serves it until Ctrl-C.
pub(super) async fn run(data: Option<&Path>, earlier_life: bool, view: View) -> Result<(), DemoError> {
    if earlier_life {
        let place = Place::of(data, Story::Trouble)?;
        return lives::live(&place.root).await;
    }
    let place = Place::open(data, Story::Trouble)?;
    let record = Record::open(&place.root)?;
    let entrance = Entrance::open(view)?;
    if !record.is_made {
        lives::end_early(&place.root)?;
    }
    let engine = entrance
        .start(&place.root, |builder| register(builder, Life::Now), &Right::ALL)
        .await?;
    if !record.is_made {
        scene::set(&engine.executor).await?;
        let made = Record {
            is_made: true,
            ..record
        };
        made.write(&place.root)?;
    }
    let told = tokio::select! {
        told = tell(&engine.executor) => told,
        () = interrupted() => Ok(()),
    };
    engine.close_within(DRAIN_MAX).await?;
    told?;
    console::notice(&format!("go on with `{}`", place.again()));
    Ok(())
}

/// Registers what this life of the shop has code for.
fn register(builder: Builder, life: Life) -> Builder {
    let builder = builder.health_check_every(Some(CHECK_EVERY)).max_payload(VALUE_MAX);
    scene::register(builder, life)
}

/// Says what to try first, and lets a little go on all the time, so that something moves.
async fn tell(executor: &Executor) -> Result<(), DemoError> {
    for line in advice(executor).await? {
        console::notice(&line);
    }
    scene::go_on(executor).await
}

/// Waits for the deadlock, unless somebody has broken it in an earlier run.
async fn advice(executor: &Executor) -> Result<Vec<String>, DemoError> {
    let broken = "the deadlock was broken in an earlier run; Attention shows what is left".to_owned();
    loop {
        let verdicts = executor.verdicts().await?;
        if let Some(deadlock) = verdicts.iter().find(|verdict| verdict.rule == Rule::Deadlock) {
            return Ok(first_steps(deadlock));
        }
        if !scene::is_locked(executor).await? {
            return Ok(vec![broken]);
        }
        pace::pause(LOOK_EVERY).await;
    }
}

fn first_steps(deadlock: &Verdict) -> Vec<String> {
    let victim = deadlock.procedure.map_or_else(String::new, |id| format!(" {id}"));
    vec![
        format!("first: open the page; two stock transfers wait for each other. Abort the victim{victim}, and watch the other go on"),
        "then: skip the undo of the order that cannot be undone, answer the question, signal `goods are in`, retry the \
         poisoned label, acknowledge the failures"
            .to_owned(),
        "it runs until Ctrl-C".to_owned(),
    ]
}

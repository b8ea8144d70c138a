//! A fan-out: one child for each picture, four at a time, and a report of what became of each.
//!
//! ```text
//! cargo run --example fan_out
//! ```
//! The children are born in one commit, with the parent's wait for them. After a crash those that have ended stay ended.
#![expect(clippy::print_stdout, reason = "an example talks")]

use std::error::Error;
use std::time::Duration;

use procession::procedure::{ChildPermits, JoinPolicy};
use procession::{Children, Executor, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

/// So many pictures of one album are shrunk at once.
const OF_ONE_ALBUM: u32 = 4;
/// So many pictures of all albums together.
const IN_ALL: u32 = 6;

#[derive(Serialize, Deserialize)]
struct Album {
    pictures: Vec<String>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Stage {
    ShrinkAll,
    Report,
}

impl Procedure for Album {
    const KIND: &'static str = "album";
    type Stage = Stage;
    type Env = ();
    type Output = Vec<String>;

    fn first(&self) -> Stage {
        Stage::ShrinkAll
    }

    async fn execute(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        match stage {
            Stage::ShrinkAll => {
                let shrink: Vec<Shrink> = self
                    .pictures
                    .iter()
                    .cloned()
                    .map(|picture| Shrink { picture })
                    .collect();
                // One picture that cannot be shrunk is no reason to lose the others.
                let children = Children::of(&shrink)?
                    .join(JoinPolicy::AllFinished)
                    .width(OF_ONE_ALBUM)
                    .permits(ChildPermits::Own);
                Ok(Step::Spawn {
                    children,
                    then: Stage::Report,
                })
            }
            Stage::Report => {
                let mut lines = Vec::new();
                for (picture, child) in self.pictures.iter().zip(cx.children()) {
                    lines.push(match (child.output::<u32>()?, &child.cause) {
                        (Some(bytes), _) => format!("{picture}: {bytes} bytes"),
                        (None, Some(cause)) => format!("{picture}: {}", cause.text),
                        (None, None) => format!("{picture}: no result"),
                    });
                }
                Ok(Step::Done(lines))
            }
        }
    }
}

/// One picture. It could have stages, an undo and children of its own.
#[derive(Serialize, Deserialize)]
struct Shrink {
    picture: String,
}

impl Procedure for Shrink {
    const KIND: &'static str = "shrink";
    type Stage = ();
    type Env = ();
    type Output = u32;

    fn first(&self) -> Self::Stage {}

    async fn execute(&mut self, (): (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        if !self.picture.ends_with(".png") {
            return Err(StageError::fail("this is no picture"));
        }
        Ok(Step::Done(1_000))
    }
}

fn album() -> Album {
    let names = ["cat.png", "dog.png", "notes.txt", "fish.png", "bird.png", "horse.png"];
    Album {
        pictures: names.map(str::to_owned).to_vec(),
    }
}

#[actix_rt::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let executor = Executor::builder("data/fan_out")
        .register::<Album>(())
        .register::<Shrink>(())
        .limit(Shrink::KIND, IN_ALL)
        .start()
        .await?;
    for line in executor.submit(album()).await?.await? {
        println!("{line}");
    }
    executor.drain(Duration::from_secs(5)).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use procession::testkit::{Check, Finding};

    use super::*;

    #[test]
    fn an_album_survives_everything() -> Result<(), Finding> {
        Check::new(|builder| builder.register::<Album>(()).register::<Shrink>(()), album)
            .everything()
            .map(drop)
    }
}

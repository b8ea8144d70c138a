//! A build as a graph: targets that do not need each other are made at once, and a target behind a failure waits for a
//! person, who repairs it by hand and lets the rest go on.
//!
//! ```text
//! sources ─┬─> parser ───┬─> package
//!          └─> pictures ─┘
//! ```
//! ```text
//! cargo run --example build_graph
//! ```
//! The build is a procedure, and each target is one of its children, listed with the targets that it needs. A target
//! begins in the commit in which the last of these succeeds. Here no tool on the machine can draw the pictures, so the
//! package waits. It would wait as well after a crash, for days: all of it is on disk.
//!
//! A program lets it go on with `Executor::retry_now`, as below. With `--page` the example serves a dashboard, and leaves
//! that to you: the tab *Graph* of the build shows who waits for whom, and the package has the button *Retry now*.
#![expect(clippy::print_stdout, reason = "an example talks")]

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use procession::health::Rule;
use procession::operate::OperatorRequest;
use procession::procedure::{Child, JoinPolicy};
use procession::{Children, Executor, Procedure, ProcedureId, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

/// What is made, and of what. A target needs only targets that are listed before it.
const TARGETS: [(&str, &[&str]); 4] = [
    ("sources", &[]),
    ("parser", &["sources"]),
    ("pictures", &["sources"]),
    ("package", &["parser", "pictures"]),
];

#[derive(Serialize, Deserialize)]
struct Build;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Stage {
    MakeAll,
    Report,
}

impl Procedure for Build {
    const KIND: &'static str = "build";
    // What was made may stay, whatever fails.
    const ROLLBACK: bool = false;
    type Stage = Stage;
    type Env = ();
    type Output = usize;

    fn first(&self) -> Stage {
        Stage::MakeAll
    }

    async fn execute(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        match stage {
            Stage::MakeAll => Ok(Step::Spawn {
                children: graph()?,
                then: Stage::Report,
            }),
            Stage::Report => {
                let made = cx.children().iter().filter(|target| target.succeeded());
                Ok(Step::Done(made.count()))
            }
        }
    }
}

/// Lists the targets, each with the places of those that it needs.
fn graph() -> Result<Children, StageError> {
    // The build reports when all have ended, with or without success.
    let mut children = Children::new().join(JoinPolicy::AllFinished);
    for (target, needs) in TARGETS {
        let make = Make {
            target: target.to_owned(),
            needs: needs.iter().map(|need| (*need).to_owned()).collect(),
        };
        let places = (0..).zip(TARGETS).filter(|(_, (other, _))| needs.contains(other));
        let places: Vec<u32> = places.map(|(place, _)| place).collect();
        let child = Child::new(&make)?.named(target);
        children = children.child(if places.is_empty() {
            child
        } else {
            // Without `or_wait` a failure would end all that is behind it.
            child.after(places).or_wait()
        });
    }
    Ok(children)
}

/// One target: a file that is made of the files of other targets.
#[derive(Serialize, Deserialize)]
struct Make {
    target: String,
    needs: Vec<String>,
}

impl Procedure for Make {
    const KIND: &'static str = "make";
    const ROLLBACK: bool = false;
    type Stage = ();
    type Env = PathBuf;
    type Output = ();

    fn first(&self) {}

    async fn execute(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        if self.target == "pictures" {
            return Err(StageError::fail("no tool on this machine draws pictures"));
        }
        let directory = cx.env().clone();
        let (target, needs) = (self.target.clone(), self.needs.clone());
        // A crash may cut this off anywhere: it is done again from its beginning.
        let made = cx.blocking(move || {
            let mut text = format!("{target}\n");
            for need in needs {
                text.push_str(&fs::read_to_string(directory.join(need))?);
            }
            fs::write(directory.join(target), text)
        });
        // Without a file that it needs, another attempt would find no more.
        made.await?.map_err(|error| StageError::fail(error.to_string()))?;
        Ok(Step::Done(()))
    }
}

/// Returns a target that waits for a person, and why.
async fn waiting(executor: &Executor) -> Result<Option<(ProcedureId, String)>, Box<dyn Error>> {
    let verdicts = executor.verdicts().await?.into_iter();
    let mut undecided = verdicts.filter(|verdict| verdict.rule == Rule::Undecided);
    Ok(undecided.find_map(|verdict| Some((verdict.procedure?, verdict.text))))
}

/// Does what a person would: draws the pictures elsewhere, and puts them where they belong.
fn draw(directory: &Path) -> std::io::Result<()> {
    fs::write(directory.join("pictures"), "pictures, drawn by ann\n")
}

/// Lets a target begin, although it waits for one that has failed.
async fn let_begin(executor: &Executor, target: ProcedureId) -> Result<(), Box<dyn Error>> {
    let by = OperatorRequest::new("ann", "the pictures were drawn elsewhere");
    executor.retry_now(target, by).await?;
    Ok(())
}

/// Serves a dashboard on this machine, where a person lets the target begin.
#[cfg(feature = "dashboard")]
async fn serve_page(executor: &Executor) -> Result<(), Box<dyn Error>> {
    use actix_web::{App, HttpRequest, HttpServer, web};
    use procession::dashboard::{Dashboard, Grant};

    let may_do_all = |_: &HttpRequest| Grant::All { who: "you".to_owned() };
    let dashboard = Dashboard::builder(executor).access(may_do_all).start().await?;
    let scope = move || web::scope("/builds").configure(dashboard.routes());
    let server = HttpServer::new(move || App::new().service(scope()));
    let server = server.workers(1).bind(("127.0.0.1", 0))?;
    for address in server.addrs() {
        println!("open http://{address}/builds/ and press Retry now at the package");
    }
    actix_rt::spawn(server.run());
    Ok(())
}

#[cfg(not(feature = "dashboard"))]
async fn serve_page(_: &Executor) -> Result<(), Box<dyn Error>> {
    Err("the page needs the feature dashboard".into())
}

#[actix_rt::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let executor = Executor::builder(directory.path().join("journal"))
        .register::<Build>(())
        .register::<Make>(directory.path().to_owned())
        .start()
        .await?;
    let build = executor.submit(Build).await?;

    // The pictures fail in a moment. A program would rather follow changes with `Executor::subscribe`.
    let (target, why) = loop {
        match waiting(&executor).await? {
            Some(found) => break found,
            None => tokio::task::yield_now().await,
        }
    };
    println!("{why}");
    draw(directory.path())?;
    if std::env::args().any(|word| word == "--page") {
        serve_page(&executor).await?;
    } else {
        let_begin(&executor, target).await?;
    }

    let id = build.id();
    println!("{} of {} targets were made by the build:", build.await?, TARGETS.len());
    for member in executor.tree(id).await? {
        if let Some(name) = member.name {
            println!("  {name}: {}", member.state);
        }
    }
    print!("{}", fs::read_to_string(directory.path().join("package"))?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use procession::testkit::{Check, Trouble};
    use tempfile::TempDir;

    use super::*;

    /// Whatever fails or crashes: what waits for a person is let go on, and the build comes to its end.
    #[test]
    fn a_build_survives_every_crash_and_every_failure() -> Result<(), Trouble> {
        let check = Check::with(
            || Ok(tempfile::tempdir()?),
            |directory: &TempDir, builder| {
                let path = directory.path().to_owned();
                builder.register::<Build>(()).register::<Make>(path)
            },
            |_| Build,
        );
        let check = check.client(async |directory, run, build| {
            let text = |error: Box<dyn Error>| error.to_string();
            let has_ended = async || {
                run.executor
                    .status(build)
                    .await
                    .is_ok_and(|status| status.ended.is_some())
            };
            while !has_ended().await {
                match waiting(&run.executor).await.map_err(text)? {
                    // It may have been let go on before the last crash.
                    Some((target, _)) => {
                        draw(directory.path())?;
                        let_begin(&run.executor, target).await.unwrap_or_default();
                    }
                    None => tokio::task::yield_now().await,
                }
            }
            Ok(())
        });
        let check = check.afterwards(async |directory, _, outcome| {
            let made = outcome.output::<usize>()?;
            let package = fs::read_to_string(directory.path().join("package")).unwrap_or_default();
            if made == Some(3) && !package.contains("drawn by ann") {
                return Err(format!("the package has no pictures: {package}").into());
            }
            Ok(())
        });
        check.everything()?;
        Ok(())
    }
}

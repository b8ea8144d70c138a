//! The guide, followed to the letter: what README, tutorial and how-tos tell a reader to type is typed here, in an empty
//! folder, and what they show is what is printed.
//!
//! A page is a list of blocks. What each kind of block does:
//!
//! | block | is |
//! |---|---|
//! | `rust title="src/main.rs"`, any language | that file, or lines to add at its end if it is there |
//! | `diff title="src/main.rs"` | a change of that file; every line that is not added must be there, once |
//! | `rust` without a title | an excerpt of a file as it is then; `// …` stands for lines left out |
//! | `console` | commands behind `$`, each followed by what it prints; `…` stands for anything, `^C` for a kill |
//!
//! `cargo run` and `cargo test` use the project as it is at that line. Each such state is a package of its own, and all
//! are built at once, beside the packages of this workspace, so that nothing is compiled twice.
#![cfg(unix)]

mod block;
mod console;
mod journey;
mod output;
mod project;
mod rest;
mod workspace;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use journey::Journey;

type Tested = Result<(), Box<dyn Error>>;

/// The folder of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Pages that are one story each. The tutorial's chapters are one together.
fn stories() -> Result<Vec<Journey>, Box<dyn Error>> {
    let mut stories = vec![Journey::read("readme", &["README.md".to_owned()])?];
    stories.push(Journey::read("tutorial", &pages("docs/tutorial")?)?);
    stories.push(Journey::read("flows", &["docs/flows.md".to_owned()])?);
    stories.push(Journey::read("sagas", &["docs/sagas.md".to_owned()])?);
    for page in pages("docs/how-to")? {
        let name = page
            .rsplit('/')
            .next()
            .unwrap_or(&page)
            .trim_end_matches(".md")
            .to_owned();
        stories.push(Journey::read(&name, &[page])?);
    }
    Ok(stories)
}

/// The pages of a folder, by name.
fn pages(folder: &str) -> Result<Vec<String>, Box<dyn Error>> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(root().join(folder))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".md") && name != "README.md" {
            pages.push(format!("{folder}/{name}"));
        }
    }
    pages.sort();
    Ok(pages)
}

#[test]
fn the_guide_works_as_it_is_written() -> Tested {
    let stories = stories()?;
    let built = workspace::build(&stories)?;
    // Most of their time passes in programs that wait for a timer.
    let failed: Vec<String> = thread::scope(|scope| {
        let runs: Vec<_> = stories.iter().map(|story| scope.spawn(|| story.run(&built))).collect();
        let ends = runs
            .into_iter()
            .map(|run| run.join().unwrap_or_else(|_| Err("it panicked".to_owned())));
        ends.filter_map(Result::err).collect()
    });
    if failed.is_empty() {
        return Ok(());
    }
    Err(format!("these pages do not do what they say:\n{}", failed.join("\n\n")).into())
}

//! The dashboard in a real browser: journeys written for playwright-core, against an engine with a
//! simulated clock and its store in memory.
//!
//! `./tests/run.sh` installs what this needs, and runs it beside its other steps. Without it the test says that it was
//! skipped and why; with `PROCESSION_BROWSER=required` it fails. With `PROCESSION_BROWSER=later` it is skipped. To try a journey by hand:
//! `PROCESSION_BROWSER_ONLY=limits cargo test --all-features --test browser`.
#![expect(clippy::print_stderr, reason = "a test that skips itself says so")]

mod audit;
mod control;
mod kinds;
mod sagas;
mod site;
mod truth;

// The audit of the examples, on the small root of its tests.
#[path = "../../examples/audit/dpkg.rs"]
mod dpkg;
#[path = "../../examples/audit/ground.rs"]
mod ground;
#[path = "../../examples/audit/nodes.rs"]
mod nodes;
#[path = "../../examples/audit/plan.rs"]
mod plan;

use std::path::{Path, PathBuf};
use std::process::Command;

type Tested = Result<(), Box<dyn std::error::Error>>;

/// Programs that will do as a browser, in the order in which they are looked for.
const BROWSERS: [&str; 3] = ["chromium-headless-shell", "chromium", "chromium-browser"];

#[test]
fn journeys() -> Tested {
    let wanted = std::env::var("PROCESSION_BROWSER").unwrap_or_default();
    if wanted == "later" {
        eprintln!("skipped: it runs later, as PROCESSION_BROWSER says");
        return Ok(());
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser");
    let browser = match equipment(&folder) {
        Ok(browser) => browser,
        Err(why) if wanted == "required" => return Err(why.into()),
        Err(why) => {
            eprintln!("skipped: {why}; ./tests/run.sh installs it");
            return Ok(());
        }
    };
    let address = site::start()?;
    let mut command = Command::new("node");
    command
        .current_dir(&folder)
        .arg("--test")
        .arg("--test-concurrency=1")
        .arg("--test-reporter=spec")
        .env("PROCESSION_SITE", format!("http://{address}"))
        .env("PROCESSION_CHROMIUM", browser);
    if let Some(only) = std::env::var_os("PROCESSION_BROWSER_ONLY") {
        command.arg("--test-name-pattern").arg(only);
    }
    let status = command.args(scripts(&folder.join("journeys"))?).status()?;
    if status.success() {
        return Ok(());
    }
    Err(format!("journeys failed: {status}; pictures of the failures are in target/browser").into())
}

fn scripts(folder: &Path) -> Result<Vec<PathBuf>, std::io::Error> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    found.retain(|path| path.extension().is_some_and(|extension| extension == "mjs"));
    found.sort();
    Ok(found)
}

/// Returns the browser's path, if all is there that the journeys need; else what is missing.
fn equipment(folder: &Path) -> Result<PathBuf, String> {
    if Command::new("node").arg("--version").output().is_err() {
        return Err("node is not installed".to_owned());
    }
    if !folder.join("node_modules/playwright-core").is_dir() {
        return Err("playwright-core is not installed in tests/browser".to_owned());
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let mut candidates = BROWSERS
        .iter()
        .flat_map(|name| std::env::split_paths(&paths).map(move |path| path.join(name)));
    candidates
        .find(|path| path.is_file())
        .ok_or_else(|| "no chromium is installed".to_owned())
}

//! Compares what each published package makes public with its list in `docs/internals/api/`, one line an item; with
//! `--accept` it writes the lists. So a change of the public API is seen in review, and never happens by itself.
//!
//! The items are those of rustdoc's JSON, with all features, without blanket implementations and auto traits.

use std::collections::BTreeSet;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs};

use serde_json::Value;

const PACKAGES: [&str; 5] = [
    "procession",
    "procession-actors",
    "procession-kernel",
    "procession-page",
    "procession-saga-language",
];

/// Names the variable that makes this program rustdoc: see [`rustdoc`].
const RUSTDOC: &str = "PROCESSION_API_RUSTDOC";

const ACCEPT: &str = "cargo run --manifest-path tests/api/Cargo.toml -- --accept";

fn main() -> ExitCode {
    if env::var_os(RUSTDOC).is_some() {
        return rustdoc();
    }
    match compare(env::args().any(|argument| argument == "--accept")) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!(
                "The public API has changed. If that is meant, accept it, and say so in CHANGELOG.md:\n\n    {ACCEPT}"
            );
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("the public API cannot be listed: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Stands in for rustdoc, and runs the real one as a nightly compiler's: its JSON is not stable yet. Set for Cargo as a
/// whole, the variable would have it build every dependency anew.
fn rustdoc() -> ExitCode {
    let mut real = Command::new("rustdoc");
    real.args(env::args_os().skip(1))
        .env("RUSTC_BOOTSTRAP", "1")
        .env_remove(RUSTDOC);
    match real.status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("rustdoc cannot be run: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns `true` if every list is as it was, or was accepted.
fn compare(accept: bool) -> Result<bool, Box<dyn Error>> {
    let root = fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))?;
    let lists = root.join("docs/internals/api");
    let documents = document(&root)?;
    let mut is_same = true;
    for package in PACKAGES {
        let found = items(&documents.join(format!("{}.json", package.replace('-', "_"))))?;
        let list = lists.join(format!("{package}.txt"));
        if accept {
            fs::create_dir_all(&lists)?;
            fs::write(&list, &found)?;
            continue;
        }
        let kept = fs::read_to_string(&list).map_err(|error| format!("{}: {error}; run {ACCEPT}", list.display()))?;
        let changes = [only('-', &kept, &found), only('+', &found, &kept)].concat();
        if !changes.is_empty() {
            is_same = false;
            println!("{package}:\n{}", changes.join("\n"));
        }
    }
    Ok(is_same)
}

/// Returns the lines of the first text that the second does not have, each with the sign.
fn only(sign: char, these: &str, those: &str) -> Vec<String> {
    let others: BTreeSet<&str> = those.lines().collect();
    let lines = these.lines().filter(|line| !others.contains(line));
    lines.map(|line| format!("    {sign} {line}")).collect()
}

/// Lists the public items in a package's JSON, a line each. Of what is derived it lists the implementation, not its
/// methods.
fn items(json: &Path) -> Result<String, Box<dyn Error>> {
    let list = |without_derived: bool| {
        let listed = public_api::Builder::from_rustdoc_json(json)
            .omit_blanket_impls(true)
            .omit_auto_trait_impls(true)
            .omit_auto_derived_impls(without_derived)
            .build();
        let listed = listed.map_err(|error| {
            format!(
                "{error}; take the version of public-api that reads the JSON of this rustdoc, in tests/api/Cargo.toml"
            )
        });
        listed.map(|api| api.to_string())
    };
    let (all, written) = (list(false)?, list(true)?);
    let written: BTreeSet<&str> = written.lines().collect();
    // The compiler's own mark of every derived `PartialEq` says nothing to users.
    let lines = all
        .lines()
        .filter(|line| !line.contains("StructuralPartialEq") && (line.starts_with("impl") || written.contains(line)));
    Ok(lines.map(|line| format!("{line}\n")).collect())
}

/// Has rustdoc write the JSON of every package, and returns the directory.
///
/// All packages are documented at once, as `cargo doc --workspace` does in `tests/run.sh`: a package alone would take its
/// dependencies with fewer features, so they would be checked anew.
fn document(root: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let target = target_directory(root)?;
    let documented = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args([
            "doc",
            "--quiet",
            "--locked",
            "--workspace",
            "--no-deps",
            "--all-features",
        ])
        .arg("--target-dir")
        .arg(&target)
        .env("RUSTDOC", env::current_exe()?)
        .env(RUSTDOC, "1")
        .env("RUSTDOCFLAGS", "-Zunstable-options --output-format=json")
        .current_dir(root)
        .status()?;
    if !documented.success() {
        return Err("the packages cannot be documented".into());
    }
    Ok(target.join("doc"))
}

/// Returns where the workspace builds, so that dependencies that were checked before are used again.
fn target_directory(root: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let asked = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--locked", "--no-deps", "--format-version=1"])
        .current_dir(root)
        .output()?;
    let metadata: Value = serde_json::from_slice(&asked.stdout)?;
    let directory = metadata.get("target_directory").and_then(Value::as_str);
    Ok(directory.ok_or("Cargo does not say where it builds")?.into())
}

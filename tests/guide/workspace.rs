//! Builds the readers' projects, as further members of a copy of this workspace.
//!
//! The copy is a folder of links. Packages lie in it where they lie in the workspace, so Cargo takes what is compiled
//! already, and only the projects themselves are built.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::journey::Journey;
use crate::project::{Dependency, Project};
use crate::root;

/// Programs by package, and programs of unit tests.
pub(crate) struct Built {
    programs: BTreeMap<String, PathBuf>,
    tests: BTreeMap<String, PathBuf>,
}

impl Built {
    pub(crate) fn program(&self, package: &str) -> Result<&Path, String> {
        let found = self.programs.get(package);
        found
            .map(PathBuf::as_path)
            .ok_or_else(|| format!("{package} has no program"))
    }

    pub(crate) fn tests(&self, package: &str) -> Result<&Path, String> {
        let found = self.tests.get(package);
        found
            .map(PathBuf::as_path)
            .ok_or_else(|| format!("{package} has no tests"))
    }
}

/// Builds every state of every story.
pub(crate) fn build(stories: &[Journey]) -> Result<Built, Box<dyn Error>> {
    let copy = tempfile::tempdir()?;
    // Cargo names packages by the real path.
    let copy = copy.path().canonicalize().map(|path| (path, copy))?;
    link(&copy.0)?;
    for story in stories {
        for (state, project) in story.states.iter().enumerate() {
            // A folder without a program is none of the workspace's.
            if !project
                .files
                .keys()
                .any(|file| file.ends_with(".rs") || file.ends_with(".toml"))
            {
                continue;
            }
            let package = story.package(state);
            write(&copy.0.join("guide").join(&package), &package, project)?;
        }
    }
    // An example is among the targets, as then the tests' features count, with which everything is compiled already.
    let programs = cargo(&copy.0, &["build", "--example", "hello"], &named(stories, false))?;
    let tests = cargo(&copy.0, &["test", "--no-run"], &named(stories, true))?;
    Ok(Built { programs, tests })
}

/// The packages whose programs the stories run, or whose tests.
fn named(stories: &[Journey], are_tests: bool) -> Vec<String> {
    let packages = stories.iter().flat_map(|story| story.packages(are_tests));
    packages.flat_map(|package| ["--bin".to_owned(), package]).collect()
}

/// Links all of the workspace into the folder, with a manifest that has further members.
fn link(copy: &Path) -> Result<(), Box<dyn Error>> {
    let root = root().canonicalize()?;
    for entry in fs::read_dir(&root)? {
        let name = entry?.file_name();
        if !matches!(
            name.to_str(),
            Some("Cargo.toml" | "Cargo.lock" | "target" | ".git") | None
        ) {
            symlink(root.join(&name), copy.join(&name))?;
        }
    }
    let manifest = fs::read_to_string(root.join("Cargo.toml"))?;
    let (before, after) = manifest
        .split_once("members = [")
        .ok_or("Cargo.toml lists no members")?;
    fs::write(
        copy.join("Cargo.toml"),
        format!("{before}members = [\"guide/*\", {after}"),
    )?;
    fs::copy(root.join("Cargo.lock"), copy.join("Cargo.lock"))?;
    Ok(())
}

fn write(folder: &Path, package: &str, project: &Project) -> Result<(), Box<dyn Error>> {
    for (file, text) in &project.files {
        let path = folder.join(file);
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(path, text)?;
    }
    let mut manifest = format!(
        "[package]\nname = \"{package}\"\nversion = \"0.0.0\"\nedition = \"2024\"\npublish = false\n\n\
         [[bin]]\nname = \"{package}\"\npath = \"src/main.rs\"\n"
    );
    for (section, is_dev) in [("dependencies", false), ("dev-dependencies", true)] {
        manifest += &format!("\n[{section}]\n");
        for dependency in project
            .dependencies
            .iter()
            .filter(|dependency| dependency.is_dev == is_dev)
        {
            manifest += &line(dependency);
        }
    }
    fs::write(folder.join("Cargo.toml"), manifest)?;
    Ok(())
}

/// The line that `cargo add` would write, with the version of this workspace, so that the build is offline. That may have
/// fewer of a package's features than a reader gets; features only add.
fn line(Dependency { name, features, .. }: &Dependency) -> String {
    format!("{name} = {{ workspace = true, features = {features:?} }}\n")
}

/// Runs Cargo in the copy, and returns the programs that it has built there, by package.
fn cargo(copy: &Path, words: &[&str], packages: &[String]) -> Result<BTreeMap<String, PathBuf>, Box<dyn Error>> {
    let program = Path::new(env!("CARGO_BIN_EXE_procession"));
    let target = program
        .parent()
        .and_then(Path::parent)
        .ok_or("there is no target folder")?;
    let (verb, rest) = words.split_first().ok_or("no verb")?;
    let mut command = Command::new(env!("CARGO"));
    command
        .arg(verb)
        .args(["--workspace", "--all-features", "--offline", "--message-format=json"]);
    command
        .args(rest)
        .args(packages)
        .arg("--target-dir")
        .arg(target)
        .current_dir(copy);
    // What Cargo tells this test of its package; a build script that reads it would run again.
    for (name, _) in std::env::vars_os() {
        let told = [
            "CARGO_PKG_",
            "CARGO_MANIFEST_",
            "CARGO_BIN_EXE_",
            "CARGO_CRATE_",
            "CARGO_PRIMARY_",
        ];
        if name
            .to_str()
            .is_some_and(|name| told.iter().any(|prefix| name.starts_with(prefix)))
        {
            command.env_remove(name);
        }
    }
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let messages: Vec<Value> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    if !output.status.success() {
        let rendered = messages
            .iter()
            .filter_map(|message| message.pointer("/message/rendered")?.as_str());
        let log = String::from_utf8_lossy(&output.stderr);
        return Err(format!("cargo {verb} fails:\n{}{log}", rendered.collect::<String>()).into());
    }
    warned(&messages)?;
    let found = messages.iter().filter_map(|message| {
        let name = message.pointer("/target/name")?.as_str()?;
        let path = message.get("executable")?.as_str()?;
        Some((name.to_owned(), PathBuf::from(path)))
    });
    Ok(found.collect())
}

/// A reader's project compiles without a warning.
fn warned(messages: &[Value]) -> Result<(), String> {
    let of_guide = messages.iter().filter(|message| {
        message
            .pointer("/target/name")
            .and_then(Value::as_str)
            .is_some_and(|name| name.starts_with("guide-"))
    });
    let warnings: Vec<&str> = of_guide
        .filter_map(|message| message.pointer("/message/rendered")?.as_str())
        .collect();
    if warnings.is_empty() {
        return Ok(());
    }
    Err(format!(
        "the guide's code compiles with warnings:\n{}",
        warnings.join("\n")
    ))
}

//! What the packages depend on, as Cargo resolved it. Reads the lock file and what is already downloaded; no network.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::process::Command;

use serde_json::Value;

use crate::reading::root;

/// Runs a command of Cargo over the workspace, and returns what it prints.
pub(crate) fn cargo(arguments: &[&str]) -> Result<String, Box<dyn Error>> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(root()).args(arguments);
    let output = command.args(["--locked", "--offline"]).output()?;
    if output.status.success() {
        return Ok(String::from_utf8(output.stdout)?);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!(
        "cargo {}: {said}run `cargo fetch` if packages are missing",
        arguments.join(" ")
    )
    .into())
}

/// The packages that a build of the library with these features compiles, each with its version.
pub(crate) fn compiled(features: &str) -> Result<BTreeSet<String>, Box<dyn Error>> {
    let package = ["tree", "--package", "procession", "--features", features];
    let shape = ["--edges", "normal,build", "--prefix", "none", "--format", "{p}"];
    let printed = cargo(&[package.as_slice(), &shape].concat())?;
    // A line is a name, a version, and remarks.
    let lines = printed.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        Some(format!("{} {}", words.next()?, words.next()?))
    });
    Ok(lines.collect())
}

/// Returns the packages that the workspace's own compile and that need a newer Rust than these say, on this platform.
pub(crate) fn too_new() -> Result<Vec<String>, Box<dyn Error>> {
    let version = cargo_version()?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or("cargo does not name its host")?;
    let shape = ["metadata", "--format-version", "1", "--filter-platform", host];
    let graph: Value = serde_json::from_str(&cargo(&[shape.as_slice(), &["--all-features"]].concat())?)?;
    Ok(wrong_rust_versions(&graph))
}

fn cargo_version() -> Result<String, Box<dyn Error>> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    Ok(String::from_utf8(Command::new(program).arg("-vV").output()?.stdout)?)
}

/// Compares packages with the oldest Rust of the workspace, in what `cargo metadata` says. Those that tests alone need
/// are left out: users do not build them.
pub(crate) fn wrong_rust_versions(graph: &Value) -> Vec<String> {
    let texts = |list: &Value| -> Vec<String> {
        let list = list.as_array().into_iter().flatten();
        list.filter_map(|id| id.as_str().map(str::to_owned)).collect()
    };
    let by_id = |list: &Value| -> BTreeMap<String, Value> {
        let list = list.as_array().into_iter().flatten();
        let named = list.filter_map(|item| Some((item.get("id")?.as_str()?.to_owned(), item.clone())));
        named.collect()
    };
    let (packages, nodes) = (by_id(&graph["packages"]), by_id(&graph["resolve"]["nodes"]));
    let members = texts(&graph["workspace_members"]);
    let needs = |id: &String| {
        packages
            .get(id)
            .and_then(|package| rust_version(&package["rust_version"]))
    };
    let Some(oldest) = members.iter().filter_map(needs).min() else {
        return vec!["no package of the workspace has a rust-version".to_owned()];
    };
    let (mut seen, mut todo) = (BTreeSet::new(), members);
    while let Some(id) = todo.pop() {
        let dependencies = nodes.get(&id).and_then(|node| node["deps"].as_array());
        let built = dependencies.into_iter().flatten().filter(|dependency| {
            let kinds = dependency["dep_kinds"].as_array().into_iter().flatten();
            kinds.into_iter().any(|kind| kind["kind"] != "dev")
        });
        let built = built.filter_map(|dependency| dependency["pkg"].as_str().map(str::to_owned));
        let new: Vec<String> = built.filter(|id| !seen.contains(id)).collect();
        todo.extend(new);
        seen.insert(id);
    }
    let wrong = seen.iter().filter(|id| needs(id).is_some_and(|needed| needed > oldest));
    wrong
        .map(|id| format!("{id} needs Rust {}", packages[id]["rust_version"]))
        .collect()
}

/// `1.91` and `1.91.0` are the same.
fn rust_version(text: &Value) -> Option<[u32; 3]> {
    let mut parts = text.as_str()?.split('.').map(|part| part.parse().unwrap_or_default());
    Some([0; 3].map(|none: u32| parts.next().unwrap_or(none)))
}

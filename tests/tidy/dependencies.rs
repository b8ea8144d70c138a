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
    let named = |pointer: &str| -> BTreeMap<&str, &Value> {
        let list = graph.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
        list.filter_map(|item| Some((item.get("id")?.as_str()?, item)))
            .collect()
    };
    let (packages, nodes) = (named("/packages"), named("/resolve/nodes"));
    let needs = |id: &&str| packages.get(id)?.get("rust_version")?.as_str();
    let members = items(graph, "workspace_members").filter_map(Value::as_str);
    let mut todo: Vec<&str> = members.collect();
    let Some(oldest) = todo.iter().filter_map(needs).map(rust_version).min() else {
        return vec!["no package of the workspace has a rust-version".to_owned()];
    };
    let mut seen = BTreeSet::new();
    while let Some(id) = todo.pop() {
        if !seen.insert(id) {
            continue;
        }
        let dependencies = nodes.get(id).into_iter().flat_map(|node| items(node, "deps"));
        let built = dependencies.filter(|dependency| {
            let mut kinds = items(dependency, "dep_kinds").map(|kind| kind.get("kind"));
            kinds.any(|kind| kind.and_then(Value::as_str) != Some("dev"))
        });
        todo.extend(built.filter_map(|dependency| dependency.get("pkg")?.as_str()));
    }
    let needed = seen.iter().filter_map(|id| Some((id, needs(id)?)));
    needed
        .filter(|(_, version)| rust_version(version) > oldest)
        .map(|(id, version)| format!("{id} needs Rust {version}"))
        .collect()
}

fn items<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}

/// `1.91` and `1.91.0` are the same.
fn rust_version(text: &str) -> [u32; 3] {
    let mut parts = text.split('.').map(|part| part.parse().unwrap_or_default());
    [0; 3].map(|none: u32| parts.next().unwrap_or(none))
}

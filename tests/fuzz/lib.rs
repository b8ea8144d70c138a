//! The targets, by their names, for the fuzzer's binaries.

mod targets;

/// Gives one input to a target.
///
/// # Panics
///
/// If a property of the target does not hold.
pub fn run(target: &str, bytes: &[u8]) {
    let found = targets::TARGETS.into_iter().find(|(name, _)| *name == target);
    let (_, check) = found.expect("there is a target of this name");
    if let Err(why) = check(bytes) {
        panic!("{target}: {why}");
    }
}

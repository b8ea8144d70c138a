//! Hostile input without a fuzzer: every target over its corpus and over bounded
//! random changes of it, with little memory. A package of its own in this folder
//! has the same targets for the fuzzer; docs/internals/testing.md says how to run it.

mod directory;
mod known;
mod mutate;
mod targets;

use std::alloc::System;
use std::fs;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cap::Cap;

use mutate::Mutator;
use targets::{Checked, TARGETS};

/// Bytes that all tests here may have at once: far above what they need, and far
/// below what a length of 32 bits can ask for.
const MEMORY: usize = 768 << 20;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, MEMORY);

/// How long each target is given random input, unless `FUZZ_SECONDS` says.
const SECONDS: u64 = 3;

type Tested = Result<(), Box<dyn std::error::Error>>;

fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/fuzz/corpus")
        .join(target)
}

/// Returns the inputs of a target's corpus, in the order of their names.
fn inputs(target: &str) -> Result<Vec<(PathBuf, Vec<u8>)>, std::io::Error> {
    let mut paths: Vec<PathBuf> = fs::read_dir(corpus(target))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    paths.sort();
    paths
        .into_iter()
        .map(|path| Ok((path.clone(), fs::read(path)?)))
        .collect()
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Says it although the test's output may be lost: memory that is refused ends the process.
fn say(text: &str) {
    writeln!(std::io::stderr(), "{text}").ok();
}

/// Says why a target does not hold for an input; none if it does.
fn broken(check: fn(&[u8]) -> Checked, bytes: &[u8]) -> Option<String> {
    match catch_unwind(AssertUnwindSafe(|| check(bytes))) {
        Ok(checked) => checked.err().map(|error| error.to_string()),
        Err(_) => Some("it panicked, as said above".to_owned()),
    }
}

/// Random inputs are given until then.
#[expect(clippy::disallowed_methods, reason = "bounds a test's time, outside the engine")]
fn time_left(begun: &mut Option<Instant>) -> bool {
    let begun = *begun.get_or_insert_with(Instant::now);
    begun.elapsed() < Duration::from_secs(number("FUZZ_SECONDS").unwrap_or(SECONDS))
}

fn seed() -> u64 {
    number("FUZZ_SEED").unwrap_or_else(|| u64::from(std::process::id()))
}

fn over_corpus(name: &str, check: fn(&[u8]) -> Checked) -> Result<Vec<Vec<u8>>, Box<dyn std::error::Error>> {
    let inputs = inputs(name)?;
    assert!(!inputs.is_empty(), "the corpus of {name} is empty");
    for (path, bytes) in &inputs {
        if let Some(why) = broken(check, bytes) {
            return Err(format!("{}: {why}", path.display()).into());
        }
    }
    Ok(inputs.into_iter().map(|(_, bytes)| bytes).collect())
}

fn over_changes(name: &str, check: fn(&[u8]) -> Checked, corpus: Vec<Vec<u8>>) -> Tested {
    let seed = seed();
    say(&format!("target {name}: FUZZ_SEED={seed}"));
    let mut mutator = Mutator::new(seed, corpus);
    let (mut begun, mut count) = (None, 0_u64);
    while time_left(&mut begun) {
        count += 1;
        let input = mutator.next();
        if let Some(why) = broken(check, &input) {
            let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{seed}"));
            fs::write(&path, &input)?;
            return Err(format!("{name}, with the input in {}: {why}", path.display()).into());
        }
    }
    say(&format!("target {name}: {count} inputs"));
    Ok(())
}

fn holds(name: &str) -> Tested {
    let (name, check) = TARGETS
        .into_iter()
        .find(|(target, _)| *target == name)
        .ok_or("there is no such target")?;
    let corpus = over_corpus(name, check)?;
    over_changes(name, check, corpus)
}

#[test]
fn values_of_any_bytes_are_read_or_refused() -> Tested {
    holds("values")
}

#[test]
fn any_text_is_read_or_refused() -> Tested {
    holds("text")
}

#[test]
fn any_expression_is_evaluated_or_refused() -> Tested {
    holds("expressions")
}

#[test]
fn any_log_is_read_as_far_as_it_is_whole() -> Tested {
    holds("log")
}

#[test]
fn any_disk_opens_or_is_refused() -> Tested {
    holds("disk")
}

#[test]
fn any_export_is_read_or_refused_and_goes_on_or_says_why_not() -> Tested {
    holds("export")
}

#[test]
fn any_journal_starts_or_is_refused_and_a_sound_family_ends() -> Tested {
    holds("recovery")
}

#[test]
fn any_rows_start_or_are_put_aside_and_a_sound_family_ends() -> Tested {
    holds("rows")
}

#[test]
fn any_definition_of_a_saga_is_drawn_or_refused() -> Tested {
    holds("saga")
}

/// A length of 4 GiB in ten bytes is an error and no allocation.
#[test]
fn a_length_is_not_believed() -> Tested {
    let lengths: [&[u8]; 5] = [
        &[0xc6, 0xff, 0xff, 0xff, 0xff],
        &[0xdb, 0xff, 0xff, 0xff, 0xff],
        &[0xdd, 0xff, 0xff, 0xff, 0xff],
        &[0xdf, 0xff, 0xff, 0xff, 0xff],
        &[0xc9, 0xff, 0xff, 0xff, 0xff],
    ];
    for (_, check) in TARGETS {
        for length in lengths {
            for what in 0..12 {
                check(&[&[what], length].concat())?;
                check(&[&[what, 1], length, &[0; 4]].concat())?;
            }
        }
    }
    Ok(())
}

/// The seeds in the corpus are what engines write: made anew where that is allowed, as golden files are.
#[test]
fn seeds_are_there() -> Tested {
    let may_write = std::env::var("PROCESSION_SEEDS").is_ok_and(|word| word == "write");
    for (target, name, bytes) in targets::seeds::all()? {
        let path = corpus(target).join(format!("seed_{name}"));
        if may_write {
            fs::create_dir_all(corpus(target))?;
            fs::write(&path, bytes)?;
        } else {
            assert!(
                path.exists(),
                "{} is missing: run this with PROCESSION_SEEDS=write",
                path.display()
            );
        }
    }
    Ok(())
}

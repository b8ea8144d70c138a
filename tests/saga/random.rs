//! G-067: sagas at random. One seed draws a definition, what its services answer and when, what people decide, restarts and
//! crashes of the store. Whenever nothing moves, what the engine says is compared with a model that knows the definition, the
//! calls and the decisions, and nothing of the engine.
//!
//! `SAGA_SEED` runs one seed, `SAGA_SEEDS` so many from `SAGA_FIRST` on.

#![expect(
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a drawn definition refers to its own states by their places, and the model names what it looks for"
)]

mod compare;
mod deaths;
mod draw;
mod families;
mod grow;
mod joins;
mod life;
mod member;
mod model;
mod outside;
mod shape;
mod steps;

use std::collections::BTreeMap;
use std::time::Instant;

use life::Story;

/// Seeds of every run, from 1 on.
const FIXED: u64 = 400;
/// Seeds that met something wrong: a sub machine that is skipped before it began was shown as undone.
const FOUND: [u64; 3] = [1_007_039, 1_012_086, 1_031_922];
/// Seeds in which three processes die with one call and its saga fails, so the call counts as executed. In the second one it is
/// not known whether the call had come back before the last crash.
const DEADLY: [u64; 2] = [1_009_363, 1_056_074];
/// What they must have met, or they show less than they say.
const MET: [&str; 8] = [
    "abort",
    "crash",
    "decision",
    "failed",
    "skip",
    "stuck",
    "succeeded",
    "undone",
];
/// What happened to a failing saga that is shown.
const SHOWN: usize = 40;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Lives the saga of a seed. Returns what it met.
fn run(seed: u64) -> Result<Vec<&'static str>, String> {
    let mut story = Story::new(seed);
    match story.live() {
        Ok(()) => Ok(story.met),
        Err(why) => {
            let from = story.told.len().saturating_sub(SHOWN);
            let told = story.told.get(from..).unwrap_or_default().join("\n  ");
            let replay = format!("SAGA_SEED={seed} cargo test --test saga g_067");
            let drawn = story.drawn.pretty();
            Err(format!(
                "of these machines:\n{drawn}\nseed {seed}:\n  {told}\n{why}\nreplay it with: {replay}"
            ))
        }
    }
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the machine's time bounds the run, and no seed's saga"
)]
#[expect(
    clippy::print_stderr,
    reason = "whoever looks for a fault wants to know which seeds were tried"
)]
fn g_067_all_at_random() -> Result<(), Told> {
    if let Some(seed) = number("SAGA_SEED") {
        return run(seed).map(drop).map_err(Told);
    }
    let begun = Instant::now();
    let (first, count) = (number("SAGA_FIRST").unwrap_or(1), number("SAGA_SEEDS"));
    let mut met = BTreeMap::new();
    let mut wrong = Vec::new();
    let chosen = FOUND.into_iter().chain(DEADLY).filter(|_| count.is_none());
    for seed in (first..first.saturating_add(count.unwrap_or(FIXED))).chain(chosen) {
        match run(seed) {
            Ok(all) => all.into_iter().for_each(|what| *met.entry(what).or_insert(0_u64) += 1),
            Err(why) => wrong.push((seed, why)),
        }
    }
    if let Some((_, why)) = wrong.first() {
        let seeds: Vec<u64> = wrong.iter().map(|(seed, _)| *seed).collect();
        return Err(Told(format!("{why}\nall seeds that failed: {seeds:?}")));
    }
    let took = begun.elapsed();
    eprintln!("{} seeds in {took:?}: {met:?}", count.unwrap_or(FIXED));
    if count.is_some() {
        return Ok(());
    }
    let missing: Vec<&str> = MET.into_iter().filter(|what| !met.contains_key(what)).collect();
    assert!(missing.is_empty(), "no fixed seed has met {missing:?}, of {met:?}");
    Ok(())
}

/// What went wrong, in lines: the harness prints an error as code would write it.
struct Told(String);

impl std::fmt::Debug for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

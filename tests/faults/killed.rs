//! `kill -9` in a loop, at random instants.

use std::time::Duration;

use procession_cli::demo::draw::Draw;

use crate::Outcome;
use crate::check::whole;
use crate::other::{Other, pass};
use crate::place::{ENDLESS, Ground};

const KILLS: u64 = 12;

/// Another one each time, unless one is given.
fn seed() -> u64 {
    let given = std::env::var("FAULTS_SEED").ok().and_then(|text| text.parse().ok());
    given.unwrap_or_else(|| u64::from(std::process::id()))
}

#[test]
fn killed_again_and_again_it_loses_nothing_and_commits_no_stage_twice() -> Outcome {
    let seed = seed();
    rounds(seed).map_err(|error| {
        format!("{error}\nthe instants again: FAULTS_SEED={seed} cargo test --test faults killed").into()
    })
}

fn rounds(seed: u64) -> Outcome {
    let ground = Ground::new()?;
    let mut draw = Draw::new(seed);
    for round in 0..KILLS {
        let filler = draw.below(3_000);
        let task = ground.task(round * ENDLESS, ENDLESS, filler).with_checkpoints();
        let mut other = Other::plainly(&task)?;
        // A quarter of them die in the start or in the recovery.
        if draw.below(4) > 0 {
            other.until("acknowledged", 1 + draw.below(60))?;
        }
        pass(Duration::from_micros(draw.number() % 40_000));
        assert!(other.kill()?, "round {round} of seed {seed} ended by itself");
    }
    let known = whole(&ground).map_err(|error| format!("seed {seed}: {error}"))?;
    assert!(known > 0, "seed {seed}: nothing was acknowledged");
    Ok(())
}

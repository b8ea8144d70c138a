//! G-047: a hundred branches, and then one state, once, in whatever order the branches end.

use std::time::Duration;

use procession::saga::SagaStatus;
use procession::testkit::{FaultPlan, Trouble};
use serde_json::{Value, json};

use super::draw::Draw;
use super::number;
use crate::Tested;
use crate::kit::{Ground, status};

/// Seeds of every run.
const SEEDS: u64 = 20;
const BRANCHES: usize = 100;

/// How long each branch takes: many end at once, and some before others begin.
fn rules(draw: &mut Draw) -> Value {
    let rule = |branch| json!({ "state": format!("B{branch}"), "takes_ms": draw.below(6) });
    (0..BRANCHES).map(rule).collect()
}

#[test]
fn g_047_join_exactly_once_in_any_order() -> Tested {
    let (first, count) = (number("SAGA_FIRST").unwrap_or(1), number("SAGA_SEEDS").unwrap_or(SEEDS));
    for seed in first..first.saturating_add(count) {
        one(seed).map_err(|why| -> Trouble { format!("seed {seed}: {why}").into() })?;
    }
    Ok(())
}

fn one(seed: u64) -> Tested {
    let mut draw = Draw::new(seed);
    let ground = Ground::new(&["fork_hundred.json"], "fork_hundred")?;
    ground.rules(rules(&mut draw))?;
    ground.live_with(&ground.sagas, FaultPlan::none().late(seed, 8), async |run| {
        let saga = ground.start(run, "the saga", json!({})).await?;
        run.pass(Duration::from_millis(10)).await;
        assert_eq!(status(&saga).await?, (SagaStatus::Success, None));
        let calls = ground.calls();
        let last = calls.last().map(String::as_str);
        assert_eq!((calls.len(), last), (BRANCHES + 1, Some("C")), "{calls:?}");
        let mut branches: Vec<&String> = calls.iter().take(BRANCHES).collect();
        branches.sort_unstable();
        branches.dedup();
        assert_eq!(branches.len(), BRANCHES, "{calls:?}");
        Ok(())
    })
}

//! The whole workload under `kill -9`, and under Ctrl-C.

use procession_cli::demo::draw::Draw;

use crate::Outcome;
use crate::command::{Running, closing, content, demo, must_be_whole, run};

const SIZES: &str = "--tables 6 --operations 300 --seed 11 --fail-rate 0.2";
const KILLS: usize = 20;

#[test]
fn e_123_killed_and_started_again() -> Outcome {
    let (calm, killed) = (tempfile::tempdir()?, tempfile::tempdir()?);
    run(calm.path(), SIZES)?;
    let mut draw = Draw::new(23);
    let mut kills = 0;
    for start in 0..10 * KILLS {
        let mut running = Running::start(demo(killed.path(), SIZES))?;
        let line = running.until("resumed")?.ok_or("it did not say how many it resumed")?;
        assert!(start > 0 || line.contains("resumed 0 "), "{line}");
        let looks = draw.below(60_000) as u64;
        kills += usize::from(running.kill_after(looks)?);
        if kills == KILLS {
            break;
        }
    }
    assert_eq!(kills, KILLS, "the workload ended before it was killed often enough");
    let last = run(killed.path(), SIZES)?;
    must_be_whole(&last);
    assert_eq!(content(killed.path())?, content(calm.path())?);
    Ok(())
}

#[test]
fn e_124_an_interrupt_drains_and_the_next_start_goes_on() -> Outcome {
    let directory = tempfile::tempdir()?;
    let mut running = Running::start(demo(directory.path(), "--tables 4 --operations 250 --seed 5"))?;
    running
        .until("operations have ended")?
        .ok_or("it ended without a word of progress")?;
    let (status, text) = running.interrupt()?;
    assert!(!status.success(), "{text}");
    assert!(status.code().is_some(), "{text}");
    assert!(text.contains("go on with"), "{text}");
    let output = demo(directory.path(), "--json").output()?;
    must_be_whole(&closing(&output)?);
    Ok(())
}

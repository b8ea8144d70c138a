//! A full disk, and a limit on the size of files.

use crate::Outcome;
use crate::check::{acknowledged, refused_with, stopped_with, whole};
use crate::disk::{Mounted, apart};
use crate::other::{Other, task_after};
use crate::place::{ENDLESS, Ground};

/// One or two MiB, as the shell counts; the log of a few procedures is far below.
const LIMITED: &str = "trap '' XFSZ && ulimit -f 2048";
/// Bytes of a submission, so that the room is used up soon.
const FILLER: usize = 4_000;

#[test]
fn at_a_limit_on_the_size_of_files_it_stops_and_loses_nothing() -> Outcome {
    let ground = Ground::new()?;
    Other::plainly(&ground.task(0, 20, FILLER))?.drained()?;
    for from in [1_000_000, 2_000_000] {
        // The second time the limit is as good as reached from the start on.
        let command = task_after(LIMITED, &ground.task(from, ENDLESS, FILLER))?;
        let (_, lines) = Other::start(command)?.end()?;
        stopped_with(&lines, "File too large").or_else(|_| refused_with(&lines, &["File too large", "ulimit -f"]))?;
        assert!(from == 2_000_000 || acknowledged(&ground.ledger())?.len() > 20);
    }
    assert!(whole(&ground)? > 20);
    Ok(())
}

#[test]
fn a_journal_that_cannot_be_made_for_a_limit_is_made_later() -> Outcome {
    let ground = Ground::new()?;
    let (_, lines) = Other::start(task_after(LIMITED, &ground.task(0, 1, 0))?)?.end()?;
    refused_with(&lines, &["File too large", "raise the limit", "journal"])?;
    Other::plainly(&ground.task(0, 20, 0))?.drained()?;
    assert_eq!(whole(&ground)?, 20);
    Ok(())
}

#[test]
fn on_a_full_disk_it_stops_and_loses_nothing() -> Outcome {
    apart("full::on_a_full_disk_it_stops_and_loses_nothing", || {
        let ground = Ground::new()?;
        let disk = Mounted::memory(&ground.journal, "3m")?;
        let (_, lines) = Other::plainly(&ground.task(0, ENDLESS, FILLER))?.end()?;
        stopped_with(&lines, "No space left on device")?;
        let before = acknowledged(&ground.ledger())?.len();
        assert!(before > 20, "only {before}");
        // It is still full: what the last one left of its last commit is all the room there is.
        let (_, lines) = Other::plainly(&ground.task(1_000_000, ENDLESS, FILLER))?.end()?;
        stopped_with(&lines, "No space left on device")
            .or_else(|_| refused_with(&lines, &["No space left on device", "make room"]))?;
        disk.remount("size=64m")?;
        assert!(whole(&ground)? >= before);
        Ok(())
    })
}

#[test]
fn on_a_disk_that_was_full_from_the_start_it_begins_once_there_is_room() -> Outcome {
    apart(
        "full::on_a_disk_that_was_full_from_the_start_it_begins_once_there_is_room",
        || {
            let ground = Ground::new()?;
            let disk = Mounted::memory(&ground.journal, "16k")?;
            let (_, lines) = Other::plainly(&ground.task(0, 20, 0))?.end()?;
            refused_with(&lines, &["No space left on device", "make room"])?;
            disk.remount("size=64m")?;
            Other::plainly(&ground.task(0, 20, 0))?.drained()?;
            assert_eq!(whole(&ground)?, 20);
            Ok(())
        },
    )
}

/// The store's own threads may be the first to meet it, and they do not say what it was.
#[test]
fn on_a_full_disk_a_checkpoint_stops_and_loses_nothing() -> Outcome {
    apart("full::on_a_full_disk_a_checkpoint_stops_and_loses_nothing", || {
        let ground = Ground::new()?;
        let disk = Mounted::memory(&ground.journal, "3m")?;
        let task = ground.task(0, ENDLESS, FILLER).with_checkpoints();
        let (_, lines) = Other::plainly(&task)?.end()?;
        stopped_with(&lines, "No space left on device")
            .or_else(|_| stopped_with(&lines, "failed in the background; see whether the disk is full"))?;
        let before = acknowledged(&ground.ledger())?.len();
        assert!(before > 20, "only {before}");
        disk.remount("size=64m")?;
        Other::plainly(&ground.task(ENDLESS, 20, FILLER).with_checkpoints())?.drained()?;
        assert!(whole(&ground)? >= before + 20);
        Ok(())
    })
}

/// The log still has room when the first checkpoint begins, and the tables have none.
#[test]
fn on_a_disk_without_room_for_a_table_it_stops_and_loses_nothing() -> Outcome {
    apart(
        "full::on_a_disk_without_room_for_a_table_it_stops_and_loses_nothing",
        || {
            let ground = Ground::new()?;
            let disk = Mounted::memory(&ground.journal, "26m")?;
            let (_, lines) = Other::plainly(&ground.task(0, ENDLESS, 100_000))?.end()?;
            stopped_with(&lines, "No space left on device")
                .or_else(|_| stopped_with(&lines, "failed in the background; see whether the disk is full"))?;
            let before = acknowledged(&ground.ledger())?.len();
            disk.remount("size=256m")?;
            assert!(whole(&ground)? >= before);
            Ok(())
        },
    )
}

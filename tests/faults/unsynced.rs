//! A sync that fails. The system then takes the pages for clean: they can be
//! read until they leave its memory, and are not on disk.
//!
//! The disk is a file on a disk that gets full: what was given out as room is not there.

use std::path::Path;

use crate::Outcome;
use crate::check::{acknowledged, stopped_with, whole};
use crate::disk::{Mounted, apart, skip};
use crate::other::{Other, shell};
use crate::place::{ENDLESS, Ground};

const FILLER: usize = 4_000;

pub(crate) fn make_image(image: &Path) -> Outcome {
    let script = "truncate -s 128M \"$1\" && mkfs.ext4 -q -F -O ^has_journal \"$1\"";
    shell(script, &[image.as_ref()])
}

#[test]
fn what_a_failed_sync_left_is_not_believed_at_the_next_start() -> Outcome {
    let test = "unsynced::what_a_failed_sync_left_is_not_believed_at_the_next_start";
    apart(test, || {
        let ground = Ground::new()?;
        let below = ground.path().join("below");
        let _below = Mounted::memory(&below, "32m")?;
        let image = below.join("image");
        if let Err(error) = make_image(&image) {
            return skip(test, &error.to_string());
        }
        let disk = match Mounted::image(&image, &ground.journal) {
            Ok(disk) => disk,
            Err(error) => return skip(test, &error.to_string()),
        };
        Other::plainly(&ground.task(0, 20, FILLER))?.drained()?;

        let mut other = Other::plainly(&ground.task(ENDLESS, ENDLESS, FILLER))?;
        other.until("acknowledged", 20)?;
        let ballast = below.join("ballast");
        shell("cat /dev/zero >\"$1\" 2>&- || true", &[ballast.as_ref()])?;
        let (_, lines) = other.end()?;
        stopped_with(&lines, "os error")?;
        std::fs::remove_file(&ballast)?;
        let before = acknowledged(&ground.ledger())?.len();
        assert!(before >= 40, "only {before}");

        // On the same pages; what it acknowledges must not stand on any that are not on disk.
        Other::plainly(&ground.task(2 * ENDLESS, 20, FILLER))?.drained()?;
        disk.unmount()?;
        let _disk = Mounted::image(&image, &ground.journal)?;
        assert_eq!(whole(&ground)?, before + 20);
        Ok(())
    })
}

//! E-119: split and merge keep every row, and refuse a file that changed meanwhile.

use std::fs;

use procession_cli::demo::faults::Lot;
use procession_cli::demo::meta::TabletState;
use procession_cli::demo::procedures::{LoadTablet, MergeTablet, SplitTablet, Target, UnloadTablet};

use crate::Outcome;
use crate::world::in_world;

fn first() -> Target {
    Target::Holding(String::new())
}

#[test]
fn e_119_a_tablet_of_1000_rows_is_split_and_merged_again() -> Outcome {
    in_world(3_000, 2, |mut world| async move {
        world.create("t", 0, 1).await?;
        let whole = world.tablets("t").await?.remove(0);
        assert_eq!(whole.rows, 1_000);
        let halves = world
            .succeed(SplitTablet::new(Lot::fair(0), "t", first()))
            .await?
            .output::<Vec<String>>()?;
        let split = world.tablets("t").await?;
        assert_eq!(halves, Some(split.iter().map(|tablet| tablet.id.clone()).collect()));
        assert_eq!(split.iter().map(|tablet| tablet.rows).collect::<Vec<_>>(), [500, 500]);
        world.verify().await?;
        world.succeed(MergeTablet::new(Lot::fair(0), "t", first())).await?;
        let merged = world.tablets("t").await?;
        assert_eq!(
            (merged.len(), merged[0].rows, merged[0].digest),
            (1, 1_000, whole.digest)
        );
        world
            .fail(MergeTablet::new(Lot::fair(0), "t", first()), "the only one")
            .await?;
        world.verify().await?;
        world.stop().await
    })
}

#[test]
fn e_119_a_changed_file_fails_the_procedure_and_the_originals_are_loaded_again() -> Outcome {
    in_world(60, 2, |mut world| async move {
        world.create("t", 0, 2).await?;
        let tablets = world.tablets("t").await?;
        let place = world.master.files().place_of(&tablets[1]);
        let good = fs::read(&place)?;
        fs::write(&place, "000000;another row\n")?;
        let before = world.picture().await?;
        world
            .fail(
                SplitTablet::new(Lot::fair(0), "t", Target::Tablet(tablets[1].id.clone())),
                "has changed",
            )
            .await?;
        assert_eq!(world.picture().await?, before);
        world
            .fail(MergeTablet::new(Lot::fair(0), "t", first()), "has changed")
            .await?;
        assert_eq!(world.picture().await?, before);
        assert!(
            world
                .tablets("t")
                .await?
                .iter()
                .all(|tablet| tablet.state == TabletState::Loaded)
        );
        fs::write(&place, good)?;
        world.succeed(MergeTablet::new(Lot::fair(0), "t", first())).await?;
        world.verify().await?;
        world.stop().await
    })
}

#[test]
fn e_119_a_tablet_that_was_changed_while_offline_is_not_loaded() -> Outcome {
    in_world(60, 2, |mut world| async move {
        world.create("t", 0, 1).await?;
        world.succeed(UnloadTablet::new(Lot::fair(0), "t", first())).await?;
        let tablet = world.tablets("t").await?.remove(0);
        let place = world.master.files().place_of(&tablet);
        let good = fs::read(&place)?;
        fs::write(&place, "x\n")?;
        world
            .fail(LoadTablet::new(Lot::fair(0), "t", first()), "has changed")
            .await?;
        fs::remove_file(&place)?;
        world
            .fail(LoadTablet::new(Lot::fair(0), "t", first()), "is missing")
            .await?;
        fs::write(&place, good)?;
        world.succeed(LoadTablet::new(Lot::fair(0), "t", first())).await?;
        world.verify().await?;
        world.stop().await
    })
}

#[test]
fn rows_of_one_key_are_not_split() -> Outcome {
    in_world(3, 2, |mut world| async move {
        world.create("t", 0, 4).await?;
        assert_eq!(world.tablets("t").await?.len(), 1);
        world
            .fail(SplitTablet::new(Lot::fair(0), "t", first()), "too few rows")
            .await?;
        world.verify().await?;
        world.stop().await
    })
}

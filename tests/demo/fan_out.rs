//! E-120: fan-out over a table of 64 tablets.

use procession_cli::demo::faults::{Fault, INJECTED, Lot, Moment};
use procession_cli::demo::input::Share;
use procession_cli::demo::procedures::{CreateTable, DeleteTable, UpdateTable};

use crate::Outcome;
use crate::world::in_world;

const ALL: Share = Share { index: 0, of: 3 };

fn doomed(kind: &str, stage: &str, ordinal: u32) -> Lot {
    Lot::doomed(
        0,
        Fault {
            kind: kind.into(),
            stage: stage.into(),
            ordinal,
            moment: Moment::After,
        },
    )
}

#[test]
fn e_120_fan_out_over_64_tablets() -> Outcome {
    in_world(3_000, 4, |mut world| async move {
        let nothing = world.picture().await?;
        for ordinal in [0, 33, 63] {
            world
                .fail(
                    CreateTable::new(doomed("load_tablet", "Open", ordinal), "t", ALL, 64),
                    INJECTED,
                )
                .await?;
            assert_eq!(world.picture().await?, nothing);
        }
        world.create("t", 0, 64).await?;
        let tablets = world.tablets("t").await?;
        assert_eq!(tablets.len(), 64);
        for server in ["s1", "s2", "s3", "s4"] {
            assert_eq!(tablets.iter().filter(|tablet| tablet.server == server).count(), 16);
        }
        let created = world.picture().await?;
        for (kind, stage, ordinal) in [
            ("load_tablet", "Open", 40),
            ("unload_tablet", "Close", 7),
            ("move_tablet", "Finish", 63),
        ] {
            world
                .fail(UpdateTable::new(doomed(kind, stage, ordinal), "t", "a", "b"), INJECTED)
                .await?;
            assert_eq!(world.picture().await?, created);
        }
        world.succeed(UpdateTable::new(Lot::fair(0), "t", "a", "b")).await?;
        assert!(world.tablets("t").await?.iter().all(|tablet| tablet.schema == 2));
        let updated = world.picture().await?;
        world
            .fail(DeleteTable::new(doomed("unload_tablet", "Close", 50), "t"), INJECTED)
            .await?;
        assert_eq!(world.picture().await?, updated);
        world.succeed(DeleteTable::new(Lot::fair(0), "t")).await?;
        assert_eq!(world.picture().await?, nothing);
        world.stop().await
    })
}

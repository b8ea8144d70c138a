//! E-118: a moved tablet is on one server at each moment, and on the other at the end.

use procession_cli::demo::faults::{Fault, INJECTED, Lot, Moment};
use procession_cli::demo::meta::TabletState;
use procession_cli::demo::procedures::{MoveTablet, Target};

use crate::Outcome;
use crate::world::in_world;

#[test]
fn e_118_a_move_ends_on_the_other_server_or_changes_nothing() -> Outcome {
    in_world(60, 2, |mut world| async move {
        world.create("t", 0, 1).await?;
        let tablet = world.tablets("t").await?.remove(0);
        let (from, to) = (tablet.server.clone(), if tablet.server == "s1" { "s2" } else { "s1" });
        let target = Target::Tablet(tablet.id.clone());
        let before = world.picture().await?;
        for kind in ["unload_tablet", "load_tablet"] {
            let stage = if kind == "unload_tablet" { "Close" } else { "Open" };
            let fault = Fault {
                kind: kind.into(),
                stage: stage.into(),
                ordinal: 0,
                moment: Moment::After,
            };
            world
                .fail(
                    MoveTablet::new(Lot::doomed(0, fault), "t", target.clone(), Some(to)),
                    INJECTED,
                )
                .await?;
            assert_eq!(world.picture().await?, before);
        }
        let ended = world
            .succeed(MoveTablet::new(Lot::fair(0), "t", target.clone(), Some(to)))
            .await?;
        assert_eq!(ended.output::<String>()?.as_deref(), Some(to));
        let files = world.master.files();
        let moved = world.tablets("t").await?.remove(0);
        assert_eq!((moved.state, moved.server.as_str()), (TabletState::Loaded, to));
        assert!(files.on_server(to, &tablet.file()).exists());
        assert!(!files.on_server(&from, &tablet.file()).exists());
        world
            .fail(MoveTablet::new(Lot::fair(0), "t", target, Some(to)), "already")
            .await?;
        world.verify().await?;
        world.stop().await
    })
}

//! E-121: limits hold, and of two procedures on one tablet the second waits, looks
//! again, and ends cleanly.

use procession::errors::AskError;
use procession::status::ProcedureState;
use procession_cli::demo::faults::Lot;
use procession_cli::demo::master::LIMITS;
use procession_cli::demo::procedures::{
    DeleteTable, DisableTable, LoadTablet, MergeTablet, MoveTablet, SplitTablet, Target, UnloadTablet,
};
use procession_cli::demo::workload::Action;

use crate::Outcome;
use crate::world::in_world;

#[test]
fn e_121_limits_and_conflicts() -> Outcome {
    in_world(3_000, 4, |mut world| async move {
        for (share, name) in (0..).zip(["a", "b"]) {
            world.create(name, share, 40).await?;
        }
        world.succeed(DisableTable::new(Lot::fair(0), "b")).await?;
        world.table("b").state = procession_cli::demo::meta::TableState::Disabled;
        let tablets = world.tablets("a").await?;
        let target = |place: usize| Target::Tablet(tablets[place % tablets.len()].id.clone());
        let mut actions: Vec<Action> = Vec::new();
        for place in 0..500 {
            actions.push(LoadTablet::new(Lot::fair(0), "a", target(place)).into());
            if place < 200 {
                actions.push(MoveTablet::new(Lot::fair(0), "a", target(place), None).into());
            }
            if place < 50 {
                // Some tablets are only split or only merged, most of them both.
                actions.push(MergeTablet::new(Lot::fair(0), "a", target(place + 20)).into());
                actions.push(SplitTablet::new(Lot::fair(0), "a", target(place % 30)).into());
            }
        }
        let mut all = Box::pin(world.perform_all(actions));
        let ends = loop {
            tokio::select! {
                ends = &mut all => break ends?,
                within = within_limits(&world.executor) => within?,
            }
        };
        drop(all);
        for ended in &ends {
            let text = ended.cause.as_ref().map_or("", |cause| cause.text.as_str());
            let clean = [
                "is gone",
                "is loaded already",
                "only one",
                "too few rows",
                "is on ",
                "one key",
            ];
            let ok = ended.state == ProcedureState::Success || clean.iter().any(|part| text.contains(part));
            assert!(ok, "{} {:?}: {text}", ended.kind, ended.state);
        }
        let moved = |kind: &str| {
            ends.iter()
                .filter(|ended| ended.kind.as_str() == kind && ended.state == ProcedureState::Success)
                .count()
        };
        assert!(moved("split_tablet") > 0 && moved("merge_tablet") > 0 && moved("move_tablet") > 0);
        world.verify().await?;
        world.stop().await
    })
}

async fn within_limits(executor: &procession::Executor) -> Result<(), AskError> {
    for limit in executor.limits().await? {
        let allowed = LIMITS
            .iter()
            .find(|(kind, _)| limit.key.as_str() == *kind)
            .map(|(_, allowed)| *allowed);
        assert_eq!(limit.limit, allowed);
        assert!(
            limit.used <= allowed.unwrap_or(0),
            "{} of {:?} {}",
            limit.used,
            allowed,
            limit.key
        );
        // All unloads here are children of moves, splits and merges.
        assert!(limit.key.as_str() != "unload_tablet" || limit.used == 0);
    }
    tokio::task::yield_now().await;
    Ok(())
}

#[test]
fn e_121_of_two_on_one_tablet_the_second_finds_it_gone() -> Outcome {
    in_world(300, 2, |mut world| async move {
        world.create("t", 0, 2).await?;
        let target = Target::Tablet(world.tablets("t").await?[0].id.clone());
        let actions: Vec<Action> = vec![
            SplitTablet::new(Lot::fair(0), "t", target.clone()).into(),
            MergeTablet::new(Lot::fair(0), "t", target.clone()).into(),
            UnloadTablet::new(Lot::fair(0), "none", target).into(),
            DeleteTable::new(Lot::fair(0), "none").into(),
        ];
        let ends = world.perform_all(actions).await?;
        let succeeded = ends
            .iter()
            .filter(|ended| ended.state == ProcedureState::Success)
            .count();
        assert_eq!(succeeded, 1, "{ends:?}");
        let gone = ends
            .iter()
            .take(2)
            .filter_map(|ended| ended.cause.as_ref())
            .all(|cause| cause.text.contains("is gone"));
        assert!(gone, "{ends:?}");
        world.verify().await?;
        world.stop().await
    })
}

/// Whoever waits for a lock here holds none, so nobody waits for another in a
/// circle, not even where a deletion stands in the midst of all the queues.
#[test]
fn e_121_a_deletion_in_the_midst_ends_and_so_does_all_around_it() -> Outcome {
    in_world(900, 3, |mut world| async move {
        world.create("t", 0, 12).await?;
        let keys: Vec<String> = world
            .tablets("t")
            .await?
            .into_iter()
            .map(|tablet| tablet.start)
            .collect();
        let target = |place: usize| Target::Holding(keys[place % keys.len()].clone());
        let mut actions: Vec<Action> = Vec::new();
        for place in 0..60 {
            actions.push(SplitTablet::new(Lot::fair(0), "t", target(place)).into());
            actions.push(MergeTablet::new(Lot::fair(0), "t", target(place * 5)).into());
            actions.push(MoveTablet::new(Lot::fair(0), "t", target(place * 7), None).into());
            if place == 30 {
                actions.push(DeleteTable::new(Lot::fair(0), "t").into());
            }
        }
        let ends = world.perform_all(actions).await?;
        for ended in &ends {
            let text = ended.cause.as_ref().map_or("", |cause| cause.text.as_str());
            let clean = ["there is no such table", "only one", "too few rows", "one key"];
            let ok = ended.state == ProcedureState::Success || clean.iter().any(|part| text.contains(part));
            assert!(ok, "{} {:?}: {text}", ended.kind, ended.state);
            assert!(ended.kind.as_str() != "delete_table" || ended.state == ProcedureState::Success);
        }
        world.expected.tables.clear();
        world.verify().await?;
        world.stop().await
    })
}

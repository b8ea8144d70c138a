//! E-117: each of the twelve procedures succeeds, is refused, and fails for good
//! at each of its stages and of its children's.

use procession_cli::demo::faults::{Fault, INJECTED, Lot, Moment};
use procession_cli::demo::input::Share;
use procession_cli::demo::meta::{QuotaRow, TableState};
use procession_cli::demo::procedures::{
    CreateTable, DeleteTable, DisableTable, EnableTable, LoadTablet, MergeTablet, MoveTablet, SetQuota, SplitTablet,
    Target, UnloadTablet, UpdateAuth, UpdateTable,
};
use procession_cli::demo::workload::Action;

use crate::Outcome;
use crate::world::{World, in_world};

const ROWS: usize = 90;
const LOAD: [(&str, &str); 2] = [("load_tablet", "Prepare"), ("load_tablet", "Open")];
const UNLOAD: [(&str, &str); 2] = [("unload_tablet", "Prepare"), ("unload_tablet", "Close")];

/// A procedure in the furnished world: how it is made, where it may fail, and what it changes.
pub(crate) struct Case {
    pub(crate) make: fn(Lot) -> Action,
    pub(crate) stages: Vec<(&'static str, &'static str)>,
    pub(crate) then: fn(&mut World),
}

fn first() -> Target {
    Target::Holding(String::new())
}

fn share() -> Share {
    Share { index: 1, of: 3 }
}

/// The stages of a kind, with those of its children.
fn stages(
    kind: &'static str,
    own: &[&'static str],
    children: &[[(&'static str, &'static str); 2]],
) -> Vec<(&'static str, &'static str)> {
    own.iter()
        .map(|stage| (kind, *stage))
        .chain(children.iter().flatten().copied())
        .collect()
}

pub(crate) fn cases() -> Vec<Case> {
    let fan = ["Begin", "Finish"];
    let shape = ["Prepare", "Write", "Commit", "Finish"];
    let sought = ["Find", "Prepare", "Write", "Commit", "Finish"];
    let mut update = stages("update_table", &fan, &[UNLOAD, LOAD]);
    update.extend(stages("move_tablet", &["Prepare", "Reload", "Finish"], &[]));
    vec![
        Case {
            make: |lot| CreateTable::new(lot, "new", share(), 3).into(),
            stages: stages("create_table", &shape, &[LOAD]),
            then: |world| {
                let table = procession_cli::demo::workload::ExpectedTable::new(share());
                world.expected.tables.insert("new".to_owned(), table);
            },
        },
        Case {
            make: |lot| DeleteTable::new(lot, "on").into(),
            stages: stages("delete_table", &fan, &[UNLOAD]),
            then: |world| drop(world.expected.tables.remove("on")),
        },
        Case {
            make: |lot| DeleteTable::new(lot, "off").into(),
            stages: stages("delete_table", &fan, &[]),
            then: |world| drop(world.expected.tables.remove("off")),
        },
        Case {
            make: |lot| DisableTable::new(lot, "on").into(),
            stages: stages("disable_table", &fan, &[UNLOAD]),
            then: |world| world.table("on").state = TableState::Disabled,
        },
        Case {
            make: |lot| EnableTable::new(lot, "off").into(),
            stages: stages("enable_table", &fan, &[LOAD]),
            then: |world| world.table("off").state = TableState::Enabled,
        },
        Case {
            make: |lot| UpdateTable::new(lot, "on", "comment", "new").into(),
            stages: update,
            then: |world| {
                world.table("on").schema = 2;
                world.table("on").properties.insert("comment".into(), "new".into());
            },
        },
        Case {
            make: |lot| UpdateTable::new(lot, "off", "comment", "new").into(),
            stages: stages("update_table", &fan, &[]),
            then: |world| {
                world.table("off").schema = 2;
                world.table("off").properties.insert("comment".into(), "new".into());
            },
        },
        Case {
            make: |lot| LoadTablet::new(lot, "part", first()).on(Some("s2")).into(),
            stages: stages("load_tablet", &["Find"], &[LOAD]),
            then: |world| world.table("part").offline = 0,
        },
        Case {
            make: |lot| UnloadTablet::new(lot, "on", first()).into(),
            stages: stages("unload_tablet", &["Find"], &[UNLOAD]),
            then: |world| world.table("on").offline = 1,
        },
        Case {
            make: |lot| MoveTablet::new(lot, "on", first(), None).into(),
            stages: stages("move_tablet", &["Find", "Prepare", "Reload", "Finish"], &[UNLOAD, LOAD]),
            then: |_| {},
        },
        Case {
            make: |lot| SplitTablet::new(lot, "on", first()).into(),
            stages: stages("split_tablet", &sought, &[UNLOAD, LOAD]),
            then: |_| {},
        },
        Case {
            make: |lot| MergeTablet::new(lot, "on", first()).into(),
            stages: stages("merge_tablet", &sought, &[UNLOAD, LOAD]),
            then: |_| {},
        },
        Case {
            make: |lot| SetQuota::new(lot, "on", QuotaRow { reads: 5, writes: 6 }).into(),
            stages: stages("set_quota", &["Prepare", "Apply"], &[]),
            then: |world| world.table("on").quota = Some(QuotaRow { reads: 5, writes: 6 }),
        },
        Case {
            make: |lot| UpdateAuth::new(lot, "ada", Some("owner")).into(),
            stages: stages("update_auth", &["Prepare", "Apply"], &[]),
            then: |world| drop(world.expected.users.insert("ada".into(), "owner".into())),
        },
    ]
}

#[test]
fn e_117_each_of_the_twelve_fails_at_each_stage_and_leaves_no_trace() -> Outcome {
    in_world(ROWS, 3, |mut world| async move {
        world.furnish().await?;
        let before = world.picture().await?;
        for case in cases() {
            for (kind, stage) in &case.stages {
                for (ordinal, moment) in [(0, Moment::Before), (1, Moment::After), (2, Moment::After)] {
                    let fault = Fault {
                        kind: (*kind).into(),
                        stage: (*stage).into(),
                        ordinal,
                        moment,
                    };
                    world.fail((case.make)(Lot::doomed(1, fault)), INJECTED).await?;
                    assert_eq!(world.picture().await?, before, "{kind} at {stage}, {moment:?}");
                }
            }
        }
        world.verify().await?;
        world.stop().await
    })
}

#[test]
fn e_117_each_of_the_twelve_is_refused_where_it_makes_no_sense() -> Outcome {
    in_world(ROWS, 3, |mut world| async move {
        world.furnish().await?;
        let before = world.picture().await?;
        let lot = || Lot::fair(1);
        let quota = QuotaRow { reads: 1, writes: 1 };
        let gone = || Target::Tablet("nowhere".into());
        let refusals: Vec<(Action, &str)> = vec![
            (
                CreateTable::new(lot(), "on", share(), 3).into(),
                "there is a table on already",
            ),
            (
                CreateTable::new(lot(), "../x", share(), 3).into(),
                "is no name for a table",
            ),
            (DeleteTable::new(lot(), "none").into(), "there is no table none"),
            (DisableTable::new(lot(), "none").into(), "there is no table none"),
            (DisableTable::new(lot(), "off").into(), "table off is disabled"),
            (EnableTable::new(lot(), "none").into(), "there is no table none"),
            (EnableTable::new(lot(), "on").into(), "table on is enabled"),
            (
                UpdateTable::new(lot(), "none", "a", "b").into(),
                "there is no table none",
            ),
            (LoadTablet::new(lot(), "on", first()).into(), "is loaded already"),
            (LoadTablet::new(lot(), "off", first()).into(), "table off is disabled"),
            (LoadTablet::new(lot(), "on", gone()).into(), "is gone"),
            (
                LoadTablet::new(lot(), "part", first()).on(Some("s9")).into(),
                "there is no server s9",
            ),
            (UnloadTablet::new(lot(), "part", first()).into(), "is offline already"),
            (
                UnloadTablet::new(lot(), "none", first()).into(),
                "there is no such table",
            ),
            (MoveTablet::new(lot(), "part", first(), None).into(), "is offline"),
            (
                MoveTablet::new(lot(), "off", first(), None).into(),
                "table off is disabled",
            ),
            (
                MoveTablet::new(lot(), "on", first(), Some("s9")).into(),
                "there is no server s9",
            ),
            (MoveTablet::new(lot(), "on", gone(), None).into(), "is gone"),
            (SplitTablet::new(lot(), "part", first()).into(), "is offline"),
            (
                SplitTablet::new(lot(), "none", first()).into(),
                "there is no such table",
            ),
            (MergeTablet::new(lot(), "part", first()).into(), "is offline"),
            (MergeTablet::new(lot(), "off", first()).into(), "table off is disabled"),
            (SetQuota::new(lot(), "none", quota).into(), "there is no table none"),
            (UpdateAuth::new(lot(), "nobody", None).into(), "there is no user nobody"),
        ];
        for (action, why) in refusals {
            world.fail(action, why).await?;
            assert_eq!(world.picture().await?, before, "{why}");
        }
        world.stop().await
    })
}

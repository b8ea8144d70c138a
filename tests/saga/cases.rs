//! Scenarios that are cases of the runner: each test runs the files of `cases/` whose names begin with its number.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::Path;

use crate::Tested;
use crate::runner;

/// What went wrong, in lines: the harness prints an error as code would write it.
struct Told(String);

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn told(ran: Tested) -> Result<(), Told> {
    ran.map_err(|why| Told(why.to_string()))
}

macro_rules! scenarios {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() -> Result<(), Told> {
                let name = stringify!($name);
                told(runner::run_all(name.get(..5).unwrap_or(name), runner::run))
            }
        )*

        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

scenarios! {
    g_001_two_tasks_without_input
    g_002_choice
    g_003_no_choice_matches
    g_004_assignment_and_sequence
    g_005_catch_by_class
    g_006_retry
    g_007_statuses_do_not_route
    g_008_status_case_by_case
    g_009_compensation
    g_010_a_trigger_and_what_may_follow_it
    g_011_is_for_update_without_compensate_state
    g_012_forward
    g_013_a_compensator_that_fails
    g_014_skip_really_skips
    g_015_decisions_refused
    g_016_success_then_rolled_back
    g_017_compensate_while_it_runs
    g_018_sub_machine
    g_019_a_sub_machine_in_doubt_rests
    g_020_compensation_through_a_sub_machine
    g_021_compensate_sub_machine_by_hand
    g_022_loop
    g_023_loop_that_fails_then_forward
    g_024_loop_compensated
    g_025_loop_of_sub_machines
    g_026_typed_arguments
    g_027_scripts
    g_028_async_state
    g_029_update_mode
    g_030_the_machines_time_out
    g_031_what_is_refused
    g_034_designer_json
    g_039_fork_and_join
    g_040_limit
    g_041_values_of_parallel_and_timeout
    g_042_upstreams_nested_file
    g_043_nested_limits
    g_044_three_levels
    g_045_any_state_in_a_branch
    g_046_first_last_empty
    g_047_join_exactly_once
    g_048_context
    g_049_a_branch_fails_without_catch
    g_050_order_of_compensation
    g_051_upstreams_failing_file
    g_052_a_late_sibling_is_undone_too
    g_053_two_fail
    g_054_a_compensator_in_a_branch_fails
    g_055_forward
    g_056_forward_to_branches_not_begun
    g_057_forward_through_forks_and_sub_machines
    g_058_in_the_middle_of_a_rollback
    g_059_time_out_between_states
    g_060_time_out_at_the_end_nested_in_a_wait
    g_061_window_and_restarts
    g_066_designer_with_fork
}

/// Each of them is crashed twice in the test of its own number.
#[test]
fn g_062_crash_matrix() -> Tested {
    let cases = [
        ("g_039_fork_and_join", 7),
        ("g_042_upstream", 8),
        ("g_050_late_sibling", 9),
        ("g_054_compensator_fails", 17),
        ("g_055_forward", 10),
        // Six, and three of its forward.
        ("g_059_between_states", 9),
    ];
    for (name, commits) in cases {
        let file = format!("{name}.json");
        let files = runner::files()?;
        let file = files.iter().find(|path| path.ends_with(&file));
        let case = runner::read(file.ok_or("there is such a case")?)?;
        let enumerated = runner::run_crashed_once(&case).map_err(|why| format!("{name}: {why}"))?;
        assert_eq!(enumerated.commits, commits, "{name}");
        // Before, after, and torn in one place at least.
        assert!(enumerated.runs as u64 >= 3 * commits, "{name}: {enumerated:?}");
    }
    Ok(())
}

/// The same without crashes: a first look at all cases in seconds.
#[test]
fn every_case_runs_plainly() -> Result<(), Told> {
    told(runner::run_all("", runner::run_plainly))
}

#[test]
fn every_case_belongs_to_a_test() -> Tested {
    for file in runner::files()? {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let number = name.get(..5).unwrap_or_default();
        assert!(NAMES.iter().any(|test| test.starts_with(number)), "no test runs {name}");
    }
    Ok(())
}

#[test]
fn every_file_of_seata_has_a_case() -> Tested {
    let directory = Path::new(crate::ROOT).join("src/cli/saga/demo/data/seata");
    let mut files = BTreeSet::new();
    for entry in fs::read_dir(directory)? {
        files.insert(entry?.file_name().to_string_lossy().into_owned());
    }
    files.retain(|file| file.ends_with(".json"));
    assert_eq!(files.len(), 43);
    let mut without = files;
    for case in runner::files()? {
        // The first file is the one that the case is about. The others are its sub machines.
        let case = runner::read(&case)?;
        without.retain(|file| case.files.first() != Some(file));
    }
    assert!(without.is_empty(), "no case is about {without:?}");
    Ok(())
}

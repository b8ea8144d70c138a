//! Each planted fault is found by the property that is for it, which says where.

use procession::testkit::{Checked, Finding};

use crate::Tested;
use crate::provision::{Fault, provision};

/// The property finds the fault, and its text has these parts.
fn found(result: Result<Checked, Finding>, parts: &[&str]) -> Result<Finding, String> {
    match result {
        Ok(checked) => Err(format!("nothing was found in {checked:?}")),
        Err(finding) => {
            let text = finding.to_string();
            match parts.iter().find(|part| !text.contains(**part)) {
                Some(part) => Err(format!("\"{part}\" is not said in: {text}")),
                None => Ok(finding),
            }
        }
    }
}

#[test]
fn a_sound_procedure_has_every_property() -> Tested {
    let check = provision(Fault::None);
    let checked = check.everything()?;
    // 5 calls of stages, one of which is tried again; 7 commits, and 12 where it rolls back.
    assert!(checked.runs > 60 && checked.crashes > 40, "{checked:?}");
    check.crash_again_in_recovery()?;
    Ok(())
}

#[test]
fn one_that_does_not_succeed_is_found() -> Tested {
    found(provision(Fault::Fails).succeeds(), &["it ended as", "it is planted"])?;
    let waits = found(
        provision(Fault::Waits).succeeds(),
        &["does not come to an end", "provision 1.0", "never"],
    )?;
    assert_eq!(waits.case, "undisturbed");
    Ok(())
}

#[test]
fn a_stage_that_does_not_bear_repetition_is_found() -> Tested {
    let twice = found(
        provision(Fault::Appends).run_stages_twice(),
        &[
            "the picture differs",
            "volume\\nvolume\\n",
            "a crash before each commit, once",
        ],
    )?;
    assert!(twice.calls.contains("Write of 1.0, Write of 1.0"), "{twice}");
    found(
        provision(Fault::Appends).crash_at_every_commit(),
        &["a crash before commit 3", "the picture differs"],
    )?;
    Ok(())
}

#[test]
fn a_file_left_over_by_each_run_of_a_stage_is_found() -> Tested {
    found(
        provision(Fault::FileEachTime).run_stages_twice(),
        &["the picture differs"],
    )?;
    Ok(())
}

#[test]
fn a_missing_undo_is_found() -> Tested {
    found(
        provision(Fault::NoUndo).fail_each_stage(),
        &[
            "the picture is not as before",
            "Write of provision 1.0",
            "fails after all it does",
            "+ \"v1\"",
        ],
    )?;
    Ok(())
}

#[test]
fn a_file_that_an_undo_leaves_over_is_found() -> Tested {
    found(
        provision(Fault::Leftover).fail_each_stage(),
        &["the picture is not as before", "v1.lock"],
    )?;
    Ok(())
}

#[test]
fn an_undo_that_does_not_bear_that_nothing_was_done_is_found() -> Tested {
    found(
        provision(Fault::UndoOfNothing).fail_each_stage(),
        &[
            "Write of provision 1.0",
            "fails before it begins",
            "does not come to an end",
        ],
    )?;
    Ok(())
}

#[test]
fn an_undo_that_does_not_bear_repetition_is_found() -> Tested {
    let check = provision(Fault::UndoTwice);
    check.fail_each_stage()?;
    found(
        check.fail_each_undo(),
        &["the undo of Pay", "fails once after all it does", "balance: 10"],
    )?;
    found(
        check.run_undos_twice(),
        &["the picture is not as before", "balance: 10"],
    )?;
    found(
        check.crash_while_rolling_back(),
        &["fails after", "a crash before commit"],
    )?;
    Ok(())
}

#[test]
fn an_effect_under_two_tokens_is_found() -> Tested {
    found(
        provision(Fault::EffectTwice).succeeds(),
        &["\"announced\" happened twice", "visit 1 of 1.0", "visit 3 of 1.0"],
    )?;
    Ok(())
}

#[test]
fn an_effect_that_is_not_taken_back_is_found() -> Tested {
    found(
        provision(Fault::EffectStays).fail_each_stage(),
        &["not all effects were taken back", "+ announced"],
    )?;
    Ok(())
}

#[test]
fn user_data_that_are_not_restored_are_found() -> Tested {
    found(
        provision(Fault::DataStay).fail_each_stage(),
        &["user data are not as before", "+ volumes/v1"],
    )?;
    Ok(())
}

#[test]
fn what_is_left_over_is_found() -> Tested {
    // A procedure that waits for ever is submitted behind the kit's back.
    let waits = |_: &_| ();
    let check = provision(Fault::None).afterwards(async move |outside, run, _| {
        waits(outside);
        let stays = crate::provision::Provision {
            name: "v2".into(),
            fault: Fault::Waits,
        };
        run.executor.submit(stays).await?;
        Ok(())
    });
    check.succeeds()?;
    found(
        check.nothing_left(),
        &["entries of procedures are left", "entries of live are left"],
    )?;
    Ok(())
}

#[test]
fn a_check_of_ones_own_is_heard_after_every_run() -> Tested {
    let check = provision(Fault::None).afterwards(async |_, _, outcome| match outcome.cause {
        Some(cause) => Err(format!("it says: {}", cause.text).into()),
        None => Ok(()),
    });
    check.crash_at_every_commit()?;
    found(check.fail_each_stage(), &["it says: the test kit made it fail"])?;
    Ok(())
}

#[test]
fn a_case_is_seen_again_alone() -> Tested {
    let finding = found(provision(Fault::Leftover).fail_each_stage(), &["PROCESSION_CASE='"])?;
    let again = provision(Fault::Leftover).only(finding.case.clone());
    assert_eq!(again.fail_each_stage(), Err(finding));
    // All others are taken to hold.
    let alone = provision(Fault::None)
        .only("a crash after commit 2")
        .crash_at_every_commit()?;
    assert_eq!((alone.runs, alone.crashes), (2, 1));
    Ok(())
}

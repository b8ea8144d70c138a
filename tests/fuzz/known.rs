//! What hostile input has found: one wrong thing each, and what comes of it.

use std::time::Duration;

use procession::ProcedureId;
use procession::errors::StartError;
use procession::provider::Space;
use procession::status::ProcedureState;
use procession::testkit::{FaultPlan, Run, Trouble, World};
use procession_actors::journal::keys;
use procession_actors::testkit::format;
use procession_kernel::{InFlight, JoinPolicy, NAMED_MAX, NUMBER_MAX, Record, Round, Row, Seq, Timestamp, Wake};

use crate::Tested;
use crate::targets::{kinds, recovery, seeds};

const ROOT: ProcedureId = ProcedureId::root(1);

/// Starts on the family 1 of a real world, with one more entry; gives why it was put aside, if it was.
fn started(entry: (Space, &[u8], &[u8]), after: Duration) -> Result<Option<String>, Trouble> {
    let world = World::new();
    let entries = family()?;
    let borrowed = entries
        .iter()
        .map(|(space, key, value)| (space.clone(), key.as_slice(), value.as_slice()));
    world.disk.import(Seq(9), borrowed.chain([entry]));
    let look = async |run: &Run| {
        run.pass(after).await;
        assert_eq!(run.executor.status(ROOT).await?.id, ROOT);
        Ok(run
            .executor
            .snapshot()
            .await?
            .quarantined
            .into_iter()
            .map(|(_, why)| why)
            .next())
    };
    world.run(FaultPlan::none(), kinds::register, look)?.done()
}

/// A root that waits for two children.
fn family() -> Result<Vec<recovery::Entry>, Trouble> {
    Ok(seeds::dumps()?.into_iter().nth(2).ok_or("it is the third world")?)
}

fn with_row(edit: impl FnOnce(&mut Row)) -> Result<String, Trouble> {
    let entries = family()?;
    let stored = entries
        .iter()
        .find(|(space, key, _)| *space == Space::Procedures && *key == keys::procedure(ROOT));
    let (_, _, value) = stored.ok_or("the root has a row")?;
    let mut row = format::row(ROOT, value)?;
    edit(&mut row);
    let batch = format::writes(&[Record::Row(Box::new(row))])?;
    let written = batch.writes().find_map(|write| Some(write.value?.to_vec()));
    let value = written.ok_or("a row is written")?;
    let why = started((Space::Procedures, &keys::procedure(ROOT), &value), Duration::ZERO)?;
    Ok(why.ok_or("the family was not put aside")?)
}

#[test]
fn a_family_whose_number_no_engine_gave_is_put_aside() -> Tested {
    let live = (NUMBER_MAX - 1).to_be_bytes();
    let why = started((Space::Live, &live, &[]), Duration::ZERO)?;
    assert_eq!(why.as_deref(), Some("no engine assigned this family number"));
    Ok(())
}

#[test]
fn rows_that_no_engine_writes_are_put_aside() -> Tested {
    let round = |first, count| Round {
        first,
        count,
        join: JoinPolicy::AllSucceeded,
        width: 0,
        keep_places: false,
    };
    for (said, why) in [
        (
            "its commit number is impossible",
            with_row(|row| row.revision = Seq(u64::MAX))?,
        ),
        (
            "no engine made the commit that it names",
            with_row(|row| row.revision = Seq(NAMED_MAX + 1))?,
        ),
        ("are too many", with_row(|row| row.history = u32::MAX)?),
        ("are too many", with_row(|row| row.visit = u32::MAX)?),
        (
            "woken by children that do not exist",
            with_row(|row| row.wake = Some(Wake::Children(1, u32::MAX)))?,
        ),
        (
            "children that do not exist",
            with_row(|row| row.rounds = vec![round(1, u32::MAX)].into())?,
        ),
        (
            "children that do not exist",
            with_row(|row| row.rounds = vec![round(u32::MAX, 1)].into())?,
        ),
        (
            "children that do not exist",
            with_row(|row| row.rounds = vec![round(1, 1), round(1, 1)].into())?,
        ),
        (
            "its stage is out",
            with_row(|row| {
                row.in_flight = Some(InFlight {
                    run: Seq(7),
                    deaths: 0,
                    counted_from: None,
                    alone: false,
                })
            })?,
        ),
        ("has none", with_row(|row| row.rounds.clear())?),
        ("has not ended", with_row(|row| row.state = ProcedureState::Success)?),
        ("holds or waits", with_row(|row| row.ended = Some(Timestamp(1)))?),
    ] {
        assert!(why.contains(said), "{why}");
    }
    Ok(())
}

#[test]
fn a_number_that_counts_on_is_a_number_or_the_start_is_refused() -> Tested {
    for (name, value) in [
        ("families", &[1][..]),
        ("families", &[0xff; 8]),
        ("stopped", &[]),
        ("store", &[7; 9]),
    ] {
        let refused = started((Space::Meta, name.as_bytes(), value), Duration::ZERO)
            .err()
            .ok_or("it started")?;
        assert!(refused.is::<StartError>(), "{refused}");
    }
    let live = started((Space::Live, &[1], &[]), Duration::ZERO)
        .err()
        .ok_or("it started")?;
    assert!(live.to_string().contains("a live family"), "{live}");
    Ok(())
}

/// The index of results is believed only as far as the rows agree.
#[test]
fn a_live_family_among_the_results_is_not_evicted() -> Tested {
    let due = keys::finished(Timestamp(5), ROOT.family);
    assert_eq!(started((Space::Finished, &due, &[]), Duration::from_secs(60))?, None);
    Ok(())
}

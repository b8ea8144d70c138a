//! Ids: they grow, they are dense within a family, and none names two procedures.

use procession::ProcedureId;
use procession::testkit::{Run, Trouble, World};

use super::limits::submit;
use crate::support::{Act, Lab, Plan, Planned, Tested, chain, enumerate, failing, kinds, live_in, plan, spawn};

fn family(number: usize) -> Plan {
    let name = format!("f{number}");
    match number % 3 {
        0 => plan(
            &name,
            [
                spawn([chain(&format!("{name}-a"), 1), chain(&format!("{name}-b"), 1)]),
                Act::Done(7),
            ],
        ),
        1 => failing(&name, 1),
        _ => chain(&name, 1),
    }
}

/// Submits and ends these families one after the other, and notes every id that was answered.
async fn submit_all(lab: &Lab, run: &Run, numbers: std::ops::Range<usize>) -> Result<Vec<ProcedureId>, Trouble> {
    let mut ids: Vec<ProcedureId> = Vec::new();
    for number in numbers {
        let handle = submit(run, Planned(family(number)), &format!("f{number}")).await?;
        lab.note(format!("{} is f{number}", handle.id()));
        // How it ends is not the question here.
        run.wait(handle.outcome()).await?.ok();
        let tree = run.executor.tree(handle.id()).await?;
        for (index, status) in (0..).zip(&tree) {
            assert_eq!(
                status.id,
                ProcedureId::new(handle.id().family, index),
                "members are dense"
            );
        }
        if number % 3 == 0 {
            let children = [lab.id(&format!("f{number}-a")), lab.id(&format!("f{number}-b"))];
            assert_eq!(
                children,
                [1, 2].map(|index| Some(ProcedureId::new(handle.id().family, index)))
            );
        }
        ids.push(handle.id());
    }
    assert!(ids.is_sorted_by(|one, next| one.family < next.family), "{ids:?}");
    Ok(ids)
}

#[test]
fn e_109_ids_grow_over_a_crash() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let before = live_in(&world, &lab, async |run| submit_all(&lab, run, 0..3).await)?;
    let after = live_in(&world, &lab, async |run| submit_all(&lab, run, 3..6).await)?;
    assert!(before.last() < after.first(), "{before:?}, then {after:?}");
    assert_eq!(before.first(), Some(&ProcedureId::root(1)));
    Ok(())
}

#[test]
fn e_109_no_id_names_two_procedures_through_crashes() -> Tested {
    let drive = async |lab: &Lab, run: &Run| submit_all(lab, run, 0..3).await.map(|_| ());
    let check = |plain: &Lab, crashed: &Lab, crashes: usize| {
        // Of one submission always the same id was answered, and of two never.
        let mut answered = crashed.noted();
        answered.sort();
        answered.dedup();
        assert_eq!(answered.len(), 3, "{answered:?}");
        plain.compare(crashed, crashes)
    };
    let done = enumerate(Lab::default, kinds, drive, &[], check)?;
    assert_eq!(done.commits, 5 + 3 + 2);
    Ok(())
}

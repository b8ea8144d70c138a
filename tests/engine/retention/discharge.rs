//! Discharge: a family that cannot be revived keeps what it holds until an operator puts it
//! into the archive; then all of it is gone at once, and who waited for it starts.

use std::future::IntoFuture;

use procession::errors::{AskError, NotNow, ProcedureError};
use procession::operate::OperatorRequest;
use procession::provider::Space;
use procession::status::WaitReason;
use procession::testkit::{FaultPlan, Run, Trouble, World};
use procession::{Handle, Procedure, ProcedureId};
use procession_actors::journal::keys;

use super::kinds::{Brittle, all};
use crate::support::{Lab, Tested, enumerate};

fn by() -> OperatorRequest {
    OperatorRequest::new("ann", "its value is spoilt").key("discharge")
}

async fn submit<P: Procedure>(run: &Run, procedure: P, key: &str) -> Result<Handle<P>, Trouble> {
    let handle = run
        .wait(
            run.executor
                .submit(procedure)
                .key(key)
                .label("customer", key)
                .into_future(),
        )
        .await??;
    run.settle().await;
    Ok(handle)
}

/// One that holds the lock and the permit and is set aside, and one that waits for both.
async fn set_up(run: &Run) -> Result<(ProcedureId, Handle<Brittle>), Trouble> {
    let spoilt = submit(run, Brittle::that(true), "spoilt").await?;
    let stranger = submit(run, Brittle::that(false), "stranger").await?;
    // Its stage has said that it waits; a repeat of the signal meets it set aside.
    run.executor.signal(spoilt.id(), "go", &()).key("go").await.ok();
    run.settle().await;
    Ok((spoilt.id(), stranger))
}

/// Everything of this family on disk, its key and its places in the indexes included.
fn entries_of(world: &World, family: u64) -> usize {
    let starts = |key: &[u8]| key.starts_with(&family.to_be_bytes());
    let ranges = [
        Space::Procedures,
        Space::Payloads,
        Space::History,
        Space::Signals,
        Space::Live,
    ];
    let in_ranges = ranges
        .iter()
        .map(|space| world.disk.dump(space).iter().filter(|(key, _)| starts(key)).count());
    let keys = world.disk.dump(&Space::Keys);
    let labels = world.disk.dump(&Space::Live);
    let is_label = |key: &[u8]| keys::parse_label(key).is_some_and(|(_, of)| of == family);
    let labels = labels.iter().filter(|(key, _)| is_label(key)).count();
    labels + in_ranges.sum::<usize>() + keys.iter().filter(|(key, _)| key == b"spoilt").count()
}

#[test]
fn a_quarantined_family_keeps_its_lock_and_permit_until_it_is_discharged() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let ids = world
        .run(
            FaultPlan::none(),
            |builder| all(&lab, builder),
            async |run| {
                let (spoilt, stranger) = set_up(run).await?;
                is_held(run, &lab, spoilt, stranger.id()).await?;
                Ok((spoilt, stranger.id()))
            },
        )?
        .done()?;
    // And again after a start, which meets it as it is: revived only when its stage is to run.
    world
        .run(
            FaultPlan::none(),
            |builder| all(&lab, builder),
            async |run| {
                run.settle().await;
                is_held(run, &lab, ids.0, ids.1).await?;
                discharge(run, &lab, ids.0, ids.1).await
            },
        )?
        .done()
}

async fn is_held(run: &Run, lab: &Lab, spoilt: ProcedureId, stranger: ProcedureId) -> Tested {
    assert!(!lab.has("stranger1"), "the lock is not free");
    let waits = run.executor.status(stranger).await?;
    assert!(
        matches!(waits.wait, Some(WaitReason::Lock(_) | WaitReason::Permit(_))),
        "{waits:?}"
    );
    let aside = run.executor.status(spoilt).await?;
    assert_eq!(aside.wait, Some(WaitReason::Quarantined));
    assert!(aside.next.contains("discharges it"), "{}", aside.next);
    let quarantined = run.executor.snapshot().await?.quarantined;
    assert!(
        matches!(&quarantined[..], [(family, why)] if *family == spoilt.family && why.contains("it is spoilt")),
        "{quarantined:?}"
    );
    let used: u32 = run.executor.limits().await?.iter().map(|limit| limit.used).sum();
    assert_eq!(used, 1, "its permit");
    Ok(())
}

async fn discharge(run: &Run, lab: &Lab, spoilt: ProcedureId, stranger: ProcedureId) -> Tested {
    let before = run.executor.snapshot().await?.commits;
    let export = run.executor.export(spoilt).await?;
    refused(run, stranger).await?;
    let waits_for_it = {
        let executor = run.executor.clone();
        actix_rt::spawn(async move { executor.handle::<Brittle>(spoilt).outcome().await })
    };
    let dry = run.executor.discharge(spoilt.family, by().dry_run()).await?;
    assert_eq!((dry.number, dry.changed), (None, 1), "{dry:?}");
    assert!(run.executor.archive().await?.is_empty());
    assert_eq!(
        run.executor.snapshot().await?.commits,
        before,
        "a dry run leaves nothing"
    );
    run.settle().await;
    assert!(!lab.has("stranger1"), "and frees nothing");

    let done = run.executor.discharge(spoilt.family, by()).await?;
    assert_eq!(done.changed, 1);
    run.settle().await;
    assert!(lab.has("stranger1"), "the lock and the permit are free");
    // The discharge, the grant, the stage.
    assert_eq!(run.executor.snapshot().await?.commits, before + 3);
    assert_eq!(entries_of(&run.world, spoilt.family), 0);
    let gone = waits_for_it.await?;
    assert!(
        matches!(&gone, Err(ProcedureError::Ask(AskError::Unknown(id))) if *id == spoilt),
        "{gone:?}"
    );
    is_archived(run, spoilt, &export, done.number).await
}

/// What is not quarantined is not discharged, and who does not exist is unknown.
async fn refused(run: &Run, stranger: ProcedureId) -> Tested {
    let live = run
        .executor
        .discharge(stranger.family, OperatorRequest::new("ann", "try"))
        .await;
    assert!(
        matches!(&live, Err(AskError::NotNow { kind: NotNow::NotQuarantined, text: why }) if why.contains("not quarantined")),
        "{live:?}"
    );
    let unknown = run
        .executor
        .discharge(1 << 40, OperatorRequest::new("ann", "try"))
        .await;
    assert!(matches!(&unknown, Err(AskError::Unknown(_))), "{unknown:?}");
    Ok(())
}

async fn is_archived(
    run: &Run,
    spoilt: ProcedureId,
    export: &procession::offline::FamilyExport,
    number: Option<u64>,
) -> Tested {
    assert!(run.executor.status(spoilt).await.is_err());
    let snapshot = run.executor.snapshot().await?;
    assert!(
        snapshot.quarantined.is_empty() && snapshot.live_families == 0,
        "{snapshot:?}"
    );
    let archive = run.executor.archive().await?;
    let [listed] = &archive[..] else {
        return Err(format!("one is archived: {archive:?}").into());
    };
    assert_eq!((listed.family, listed.procedures), (spoilt.family, 1));
    assert!(listed.bytes > 0 && listed.quarantined.is_some());
    assert_eq!(run.executor.archived(spoilt.family).await?, *export, "as it was");
    let none = run.executor.archived(spoilt.family + 1).await;
    assert!(matches!(&none, Err(AskError::Unknown(_))), "{none:?}");
    let audit = run.executor.audit(None, 10).await?;
    let [entry] = &audit[..] else {
        return Err(format!("one act: {audit:?}").into());
    };
    assert_eq!((Some(entry.number), entry.who.as_str()), (number, "ann"));
    assert_eq!(entry.words, format!("discharge the family {}", spoilt.family));
    // The same request again takes effect once; without its key there is nothing to discharge.
    let commits = run.executor.snapshot().await?.commits;
    let again = run.executor.discharge(spoilt.family, by()).await?;
    assert_eq!((again.number, again.changed), (number, 1));
    let nobody = run
        .executor
        .discharge(spoilt.family, OperatorRequest::new("ann", "again"))
        .await;
    assert!(matches!(&nobody, Err(AskError::Unknown(_))), "{nobody:?}");
    assert_eq!(run.executor.snapshot().await?.commits, commits);
    // Its key is free.
    let anew = submit(run, Brittle::that(false), "spoilt").await?;
    assert!(anew.id().family > spoilt.family);
    Ok(())
}

#[test]
fn a_discharge_is_whole_through_crashes() -> Tested {
    let drive = async |lab: &Lab, run: &Run| {
        let archived = run.executor.archive().await?;
        if archived.is_empty() {
            let (spoilt, _) = set_up(run).await?;
            assert!(!lab.has("stranger1"), "not before the discharge");
            assert!(entries_of(&run.world, spoilt.family) > 0);
            run.executor.discharge(spoilt.family, by()).await?;
        }
        let archive = run.executor.archive().await?;
        let family = archive.first().ok_or("it is archived")?.family;
        assert_eq!(entries_of(&run.world, family), 0);
        assert_eq!(run.executor.archived(family).await?.procedures.len(), 1);
        let stranger = submit(run, Brittle::that(false), "stranger").await?;
        assert_eq!(run.wait(stranger.outcome()).await??, 7);
        Ok(())
    };
    let done = enumerate(Lab::default, all, drive, &[], |plain, crashed, crashes| {
        plain.compare(crashed, crashes)
    })?;
    // Two submissions, the first's stage, the signal, the discharge, the grant, the stranger's stage.
    assert_eq!(done.commits, 2 + 1 + 1 + 1 + 1 + 1);
    Ok(())
}

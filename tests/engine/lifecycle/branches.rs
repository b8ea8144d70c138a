//! Branches of a call: what is done through one counts if it is merged, and leaves nothing otherwise.

use std::future::IntoFuture;

use procession::procedure::Noop;
use procession::status::note;
use procession::testkit::FaultPlan;
use procession::testkit::World;
use procession::{Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use crate::support::Tested;

/// What becomes of the branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Fate {
    Merged,
    Dropped,
    NoteMerged,
}

#[derive(Serialize, Deserialize)]
struct Branching(Fate);

impl Procedure for Branching {
    const KIND: &'static str = "branching";
    type Stage = ();
    type Env = ();
    type Output = ();

    fn first(&self) {}

    async fn execute(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        if cx.signal().is_some() {
            return Ok(Step::Done(()));
        }
        cx.put("rows", "own", &1)?;
        cx.put("rows", "both", &1)?;
        cx.note(&"own")?;
        let mut branch = cx.branch();
        assert_eq!((branch.id(), branch.token()), (cx.id(), cx.token()));
        branch.put("rows", "both", &2)?;
        branch.put("rows", "branch", &2)?;
        branch.submit(&Noop)?;
        branch.send_signal(branch.id(), "sent", &())?;
        branch.note(&"branch")?;
        match self.0 {
            Fate::Merged => cx.merge(branch),
            Fate::Dropped => drop(branch),
            Fate::NoteMerged => cx.merge_note(branch),
        }
        let (event, timeout) = ("sent".to_owned(), None);
        Ok(Step::Wait {
            event,
            timeout,
            then: (),
        })
    }
}

#[test]
fn a_branch_counts_if_it_is_merged() -> Tested {
    for (fate, rows, noted) in [
        (Fate::Merged, vec![("both", 2), ("branch", 2), ("own", 1)], "branch"),
        (Fate::Dropped, vec![("both", 1), ("own", 1)], "own"),
        (Fate::NoteMerged, vec![("both", 1), ("own", 1)], "branch"),
    ] {
        let set_up = |builder: procession::Builder| builder.register::<Branching>(()).register::<Noop>(());
        let life = World::new().run(FaultPlan::none(), set_up, async |run| {
            let handle = run.wait(run.executor.submit(Branching(fate)).into_future()).await??;
            run.settle().await;
            let found = run.executor.scan::<i32>("rows", "").await?;
            let expected: Vec<(Vec<u8>, i32)> = rows
                .iter()
                .map(|(key, value)| (key.as_bytes().to_vec(), *value))
                .collect();
            assert_eq!(found, expected, "{fate:?}");
            let status = run.executor.status(handle.id()).await?;
            assert_eq!(status.ended.is_some(), fate == Fate::Merged, "its signal ends the wait");
            let families = run.executor.list(Default::default(), None, 10).await?.items.len();
            assert_eq!(families, if fate == Fate::Merged { 2 } else { 1 });
            let history = run.executor.history(handle.id()).await?;
            let notes = history.first().map(note::<String>).transpose()?.flatten();
            assert_eq!(notes.as_deref(), Some(noted));
            Ok(())
        });
        life?.done()?;
    }
    Ok(())
}

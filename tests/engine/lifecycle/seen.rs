//! What a stage and a caller see of others: names, gates, priorities, and how they stand without their outputs.

use std::future::IntoFuture;

use procession::procedure::{Child, JoinPolicy};
use procession::testkit::{FaultPlan, World};
use procession::{Children, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use crate::support::Tested;

/// Ends with its number; the one behind the others looks at them first.
#[derive(Serialize, Deserialize)]
struct Numbered(u32);

impl Procedure for Numbered {
    const KIND: &'static str = "numbered";
    const ROLLBACK: bool = false;
    type Stage = ();
    type Env = ();
    type Output = u32;

    fn first(&self) {}

    async fn execute(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let mut sum = self.0;
        for id in cx.before() {
            let status = cx.status(*id).await?;
            let name = status.and_then(|status| status.name).unwrap_or_default();
            let outcome = cx.outcome(*id).await?;
            let output = outcome
                .as_ref()
                .map(|outcome| outcome.output::<u32>())
                .transpose()?
                .flatten();
            if outcome.and_then(|outcome| outcome.name) == Some(name) {
                sum += output.unwrap_or_default();
            }
        }
        Ok(Step::Done(sum))
    }
}

#[derive(Serialize, Deserialize)]
struct Parent;

impl Procedure for Parent {
    const KIND: &'static str = "parent";
    const ROLLBACK: bool = false;
    type Stage = bool;
    type Env = ();
    type Output = Vec<Option<String>>;

    fn first(&self) -> bool {
        false
    }

    async fn execute(&mut self, late: bool, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        if late {
            assert!(cx.status(procession::ProcedureId::root(9_999)).await?.is_none());
            return Ok(Step::Done(
                cx.children().iter().map(|child| child.name.clone()).collect(),
            ));
        }
        let children = Children::new()
            .child(Child::new(&Numbered(1))?.named("one").priority(7))
            .child(Child::new(&Numbered(2))?)
            .child(
                Child::new(&Numbered(4))?
                    .named("last")
                    .after([0, 1])
                    .opens(JoinPolicy::AtLeast(2)),
            );
        Ok(Step::Spawn { children, then: true })
    }
}

#[test]
fn others_are_seen_with_names_gates_and_priorities() -> Tested {
    let set_up = |builder: procession::Builder| builder.register::<Parent>(()).register::<Numbered>(());
    let drive = async |run: &procession::testkit::Run| {
        let handle = run.wait(run.executor.submit(Parent).into_future()).await??;
        let names = run.wait(handle.outcome()).await??;
        assert_eq!(names, [Some("one".to_owned()), None, Some("last".to_owned())]);
        let members = run.executor.tree(handle.id()).await?;
        let seen: Vec<_> = members
            .iter()
            .map(|member| (member.priority, member.opens.clone()))
            .collect();
        assert_eq!(
            seen,
            [(0, None), (7, None), (0, None), (0, Some(JoinPolicy::AtLeast(2)))]
        );
        // Of those before it only the first has a name by which it is known to be the same one.
        let last = members
            .last()
            .map(|member| member.id)
            .ok_or("three children were spawned")?;
        assert_eq!(run.executor.outcome(last).await?.output::<u32>()?, Some(5));
        Ok(())
    };
    World::new().run(FaultPlan::none(), set_up, drive)?.done()
}

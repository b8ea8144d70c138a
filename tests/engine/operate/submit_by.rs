//! A submission of an operator: the root and the entry of the audit log are one commit, and a repeat submits nothing.

use procession::errors::{AskError, NotNow, SubmitError};
use procession::operate::{Act as Acted, OperatorRequest, Verb};
use procession::procedure::{Kind, KindSettings};
use procession::status::{ListFilter, ProcedureState};
use procession::testkit::{FaultPlan, Run, Trouble, World};
use procession::{Builder, Procedure, ProcedureId, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::support::{Tested, each_crash};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Parcel {
    to: String,
    grams: u32,
}

impl Procedure for Parcel {
    const KIND: &'static str = "parcel";
    type Stage = ();
    type Env = ();
    type Output = u32;

    fn first(&self) {}

    fn check(&self, (): &()) -> Result<(), String> {
        if self.grams > 30_000 {
            return Err("it is too heavy".to_owned());
        }
        Ok(())
    }

    async fn execute(&mut self, (): (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Ok(Step::Done(self.grams))
    }
}

/// Its value names its kind.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Letter {
    post: String,
}

impl Procedure for Letter {
    const KIND: &'static str = "letter";
    type Stage = ();
    type Env = ();
    type Output = ();

    fn kind(&self) -> Kind {
        Kind::from(format!("letter.{}", self.post))
    }

    fn first(&self) {}

    async fn execute(&mut self, (): (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Ok(Step::Done(()))
    }
}

fn by() -> OperatorRequest {
    OperatorRequest::new("ann", "a customer called")
}

async fn send(run: &Run, grams: u32, key: &str, by: OperatorRequest) -> Result<Option<ProcedureId>, Trouble> {
    let submit = run
        .executor
        .submission_of(Parcel::KIND, &json!({ "to": "kim", "grams": grams }))?;
    let submit = submit.key(key).named("a parcel").label("customer", "4711").priority(7);
    Ok(run.wait(run.executor.submit_by(submit, by)).await??.submitted)
}

#[test]
fn it_is_submitted_and_written_down_at_once_however_it_crashes() -> Tested {
    let done = each_crash(
        |_: &World| (),
        |(), builder| builder.register::<Parcel>(()),
        async |(), run| {
            let id = send(run, 500, "a", by()).await?.ok_or("it is submitted")?;
            assert_eq!(send(run, 500, "a", by()).await?, Some(id), "a repeat finds it");
            run.settle().await;
            let status = run.executor.status(id).await?;
            assert_eq!(
                (status.state, status.priority, status.name.as_deref()),
                (ProcedureState::Success, 7, Some("a parcel"))
            );
            assert_eq!(status.labels.get("customer"), Some("4711"));
            let all = run.executor.list(ListFilter::default(), None, 10).await?.items;
            assert_eq!(all.len(), 1, "{all:?}");
            let audit = run.executor.audit(None, 10).await?;
            let entries: Vec<_> = audit
                .iter()
                .map(|entry| (entry.submitted, entry.why.as_str()))
                .collect();
            assert_eq!(entries, [(Some(id), "a customer called")]);
            let act = audit.first().and_then(|entry| entry.act.clone());
            assert_eq!(act, Some(Acted::Operate(Verb::Submit("parcel".into()))));
            Ok(())
        },
        |(), _| Ok(()),
    )?;
    assert!(done.commits >= 2, "{done:?}");
    Ok(())
}

#[test]
fn what_is_none_of_the_kind_is_refused() -> Tested {
    let set_up = |builder: Builder| builder.register::<Parcel>(());
    let drive = async |run: &Run| {
        let refused = |kind: &str, value| run.executor.submission_of(kind, &value).err();
        assert!(matches!(
            refused("letter", json!(null)),
            Some(SubmitError::UnknownKind { .. })
        ));
        assert!(matches!(
            refused("parcel", json!({ "to": "kim" })),
            Some(SubmitError::Unsupported { why }) if why.contains("grams")
        ));
        assert!(matches!(
            refused("parcel", json!({ "to": "kim", "grams": 40_000 })),
            Some(SubmitError::Unsupported { why }) if why.contains("too heavy")
        ));
        let id = send(run, 500, "a", by()).await?;
        let other = run
            .executor
            .submission_of("parcel", &json!({ "to": "kim", "grams": 1 }))?;
        let other = run.executor.submit_by(other.key("a"), by()).await;
        assert!(
            matches!(
                &other,
                Err(AskError::NotNow {
                    kind: NotNow::KeyUsed,
                    ..
                })
            ),
            "{other:?}"
        );
        let empty = run
            .executor
            .submission_of("parcel", &json!({ "to": "kim", "grams": 1 }))?;
        let empty = run.executor.submit_by(empty.key(""), by()).await;
        assert!(matches!(empty, Err(AskError::BadKey { .. })), "{empty:?}");
        // A dry run decides, and leaves nothing.
        let mut dry = by();
        dry.dry_run = true;
        send(run, 700, "b", dry).await?;
        run.settle().await;
        let all = run.executor.list(ListFilter::default(), None, 10).await?.items;
        assert_eq!(
            all.iter().map(|status| status.id).collect::<Vec<_>>(),
            Vec::from_iter(id)
        );
        assert_eq!(
            run.executor.audit(None, 10).await?.len(),
            1,
            "only what was done is written down"
        );
        Ok(())
    };
    World::new().run(FaultPlan::none(), set_up, drive)?.done()
}

#[test]
fn a_repeated_request_submits_once() -> Tested {
    let set_up = |builder: Builder| builder.register::<Parcel>(());
    let drive = async |run: &Run| {
        let submit = || {
            run.executor
                .submission_of("parcel", &json!({ "to": "kim", "grams": 1 }))
        };
        let first = run.executor.submit_by(submit()?, by().key("r")).await?;
        let again = run.executor.submit_by(submit()?, by().key("r")).await?;
        assert_eq!((again.submitted, again.number), (first.submitted, first.number));
        let other = run.executor.submit_by(submit()?, by()).await?;
        assert_ne!(other.submitted, first.submitted, "without a key it is another");
        Ok(())
    };
    World::new().run(FaultPlan::none(), set_up, drive)?.done()
}

#[test]
fn a_value_of_another_kind_of_the_same_type_is_refused() -> Tested {
    let set_up = |builder: Builder| {
        builder
            .register_as::<Letter>("letter.north", KindSettings::default(), ())
            .register_as::<Letter>("letter.south", KindSettings::default(), ())
    };
    let drive = async |run: &Run| {
        let north = json!({ "post": "north" });
        assert!(run.executor.submission_of("letter.north", &north).is_ok());
        let refused = run.executor.submission_of("letter.south", &north).err();
        assert!(
            matches!(&refused, Some(SubmitError::Unsupported { why }) if why.contains("\"letter.north\", not of \"letter.south\"")),
            "{refused:?}"
        );
        Ok(())
    };
    World::new().run(FaultPlan::none(), set_up, drive)?.done()
}

#[test]
fn another_submission_with_the_key_of_a_request_is_refused_however_it_crashes() -> Tested {
    let done = each_crash(
        |_: &World| (),
        |(), builder| builder.register::<Parcel>(()),
        async |(), run| {
            let of = |grams: u32| {
                run.executor
                    .submission_of("parcel", &json!({ "to": "kim", "grams": grams }))
            };
            let first = run.executor.submit_by(of(1)?, by().key("r")).await?;
            assert!(first.submitted.is_some());
            for other in [of(2)?, of(1)?.key("a")] {
                let answer = run.executor.submit_by(other, by().key("r")).await;
                assert!(
                    matches!(
                        &answer,
                        Err(AskError::NotNow {
                            kind: NotNow::KeyUsed,
                            ..
                        })
                    ),
                    "{answer:?}"
                );
            }
            run.settle().await;
            let again = run.executor.submit_by(of(1)?, by().key("r")).await?;
            assert_eq!((again.submitted, again.number), (first.submitted, first.number));
            let all = run.executor.list(ListFilter::default(), None, 10).await?.items;
            assert_eq!(all.len(), 1, "{all:?}");
            Ok(())
        },
        |(), _| Ok(()),
    )?;
    assert!(done.commits >= 2, "{done:?}");
    Ok(())
}

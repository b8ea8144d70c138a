//! A stage that panics: one failed attempt, and no trace of it.

use procession::status::Ending;
use procession::testkit::Run;
use procession::{Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use super::kit::{enumerate_in, submit};
use crate::support::{Call, Lab, Tested};

/// Changes its value, and fails twice, each time in another way.
#[derive(Clone, Serialize, Deserialize)]
struct Faulty {
    n: u32,
}

impl Procedure for Faulty {
    const KIND: &'static str = "faulty";
    type Stage = ();
    type Env = Lab;
    type Output = u32;

    fn first(&self) -> Self::Stage {}

    #[expect(clippy::panic, reason = "this is what is tested")]
    async fn execute(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let attempt = cx.attempt();
        let call = Call {
            name: "a".to_owned(),
            stage: 1,
            undo: false,
            attempt,
            value: vec![self.n],
        };
        cx.env().called(cx.id(), call);
        match attempt {
            1 => {
                self.n = 5;
                Err(StageError::retry("not yet"))
            }
            2 => {
                self.n = 6;
                panic!("the second attempt panics")
            }
            _ => Ok(Step::Done(self.n)),
        }
    }
}

#[test]
fn e_006_a_failed_attempt_leaves_no_trace_in_the_value() -> Tested {
    let drive = async |_: &Lab, run: &Run| {
        let handle = submit(run, Faulty { n: 0 }, "k").await?;
        assert_eq!(run.wait(handle.outcome()).await??, 0);
        let history = run.executor.history(handle.id()).await?;
        let attempts = history
            .iter()
            .map(|entry| (entry.visit, entry.attempt, entry.ending, entry.error.clone()));
        let attempts: Vec<_> = attempts.collect();
        let expected = [
            (0, 1, Ending::Retry, Some("not yet".to_owned())),
            (0, 2, Ending::Panic, Some("the second attempt panics".to_owned())),
            (0, 3, Ending::Done, None),
        ];
        assert_eq!(attempts, expected);
        Ok(())
    };
    let (done, lab) = enumerate_in(
        Lab::default,
        |lab, builder| builder.register::<Faulty>(lab.clone()),
        drive,
    )?;
    assert_eq!(done.commits, 6);
    let calls: Vec<_> = lab.calls().into_iter().map(|call| (call.attempt, call.value)).collect();
    assert_eq!(calls, [(1, vec![0]), (2, vec![0]), (3, vec![0])]);
    Ok(())
}

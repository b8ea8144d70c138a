//! A kind that asks for less history leaves only what stands on its rollback stack, and is
//! rolled back all the same.

use std::future::IntoFuture;

use procession::status::{Ending, HistoryEntry, ProcedureState};
use procession::testkit::Run;

use super::kinds::{Terse, all};
use crate::support::{Lab, Tested, enumerate};

fn line(history: &[HistoryEntry]) -> Vec<(Ending, u32, bool)> {
    history
        .iter()
        .map(|entry| (entry.ending, entry.attempt, entry.stands))
        .collect()
}

#[test]
fn e_114_less_history_is_what_stands_on_the_stack() -> Tested {
    let drive = async |_: &Lab, run: &Run| {
        let submission = run.executor.submit(Terse {
            stages: 3,
            fails: false,
        });
        let handle = run.wait(submission.key("k").into_future()).await??;
        assert_eq!(run.wait(handle.outcome()).await??, 7);
        let history = run.executor.history(handle.id()).await?;
        // Each was tried twice, and the attempt says so.
        let standing = [
            (Ending::Next, 2, true),
            (Ending::Next, 2, true),
            (Ending::Done, 2, true),
        ];
        assert_eq!(line(&history), standing);
        Ok(())
    };
    let done = enumerate(Lab::default, all, drive, &[], |plain, crashed, crashes| {
        plain.compare(crashed, crashes)
    })?;
    assert_eq!(done.commits, 1 + 3 * 3, "each stage: an attempt, a backoff, another");
    Ok(())
}

#[test]
fn e_114_what_leaves_less_history_is_rolled_back() -> Tested {
    let drive = async |_: &Lab, run: &Run| {
        let submission = run.executor.submit(Terse { stages: 2, fails: true });
        let handle = run.wait(submission.key("k").into_future()).await??;
        let outcome = run.wait(run.executor.outcome(handle.id())).await??;
        assert_eq!(outcome.state, ProcedureState::RolledBack);
        assert_eq!(outcome.cause.map(|cause| cause.text), Some("boom".to_owned()));
        assert!(outcome.not_undone.is_empty());
        assert_eq!(
            line(&run.executor.history(handle.id()).await?),
            [],
            "nothing stands any more"
        );
        Ok(())
    };
    let done = enumerate(Lab::default, all, drive, &[], |plain, crashed, crashes| {
        assert_eq!(
            plain.line(),
            "terse1 terse1 terse2 terse2 terse2 terse2' terse2' terse1' terse1'"
        );
        plain.compare(crashed, crashes)
    })?;
    // Submit; 2 attempts and a backoff; 3 attempts and 2 backoffs; two undos, each as the first stage.
    assert_eq!(done.commits, 1 + 3 + 5 + 2 * 3);
    Ok(())
}

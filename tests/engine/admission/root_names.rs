//! Names of roots: there from the submission on, after every crash, wherever a child's name is.

use std::future::IntoFuture;

use procession::errors::SubmitError;
use procession::messages::Submit;
use procession::testkit::Run;

use crate::lifecycle::kit::enumerate_client;
use crate::support::{Act, Lab, Planned, Tested, chain, live, plan, spawn};

fn root() -> Planned {
    Planned(plan("r", [spawn([chain("a", 1).named("a")]), Act::Done(1)]))
}

#[test]
fn a_root_has_the_name_of_its_submission_after_every_crash() -> Tested {
    let (done, _) = enumerate_client(async |_, run: &Run| {
        let named = run.executor.submit(root()).key("k").named("nightly import");
        let handle = run.wait(named.into_future()).await??;
        assert_eq!(handle.status().await?.name.as_deref(), Some("nightly import"));
        assert_eq!(run.wait(handle.outcome()).await??, 1);
        let tree = run.executor.tree(handle.id()).await?;
        let names: Vec<_> = tree.iter().map(|member| member.name.as_deref()).collect();
        assert_eq!(names, [Some("nightly import"), Some("a")]);
        Ok(())
    })?;
    assert_eq!(done.commits, 4, "the name costs none");
    Ok(())
}

#[test]
fn a_repeat_keeps_the_first_name_and_a_long_one_is_refused() -> Tested {
    live(&Lab::default(), async |run| {
        let submit = |name: &str| run.executor.submit(root()).key("k").named(name).into_future();
        let first = run.wait(submit("first")).await??;
        let again = run.wait(submit("second")).await??;
        assert_eq!(again.id(), first.id());
        assert_eq!(first.status().await?.name.as_deref(), Some("first"));
        run.wait(first.outcome()).await??;

        let commits = run.store.commits();
        let long = Submit::new(&root())?.named("n".repeat(201));
        let refused = run.wait(run.executor.supervisor().send(long)).await??;
        let Err(error) = refused else {
            return Err("it was taken".into());
        };
        assert!(matches!(
            error,
            SubmitError::BadName {
                characters: 201,
                limit: 200
            }
        ));
        assert_eq!(
            error.to_string(),
            "a name of 201 characters is over the limit of 200; shorten it"
        );
        assert_eq!(run.store.commits(), commits);
        Ok(())
    })
}

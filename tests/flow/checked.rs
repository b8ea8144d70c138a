//! `Check::set`: sound sets pass it, and one whose nodes do not bear repetition is found.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use procession::StageError;
use procession::flow::{Node, NodeContext, OnError, Processed, Processor, Set, When};
use procession::procedure::RetryPolicy;
use procession::testkit::{Check, Trouble};
use serde::{Deserialize, Serialize};

use crate::kit::Act;
use crate::kit::{Lab, Rule, Tested, done, failing, kinds, node, ruled};

fn all_strategies() -> Result<Set, Trouble> {
    let mut set = Set::builder("all strategies");
    let a = set.add(done("a"));
    let b = set.add(done("b").after([a]));
    let c = set.add(failing("c").after([a]).on_error(OnError::Continue));
    let one = set.add(done("one").after([b, c]).when(When::AtLeast(1)));
    let both = set.add(done("both").after([b, c]).when(When::AllFinished));
    let named = set.add(done("named").after([b, c]).when(When::Named(vec!["b".to_owned()])));
    let ruled = set.add(
        ruled("ruled", Act::Done(1), Rule::OneFailed)
            .after([b, c])
            .when(When::Custom),
    );
    set.add(done("z").after([one, both, named, ruled]).on_error(OnError::Stop));
    Ok(set.build()?)
}

#[test]
fn a_set_with_all_strategies_passes() -> Tested {
    let lab = Lab::default();
    let checked = Check::set(move |builder| kinds(&lab, builder), all_strategies).everything()?;
    assert!(checked.runs > 50 && checked.crashes > 30, "{checked:?}");
    Ok(())
}

#[test]
fn a_node_that_always_fails_is_let_fail() -> Tested {
    let lab = Lab::default();
    let set = || {
        let mut set = Set::builder("it fails");
        let a = set.add(failing("a"));
        set.add(done("b").after([a]));
        Ok(set.build()?)
    };
    Check::set(move |builder| kinds(&lab, builder), set).everything()?;
    Ok(())
}

#[test]
fn a_set_passes_that_waits_for_time() -> Tested {
    let lab = Lab::default();
    let set = || {
        let mut set = Set::builder("it waits");
        let twice = RetryPolicy::default().attempts(2);
        let a = set.add(node("a", Act::RetryUpTo(1)).retry(twice));
        set.add(node("b", Act::Park(Some(Duration::from_secs(60)))).after([a]));
        Ok(set.build()?)
    };
    Check::set(move |builder| kinds(&lab, builder), set).everything()?;
    Ok(())
}

/// Leaves how often it was called, which a crash changes.
#[derive(Serialize, Deserialize)]
struct Counting;

impl Processor for Counting {
    const NAME: &'static str = "counting";
    type Env = Arc<AtomicU32>;
    type Output = u32;

    async fn process(&self, _: &mut NodeContext<'_>, calls: &Self::Env) -> Result<Processed<u32>, StageError> {
        Ok(Processed::Done(calls.fetch_add(1, Ordering::Relaxed)))
    }
}

#[test]
fn a_node_that_does_not_bear_repetition_is_found() {
    let calls = Arc::new(AtomicU32::new(0));
    let set = || {
        let mut set = Set::builder("counts");
        set.add(Node::new("a", Counting));
        Ok(set.build()?)
    };
    let check = Check::set(move |builder| builder.processor::<Counting>(Arc::clone(&calls)), set);
    assert!(check.crash_at_every_commit().is_err());
}

#[test]
fn a_stream_passes() -> Tested {
    let lab = Lab::default();
    let nodes = || {
        vec![
            done("a"),
            failing("b").on_error(OnError::Continue),
            node("c", Act::See(1)).when(When::AllFinished),
            node("d", Act::RetryUpTo(1)).retry(RetryPolicy::default().attempts(2)),
            done("e").on_error(OnError::Stop),
            done("f"),
        ]
    };
    let checked = Check::stream(move |builder| kinds(&lab, builder), nodes).everything()?;
    assert!(checked.runs > 40 && checked.crashes > 30, "{checked:?}");
    Ok(())
}

#[test]
fn a_node_of_a_stream_that_always_fails_is_let_fail() -> Tested {
    let lab = Lab::default();
    let nodes = || vec![failing("a"), done("b")];
    Check::stream(move |builder| kinds(&lab, builder), nodes).everything()?;
    Ok(())
}

#[test]
fn a_node_of_a_stream_that_does_not_bear_repetition_is_found() {
    let calls = Arc::new(AtomicU32::new(0));
    let register = move |builder: procession::Builder| builder.processor::<Counting>(Arc::clone(&calls));
    let check = Check::stream(register, || vec![Node::new("a", Counting)]);
    let found = check.crash_at_every_commit().map_err(|finding| finding.to_string());
    assert!(found.as_ref().is_err_and(|text| text.contains("picture")), "{found:?}");
}

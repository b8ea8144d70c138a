//! What operators see of nodes that wait for a person: one verdict for each, its count, and the way that leads to it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use actix::prelude::*;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use procession::flow::{Node, OnError, SetHandle, Stream, When};
use procession::health::{Rule, Verdict};
use procession::status::{Change, ChangeFeed};
use procession::testkit::{Ended, FaultPlan, Run, Trouble, World};
use procession::{Builder, ProcedureId};

use crate::crash::with_once;
use crate::kit::{Lab, Tested, Work, by, done, failing, set};

/// Sets, a stream, and the nodes that they wait for.
struct Scene {
    /// Its `b` fails, `d` waits for it, and `f` for `d`.
    passed_on: SetHandle,
    /// Too few parents of its `d` have succeeded.
    unmet: SetHandle,
    /// Its `a` was out when the process died, and must not be repeated.
    in_doubt: SetHandle,
    /// Its first node fails, and a thousand wait behind it.
    stream: Stream,
}

impl Scene {
    /// Starts everything, or finds it: the keys are the same.
    async fn set(run: &Run) -> Result<Self, Trouble> {
        let in_doubt = [Node::new("a", crate::crash::Once), done("b").after(["a"])];
        let in_doubt = start(run, "in doubt", in_doubt).await?;
        let passed_on = [
            done("a"),
            failing("b").after(["a"]),
            done("c").after(["a"]),
            done("d").after(["b", "c"]).when(When::AllFinished),
            done("e").after(["c"]),
            done("f").after(["d", "e"]).when(When::AllFinished),
        ];
        let unmet = [
            done("a"),
            failing("b").after(["a"]).on_error(OnError::Continue),
            failing("c").after(["a"]).on_error(OnError::Continue),
            done("e").after(["a"]),
            done("d").after(["b", "c", "e"]).when(When::AtLeast(2)),
        ];
        let stream = run.executor.stream("invoices", "customer-17")?;
        let scene = Self {
            passed_on: start(run, "passed on", passed_on).await?,
            unmet: start(run, "unmet", unmet).await?,
            in_doubt,
            stream,
        };
        if scene.stream.status().await?.since.is_none() {
            run.wait(scene.stream.append(failing("n0"))).await??;
            let behind = (1..=1_000).map(|number| done(&format!("n{number}")));
            run.wait(scene.stream.extend(behind)).await??;
        }
        run.settle().await;
        Ok(scene)
    }

    async fn ids(&self) -> Result<[ProcedureId; 4], Trouble> {
        Ok([
            self.passed_on.node("b").await?.id,
            self.unmet.node("d").await?.id,
            self.in_doubt.node("a").await?.id,
            self.stream.open().await?,
        ])
    }

    /// Looks at verdicts and explanations.
    async fn assert_told(&self, run: &Run) -> Tested {
        let [failed, unmet, in_doubt, stream] = self.ids().await?;
        let verdicts = undecided(run).await?;
        let told: BTreeSet<ProcedureId> = verdicts.iter().filter_map(|verdict| verdict.procedure).collect();
        assert_eq!(told, BTreeSet::from([failed, unmet, in_doubt, stream]), "{verdicts:?}");
        assert_eq!(verdicts.len(), 4, "one for each: {verdicts:?}");
        let of = |id| verdicts.iter().find(|verdict| verdict.procedure == Some(id));
        let fact = |id, name| {
            of(id)
                .and_then(|verdict| verdict.fact(name))
                .unwrap_or_default()
                .to_owned()
        };
        assert_eq!(
            (fact(failed, "question"), fact(failed, "behind")),
            ("it fails".to_owned(), "2".to_owned())
        );
        assert_eq!(fact(unmet, "behind"), "");
        assert!(fact(in_doubt, "question").starts_with("in doubt"), "{:?}", of(in_doubt));
        assert_eq!(fact(in_doubt, "behind"), "1");
        assert_eq!(
            (fact(stream, "question"), fact(stream, "signals")),
            ("it fails".to_owned(), "1000".to_owned())
        );
        assert_eq!(self.stream.status().await?.waiting, 1_000);

        // The chain leads from the last nodes to those that ask.
        for (last, asks) in [
            (self.passed_on.node("f").await?, failed),
            (self.in_doubt.node("b").await?, in_doubt),
        ] {
            let explanation = run.executor.explain(last.id).await?;
            let ends: Vec<ProcedureId> = explanation.ends.iter().map(|end| end.id).collect();
            assert_eq!(ends, [asks], "{explanation:?}");
            assert!(explanation.links.iter().all(|link| link.from.family == last.id.family));
        }
        Ok(())
    }
}

async fn start(run: &Run, key: &str, nodes: impl IntoIterator<Item = Node>) -> Result<SetHandle, Trouble> {
    let started = run.wait(run.executor.start_set(set(nodes)?).key(key)).await??;
    run.settle().await;
    Ok(started)
}

async fn undecided(run: &Run) -> Result<Vec<Verdict>, Trouble> {
    let verdicts = run.executor.verdicts().await?;
    Ok(verdicts
        .into_iter()
        .filter(|verdict| verdict.rule == Rule::Undecided)
        .collect())
}

/// Keeps each change.
#[derive(Clone, Default)]
struct Watcher(Arc<Mutex<Vec<Arc<Change>>>>);

impl Actor for Watcher {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(1 << 16);
    }
}

impl Handler<ChangeFeed> for Watcher {
    type Result = ();

    fn handle(&mut self, feed: ChangeFeed, _: &mut Self::Context) {
        if let ChangeFeed::Change(change) = feed {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(change);
        }
    }
}

impl Watcher {
    /// Each row's change came once, in commit order.
    fn assert_in_order(&self) {
        let changes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(!changes.is_empty());
        assert!(changes.is_sorted_by(|one, next| one.seq < next.seq));
        let mut seen = BTreeSet::new();
        for row in changes.iter().flat_map(|change| &change.rows) {
            assert!(
                seen.insert((row.id, row.revision)),
                "told twice: {} at {}",
                row.id,
                row.revision
            );
        }
    }
}

/// Returns a counter or a gauge of this process.
fn counted(snapshotter: &Snapshotter, wanted: &[(&str, &str)]) -> Vec<f64> {
    let all = snapshotter.snapshot().into_vec();
    let found = |name: &str, label: &str| {
        let is_it = |key: &metrics::Key| {
            let labels: Vec<&str> = key.labels().map(metrics::Label::value).collect();
            key.name() == name && labels.join(" ") == label
        };
        all.iter()
            .find(|(key, ..)| is_it(key.key()))
            .map_or(f64::NAN, |(_, _, _, value)| match value {
                DebugValue::Counter(count) => *count as f64,
                DebugValue::Gauge(value) => value.into_inner(),
                DebugValue::Histogram(_) => f64::NAN,
            })
    };
    wanted.iter().map(|(name, label)| found(name, label)).collect()
}

#[test]
fn f_064_one_alarm_for_one_failure() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    // The node in doubt was out when its process died.
    let died = world.run(
        FaultPlan::none(),
        |builder: Builder| with_once(&lab, builder),
        async |run: &Run| {
            let nodes = [Node::new("a", crate::crash::Once), done("b").after(["a"])];
            start(run, "in doubt", nodes).await?;
            run.store.crash();
            std::future::pending::<Tested>().await
        },
    )?;
    assert!(matches!(died, Ended::Crashed));

    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let life = |drive: &dyn for<'r> Fn(&'r Run) -> futures::future::LocalBoxFuture<'r, Tested>| {
        let run = world.run(
            FaultPlan::none(),
            |builder: Builder| with_once(&lab, builder),
            async |run: &Run| drive(run).await,
        );
        run?.done()
    };
    metrics::with_local_recorder(&recorder, || {
        life(&|run| Box::pin(async move { Scene::set(run).await?.assert_told(run).await }))
    })?;
    // Questions of this process: the node that fails, the one in doubt, and the stream's.
    let asked = [
        ("procession_asked_total", "work"),
        ("procession_asked_total", "once"),
        ("procession_asked_total", "procession.stream"),
        ("procession_stuck", "undecided"),
        ("procession_finished_total", "work success"),
        ("procession_finished_total", "work failed"),
    ];
    assert_eq!(counted(&snapshotter, &asked), [1.0, 1.0, 1.0, 4.0, 5.0, 2.0]);

    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || {
        life(&|run| {
            Box::pin(async move {
                let scene = Scene::set(run).await?;
                scene.assert_told(run).await?;
                let watcher = Watcher::default();
                run.executor.subscribe(watcher.clone().start().recipient()).await?;
                run.wait(scene.passed_on.succeed::<Work>("b", &5, by())).await??;
                run.wait(scene.unmet.retry("d", by())).await??;
                run.wait(scene.in_doubt.fail("a", by())).await??;
                run.wait(scene.in_doubt.fail("b", by())).await??;
                run.wait(scene.stream.succeed::<Work>(&5, by())).await??;
                run.settle().await;
                assert_eq!(undecided(run).await?, []);
                assert_eq!(scene.stream.status().await?.ended, 1_001);
                run.settle().await;
                watcher.assert_in_order();
                Ok(())
            })
        })
    })?;
    // Nothing asks any more, and what was asked before the start is not counted again.
    assert_eq!(counted(&snapshotter, &asked), [0.0, 0.0, 0.0, 0.0, 4.0, 1.0]);
    Ok(())
}

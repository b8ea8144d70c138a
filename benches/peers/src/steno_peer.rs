//! The workloads on steno, as its own example does it: a registry, a DAG a saga.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use steno::{
    Action, ActionContext, ActionError, ActionFunc, ActionRegistry, DagBuilder, Node, SagaDag, SagaId, SagaName,
    SagaType, SecClient, new_action_noop_undo,
};

use crate::Failed;
use crate::group_store::GroupStore;
use crate::workload::{Counter, Load, Rate, SAGA_STAGES, STAGES, Workload, payload, rate};

/// All sagas here are of one type.
#[derive(Debug)]
struct Peer;

/// What actions get.
struct Env(Counter);

impl std::fmt::Debug for Env {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Env")
    }
}

impl SagaType for Peer {
    type ExecContextType = Env;
}

async fn count(context: ActionContext<Peer>) -> Result<String, ActionError> {
    context.user_data().0.add(1);
    Ok(payload())
}

async fn undo(context: ActionContext<Peer>) -> Result<(), anyhow::Error> {
    context.user_data().0.add(1);
    Ok(())
}

async fn join(_: ActionContext<Peer>) -> Result<String, ActionError> {
    Ok(payload())
}

async fn fail(context: ActionContext<Peer>) -> Result<String, ActionError> {
    context.user_data().0.add(1);
    Err(ActionError::action_failed("the last stage fails".to_owned()))
}

/// The actions.
struct Actions {
    count: Arc<dyn Action<Peer>>,
    join: Arc<dyn Action<Peer>>,
    fail: Arc<dyn Action<Peer>>,
}

impl Actions {
    fn new() -> Self {
        Self {
            count: ActionFunc::new_action("count", count, undo),
            join: new_action_noop_undo("join", join),
            fail: ActionFunc::new_action("fail", fail, undo),
        }
    }

    fn registry(&self) -> Arc<ActionRegistry<Peer>> {
        let mut registry = ActionRegistry::new();
        for action in [&self.count, &self.join, &self.fail] {
            registry.register(Arc::clone(action));
        }
        Arc::new(registry)
    }

    /// The nodes of one saga.
    fn dag(&self, load: Load) -> Result<Arc<SagaDag>, Failed> {
        let mut builder = DagBuilder::new(SagaName::new(load.workload.name()));
        let node = |number: u32, action: &dyn Action<Peer>| {
            let name = format!("n{number}");
            Node::action(&name, &name, action)
        };
        match load.workload {
            Workload::Chain => {
                for number in 0..STAGES {
                    builder.append(node(number, &*self.count));
                }
            }
            Workload::FanOut => {
                let children = (0..load.children).map(|number| node(number, &*self.count));
                builder.append_parallel(children.collect());
                builder.append(node(load.children, &*self.join));
            }
            Workload::Saga => {
                for number in 1..SAGA_STAGES {
                    builder.append(node(number, &*self.count));
                }
                builder.append(node(SAGA_STAGES, &*self.fail));
            }
        }
        let dag = builder.build().map_err(|why| why.to_string())?;
        Ok(Arc::new(SagaDag::new(dag, serde_json::Value::String(payload()))))
    }
}

/// Measures one load.
pub fn measure(load: Load, window: Duration, directory: &Path) -> Result<Rate, Failed> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let rate = runtime.block_on(run(load, window, directory));
    // What is still under way is of no interest.
    runtime.shutdown_background();
    rate
}

async fn run(load: Load, window: Duration, directory: &Path) -> Result<Rate, Failed> {
    let store = GroupStore::create(&directory.join("log"))?;
    let log = slog::Logger::root(slog::Discard, slog::o!());
    let sec = Arc::new(steno::sec(log, Arc::new(store)));
    let counter = Counter::default();
    let env = Arc::new(Env(counter.clone()));
    let actions = Actions::new();
    let registry = actions.registry();
    let dag = actions.dag(load)?;
    let one = || one(&sec, &env, &registry, &dag, load.workload);
    let rate = rate(load, window, &counter, one).await?;
    // Its client must not be dropped before it is shut down, and sagas are under way.
    std::mem::forget(sec);
    // The action that failed is not undone: steno takes it to have had no effect.
    let calls = match load.workload {
        Workload::Chain | Workload::FanOut => 1,
        Workload::Saga => 2 * SAGA_STAGES - 1,
    };
    Ok(rate.of(calls))
}

async fn one(
    sec: &SecClient,
    env: &Arc<Env>,
    registry: &Arc<ActionRegistry<Peer>>,
    dag: &Arc<SagaDag>,
    workload: Workload,
) -> Result<(), Failed> {
    let id = SagaId::new_v4();
    let created = sec.saga_create(id, Arc::clone(env), Arc::clone(dag), Arc::clone(registry));
    let ended = created.await?;
    sec.saga_start(id).await?;
    let result = ended.await;
    match (workload, result.kind) {
        (Workload::Chain | Workload::FanOut, Ok(_)) => Ok(()),
        (Workload::Saga, Err(failed)) if failed.undo_failure.is_none() => Ok(()),
        (_, kind) => Err(format!("a saga did not end as it should: {kind:?}").into()),
    }
}

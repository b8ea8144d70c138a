//! What a stream tells beside changes: how the engine stands, verdicts, limits, gauges. Each is sent when it differs
//! from what this stream was told last.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use procession_actors::AskError;
use procession_actors::view::Rule;
use procession_kernel::ProcedureId;
use serde_json::{Value, json};

use crate::dashboard::access::Grant;
use crate::dashboard::me;
use crate::dashboard::show::Show;
use crate::dashboard::state::State;
use crate::dashboard::whole;

/// One reading, as one caller may see it.
pub(super) struct Reading {
    /// Events by name. What could not be read is left out.
    pub(super) events: Vec<(&'static str, Value)>,
    pub(super) rules: BTreeMap<ProcedureId, BTreeSet<Rule>>,
    /// The engine drains or has stopped.
    pub(super) is_over: bool,
}

/// The event that says how the engine stands.
pub(super) const ENGINE: &str = "engine";

/// What that event says.
pub(super) fn engine(standing: &str) -> Value {
    json!({ "engine": standing })
}

pub(super) async fn read(state: Arc<State>, grant: Grant) -> Reading {
    let (verdicts, limits, snapshot) =
        futures::join!(state.live.verdicts(), state.live.limits(), state.live.snapshot());
    let mut reading = Reading {
        events: vec![(ENGINE, engine(me::standing(&snapshot)))],
        rules: BTreeMap::new(),
        is_over: matches!(&snapshot, Err(AskError::Stopped)),
    };
    if let Ok(verdicts) = verdicts {
        let show = Show::new(&state, &grant);
        let items: Vec<Value> = verdicts.iter().map(|verdict| show.verdict(verdict)).collect();
        for verdict in verdicts.iter() {
            if let Some(id) = verdict.procedure {
                reading.rules.entry(id).or_default().insert(verdict.rule);
            }
        }
        reading.events.push(("verdict", json!({ "verdicts": items })));
    }
    if let Ok(limits) = limits {
        let items = whole::shown_limits(&state, &limits, whole::Names::LeftOut);
        reading.events.push(("limits", json!({ "items": items })));
    }
    if let Ok(snapshot) = snapshot {
        reading.is_over = snapshot.draining;
        let states = whole::by_state(state.shared.read().counts());
        let engine = whole::shown(&snapshot, state.executor.mailboxes());
        reading
            .events
            .push(("gauges", json!({ "engine": engine, "states": states })));
    }
    reading
}

//! The services of a drawn saga. What a call comes to depends on the seed, the state and the number of the try alone, so a call
//! that a crash cuts off ends as it would have.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use procession::ProcedureId;
use procession::saga::{Call, Fault, Network, Sagas, SagasBuilder};
use procession::testkit::{TestClock, Trouble};
use procession_actors::clock::Clock;
use procession_kernel::Timestamp;
use serde_json::{Map, Value, json};

use super::shape::{Drawn, Kind, Task, Work};

/// What survives every crash.
#[derive(Clone, Default)]
pub(super) struct Outside(Arc<Mutex<World>>);

#[derive(Default)]
pub(super) struct World {
    pub(super) clock: TestClock,
    pub(super) life: usize,
    /// A number for whatever happens, in order.
    pub(super) events: usize,
    pub(super) log: Vec<Called>,
    /// When calls end.
    ends: BTreeMap<(String, u32), Timestamp>,
    /// Compensators succeed from here on.
    pub(super) undos_succeed: bool,
}

impl World {
    pub(super) const fn event(&mut self) -> usize {
        self.events += 1;
        self.events
    }
}

/// How often things go wrong, in a hundred.
#[derive(Clone, Copy, Debug)]
pub(super) struct Odds {
    pub(super) seed: u64,
    pub(super) fault: u64,
    pub(super) undo_fault: u64,
    pub(super) slow: u64,
}

/// What a call came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Came {
    /// It returned, and names a status.
    Back(&'static str),
    Fault(&'static str, Option<Network>),
}

/// One call.
#[derive(Clone, Debug)]
pub(super) struct Called {
    pub(super) state: String,
    pub(super) at: String,
    pub(super) index: Option<usize>,
    pub(super) attempt: u32,
    /// That of the visit, also for a compensator.
    pub(super) token: String,
    pub(super) undoes: bool,
    pub(super) member: ProcedureId,
    pub(super) saga: ProcedureId,
    pub(super) seen: Map<String, Value>,
    pub(super) life: usize,
    pub(super) begun: (usize, Timestamp),
    pub(super) ended: Option<(usize, Timestamp, Came)>,
}

impl Outside {
    pub(super) fn get(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers the services of a drawn saga.
    pub(super) fn sagas(&self, drawn: &Drawn, odds: Odds) -> Result<Sagas, Trouble> {
        let mut builder = Sagas::builder();
        for (name, text) in drawn.files() {
            builder = builder.json(&name, text);
        }
        for graph in &drawn.machines {
            for state in &graph.states {
                if let Kind::Task(task) = &state.kind {
                    builder = script(builder, &graph.name, &state.name, task);
                }
            }
        }
        for method in ["do", "undo"] {
            let outside = self.clone();
            builder = builder.method(
                "svc",
                method,
                async move |call: Call, arguments: (Map<String, Value>,)| outside.call(odds, &call, arguments.0).await,
            );
        }
        Ok(builder.build()?)
    }

    async fn call(&self, odds: Odds, call: &Call, seen: Map<String, Value>) -> Result<Value, Fault> {
        let text = |key: &str| seen.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (at, is_healed) = (text("at"), seen.contains_key("heal"));
        let token = call.token().to_string().trim_end_matches("-c").to_owned();
        let luck = Luck::of(
            odds.seed,
            &[&at, call.state(), &format!("{:?}/{}", call.index(), call.attempt())],
        );
        let (place, ends) = {
            let mut world = self.get();
            let now = world.clock.now();
            let called = Called {
                state: call.state().to_owned(),
                at,
                index: call.index(),
                attempt: call.attempt(),
                token,
                undoes: call.compensates(),
                member: call.member(),
                saga: call.saga(),
                seen,
                life: world.life,
                begun: (world.event(), now),
                ended: None,
            };
            world.log.push(called);
            let takes = if luck.percent(0, odds.slow) {
                Duration::from_millis(luck.below(1, 25))
            } else {
                Duration::ZERO
            };
            let key = (call.token().to_string(), call.attempt());
            let ends = *world.ends.entry(key).or_insert_with(|| now.after(takes));
            let sleeps = (ends > now).then(|| world.clock.sleep_until(ends));
            (world.log.len() - 1, sleeps)
        };
        if let Some(ends) = ends {
            ends.await;
        }
        let mut world = self.get();
        let came = match call.compensates() {
            true if world.undos_succeed => Came::Back("SU"),
            true => luck.undone(odds),
            false if is_healed => Came::Back("SU"),
            false => luck.came(odds),
        };
        let (event, now) = (world.event(), world.clock.now());
        world.log[place].ended = Some((event, now, came));
        match came {
            Came::Back(status) => Ok(json!({ "s": status, "v": value_of(call.state(), call.attempt()) })),
            Came::Fault(class, network) => {
                let fault = Fault::new(class, "drawn");
                Err(match network {
                    Some(network) => fault.network(network),
                    None => fault,
                })
            }
        }
    }
}

/// What a try of a state returns.
pub(super) fn value_of(state: &str, attempt: u32) -> String {
    format!("{state}.{attempt}")
}

/// What a script that fails says.
pub(super) const SCRIPT_FAULT: &str = "x.Boom";

fn script(builder: SagasBuilder, machine: &str, state: &str, task: &Task) -> SagasBuilder {
    let name = state.to_owned();
    match task.work {
        Work::Script { fails } => builder.script(machine, state, move |seen| {
            match fails && seen.get("heal").is_none_or(Value::is_null) {
                true => Err(Fault::new(SCRIPT_FAULT, "drawn")),
                false => Ok(json!({ "v": name })),
            }
        }),
        Work::Counter => builder.script(machine, state, move |seen| {
            let rounds = seen.get("n").and_then(Value::as_u64).unwrap_or_default();
            let at = seen.get("at").and_then(Value::as_str).unwrap_or_default();
            Ok(json!({ "n": rounds + 1, "at": format!("{at}/{name}") }))
        }),
        Work::Service | Work::Async | Work::Machine(_) => builder,
    }
}

/// What chance says of one try: the same however often it is asked.
struct Luck(u64);

impl Luck {
    fn of(seed: u64, parts: &[&str]) -> Self {
        let mut hash = seed ^ 0xCBF2_9CE4_8422_2325;
        for byte in parts.iter().flat_map(|part| part.bytes().chain([0])) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
        Self(hash)
    }

    fn below(&self, what: u64, below: u64) -> u64 {
        let mut mixed = self.0 ^ what.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        for _ in 0..3 {
            mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        }
        (mixed >> 16) % below.max(1)
    }

    fn percent(&self, what: u64, percent: u64) -> bool {
        self.below(what, 100) < percent
    }

    fn came(&self, odds: Odds) -> Came {
        if !self.percent(2, odds.fault) {
            return Came::Back("SU");
        }
        match self.below(3, 8) {
            0 | 1 => Came::Fault("x.Boom", None),
            2 | 3 => Came::Fault("x.Bang", None),
            4 => Came::Fault("x.Bang", Some(Network::Refused)),
            5 => Came::Fault("x.Boom", Some(Network::ReadTimeout)),
            6 => Came::Back(["FA", "UN"][usize::from(self.percent(4, 50))]),
            _ => Came::Back("other"),
        }
    }

    fn undone(&self, odds: Odds) -> Came {
        match self.percent(2, odds.undo_fault) {
            true => Came::Fault("x.Boom", None),
            false => Came::Back("SU"),
        }
    }
}

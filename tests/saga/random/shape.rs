//! A drawn definition: machines as graphs of states, in a form of the test's own, and as the JSON that the library reads.

use serde_json::{Map, Value, json};

/// Machines of one saga. The first one is the root.
#[derive(Debug, Default)]
pub(super) struct Drawn {
    pub(super) machines: Vec<Graph>,
}

#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) name: String,
    pub(super) start: usize,
    pub(super) states: Vec<State>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// Where it leads to; `None` is the end.
    pub(super) next: Option<usize>,
}

#[derive(Debug)]
pub(super) enum Kind {
    Task(Task),
    /// Goes to the state if the condition holds, else to `next`. Without one it stops.
    Choice(Condition, usize),
    Fork {
        branches: Vec<usize>,
        join: usize,
        parallel: usize,
        timeout_ms: u64,
    },
    Join,
    Succeed,
    Fail,
    /// Leads to a Fail if it has a `next`.
    Trigger,
}

/// What a Choice asks of the context.
#[derive(Clone, Debug)]
pub(super) enum Condition {
    Param(u64),
    IsNull(&'static str),
    /// The counter of this state is below two.
    FirstRound(String),
}

#[derive(Debug)]
pub(super) struct Task {
    pub(super) work: Work,
    pub(super) undo: Undo,
    /// What a fault is mapped to, if it has a `Status`.
    pub(super) on_fault: Option<&'static str>,
    pub(super) retry: Option<Retry>,
    pub(super) catch: Option<(&'static str, usize)>,
    pub(super) output: Option<&'static str>,
    pub(super) each: Option<Each>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    Service,
    Async,
    Script {
        fails: bool,
    },
    /// Counts the rounds of a circle.
    Counter,
    Machine(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Undo {
    None,
    /// `IsForUpdate`, and nothing that undoes it.
    Lacking,
    /// A task undoes it, of a sub machine too.
    Task,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Retry {
    /// The class that is tried again; `None` for faults of the network.
    pub(super) class: Option<&'static str>,
    pub(super) most: usize,
    pub(super) interval_ms: u64,
}

/// A Loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Each {
    pub(super) elements: usize,
    pub(super) parallel: usize,
    /// It begins no more once half of its elements have ended.
    pub(super) half: bool,
}

/// The longest collection among the params.
pub(super) const LONGEST: usize = 3;

impl Task {
    /// Its own stage calls it, and no child does.
    pub(super) const fn is_direct(&self) -> bool {
        self.each.is_none() && !matches!(self.work, Work::Machine(_))
    }

    pub(super) const fn is_for_update(&self) -> bool {
        !matches!(self.undo, Undo::None) || matches!(self.work, Work::Machine(_))
    }

    /// Scripts have no state instances.
    pub(super) const fn has_status(&self) -> bool {
        !matches!(self.work, Work::Script { .. } | Work::Counter)
    }
}

impl Drawn {
    /// Returns each machine's name and text.
    pub(super) fn files(&self) -> Vec<(String, String)> {
        let file = |graph: &Graph| (graph.name.clone(), graph.json(self).to_string());
        self.machines.iter().map(file).collect()
    }

    /// Returns the definitions as JSON, a state a line.
    pub(super) fn pretty(&self) -> String {
        let machine = |graph: &Graph| {
            let json = graph.json(self);
            let states = json.get("States").and_then(Value::as_object).into_iter().flatten();
            let states: Vec<String> = states.map(|(name, state)| format!("  \"{name}\": {state}")).collect();
            let start = graph.name_of(graph.start);
            let states = states.join(",\n");
            format!(
                "{{\"Name\": \"{}\", \"StartState\": \"{start}\", \"States\": {{\n{states}}}}}",
                graph.name
            )
        };
        self.machines.iter().map(machine).collect::<Vec<_>>().join("\n")
    }

    pub(super) fn has_windows(&self) -> bool {
        let mut states = self.machines.iter().flat_map(|graph| &graph.states);
        states.any(|state| matches!(state.kind, Kind::Fork { timeout_ms: 1.., .. }))
    }

    pub(super) fn graph(&self, machine: usize) -> &Graph {
        &self.machines[machine]
    }
}

/// Returns the name of what undoes a state.
pub(super) fn undo_of(state: &str) -> String {
    format!("U{state}")
}

impl Graph {
    fn name_of(&self, state: usize) -> &str {
        &self.states[state].name
    }

    fn json(&self, drawn: &Drawn) -> Value {
        let mut states = Map::new();
        for state in &self.states {
            let mut json = self.state(state, drawn);
            if let (Some(next), Value::Object(json)) = (state.next, &mut json) {
                let key = if matches!(state.kind, Kind::Choice(..)) {
                    "Default"
                } else {
                    "Next"
                };
                json.insert(key.to_owned(), self.name_of(next).into());
            }
            states.insert(state.name.clone(), json);
            if matches!(&state.kind, Kind::Task(task) if task.undo == Undo::Task) {
                let undo = json!({
                    "Type": "ServiceTask", "ServiceName": "svc", "ServiceMethod": "undo", "Input": [{ "at": "$.[at]" }],
                });
                states.insert(undo_of(&state.name), undo);
            }
        }
        json!({ "Name": self.name, "StartState": self.name_of(self.start), "States": states })
    }

    fn state(&self, state: &State, drawn: &Drawn) -> Value {
        match &state.kind {
            Kind::Task(task) => self.task(state, task, drawn),
            Kind::Choice(condition, to) => {
                let expression = match condition {
                    Condition::Param(value) => format!("[p] == {value}"),
                    Condition::IsNull(name) => format!("[{name}] == null"),
                    Condition::FirstRound(of) => format!("[n{of}] < 2"),
                };
                json!({ "Type": "Choice", "Choices": [{ "Expression": expression, "Next": self.name_of(*to) }] })
            }
            Kind::Fork {
                branches,
                parallel,
                timeout_ms,
                ..
            } => {
                let branches: Vec<&str> = branches.iter().map(|branch| self.name_of(*branch)).collect();
                json!({ "Type": "Fork", "Branches": branches, "Parallel": parallel, "Timeout": timeout_ms })
            }
            Kind::Join => json!({ "Type": "Join" }),
            Kind::Succeed => json!({ "Type": "Succeed" }),
            Kind::Fail => json!({ "Type": "Fail", "ErrorCode": "E", "Message": "failed" }),
            Kind::Trigger => json!({ "Type": "CompensationTrigger" }),
        }
    }

    fn task(&self, state: &State, task: &Task, drawn: &Drawn) -> Value {
        let mut json = match task.work {
            Work::Service => json!({ "Type": "ServiceTask", "ServiceName": "svc", "ServiceMethod": "do" }),
            Work::Async => {
                json!({ "Type": "ServiceTask", "ServiceName": "svc", "ServiceMethod": "do", "IsAsync": true })
            }
            Work::Script { .. } | Work::Counter => json!({ "Type": "ScriptTask", "ScriptContent": "-" }),
            Work::Machine(machine) => {
                json!({ "Type": "SubStateMachine", "StateMachineName": drawn.graph(machine).name })
            }
        };
        let mut set = |key: &str, value: Value| {
            json[key] = value;
        };
        set("Input", self.input(state, task));
        match task.undo {
            Undo::None => {}
            Undo::Lacking => set("IsForUpdate", true.into()),
            Undo::Task => set("CompensateState", undo_of(&state.name).into()),
        }
        if let Some(on_fault) = task.on_fault {
            let status = json!({
                "$Exception{java.lang.Throwable}": on_fault,
                "[s] == 'FA'": "FA", "[s] == 'UN'": "UN", "[s] == 'SU'": "SU",
            });
            set("Status", status);
        }
        if let Some(retry) = task.retry {
            let seconds = std::time::Duration::from_millis(retry.interval_ms).as_secs_f64();
            let mut entry = json!({ "MaxAttempts": retry.most, "IntervalSeconds": seconds });
            if let Some(class) = retry.class {
                entry["Exceptions"] = json!([class]);
            }
            set("Retry", json!([entry]));
        }
        if let Some((class, to)) = task.catch {
            set("Catch", json!([{ "Exceptions": [class], "Next": self.name_of(to) }]));
        }
        if task.work == Work::Counter {
            set("Output", json!({ "at": "$.[at]", format!("n{}", state.name): "$.[n]" }));
        } else if let Some(output) = task.output {
            let of = if matches!(task.work, Work::Machine(_)) {
                "x"
            } else {
                "v"
            };
            set("Output", json!({ output: format!("$.[{of}]") }));
        }
        if let Some(each) = task.each {
            let mut repeat = json!({ "Collection": format!("$.[l{}]", each.elements), "Parallel": each.parallel });
            if each.half {
                repeat["CompletionCondition"] = "[nrOfCompletedInstances] / [nrOfInstances] >= 0.5".into();
            }
            set("Loop", repeat);
        }
        json
    }

    fn input(&self, state: &State, task: &Task) -> Value {
        let at = match (task.work, task.each) {
            (Work::Machine(_), Some(_)) => "$.[at] + ':' + [loopCounter]",
            _ => "$.[at]",
        };
        let mut input = json!({ "at": at, "heal": "$.[heal]", "x": "$.[x]", "y": "$.[y]", "p": "$.[p]" });
        match task.work {
            Work::Counter => input["n"] = format!("$.[n{}]", state.name).into(),
            Work::Machine(_) => {
                for length in 0..=LONGEST {
                    input[format!("l{length}")] = format!("$.[l{length}]").into();
                }
            }
            Work::Service | Work::Async | Work::Script { .. } => {}
        }
        json!([input])
    }
}

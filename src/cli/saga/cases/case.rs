//! A case, as its document has it.

use std::collections::BTreeMap;
use std::time::Duration;

use procession::saga::{Fault, MachineSettings, Network, OnRest};
use procession::testkit::Trouble;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// One case.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// What it shows.
    pub name: String,
    /// Definitions, by the names of their files.
    pub files: Vec<String>,
    /// The machine that is started.
    #[serde(default)]
    pub machine: String,
    /// The params with which it is started.
    #[serde(default)]
    pub params: Map<String, Value>,
    /// By machine.
    #[serde(default)]
    pub settings: BTreeMap<String, Settings>,
    #[serde(default)]
    /// What is done, in order.
    pub steps: Vec<Step>,
    /// It is not crashed a second time. Members that were out at two crashes go on alone, one after another, and what this
    /// case shows depends on the order in which members commit.
    #[serde(default)]
    pub crashed_once: bool,
    /// It is not crashed at all: its restarts are what it shows, and one more would leave it to a person.
    #[serde(default)]
    pub not_crashed: bool,
    /// All errors of the files, if they are refused.
    #[serde(default)]
    pub refused: Option<Vec<String>>,
}

impl Case {
    /// Reads a case from its document.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn parse(text: &[u8]) -> Result<Self, Trouble> {
        Ok(serde_json::from_slice(text)?)
    }
}

/// What holds for a machine.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    timeout_ms: Option<u64>,
    compensable_ms: u64,
    /// After which time at rest it is compensated.
    compensate_after_ms: Option<u64>,
}

impl Settings {
    pub fn of_machine(self) -> MachineSettings {
        let mut settings = MachineSettings::default().compensable(Duration::from_millis(self.compensable_ms));
        settings.timeout = self.timeout_ms.map(Duration::from_millis);
        if let Some(after) = self.compensate_after_ms.map(Duration::from_millis) {
            settings = settings.on_rest(OnRest::Compensate { after });
        }
        settings
    }
}

/// What is done to the saga, what services answer until the next step, and what is expected at its end. A step ends once the
/// saga has ended, or rests, or a call of it is held; one with a time ends after that.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    #[serde(rename = "do")]
    /// What is done.
    pub what: What,
    /// Of a forward: values of the context. Of a skip: its results.
    #[serde(default)]
    pub params: Map<String, Value>,
    /// Of a decision: the member that rests at this state, and no other.
    #[serde(default)]
    pub member: Option<String>,
    /// The time of a `pass_ms`. Any other step may have one too.
    #[serde(default)]
    pub ms: Option<u64>,
    /// Of a restart: how long the engine is down.
    #[serde(default)]
    pub down_ms: u64,
    #[serde(default)]
    /// What services answer, where they do not answer as Seata's `demoService`.
    pub double: Vec<Rule>,
    /// What is compared, by its name.
    #[serde(default)]
    pub expect: Map<String, Value>,
}

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// Nothing: the saga was started with the case.
    Start,
    /// What rests goes on, with other params.
    Forward,
    /// What rests is passed over, with results.
    Skip,
    /// All that took effect is undone.
    Compensate,
    /// The compensator that has failed is left out.
    SkipCompensation,
    /// Time passes.
    PassMs,
    /// The engine stops, and starts again.
    Restart,
}

/// What the double does at calls that it fits.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rule {
    pub state: Option<String>,
    pub method: Option<String>,
    /// Of a Loop's element.
    pub index: Option<usize>,
    pub takes_ms: u64,
    /// It does not return before a later step.
    pub held: bool,
    /// It answers as if no flag told it to fail.
    pub healed: bool,
    #[serde(deserialize_with = "some")]
    pub answer: Option<Value>,
    pub fault: Option<Faults>,
    /// Of the fault; without one it is the fault.
    pub network: Option<Failing>,
}

/// Null is an answer too.
fn some<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// One fault, or one or none for each try, by turns.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Faults {
    Always(FaultOf),
    ByTurns(Vec<Option<FaultOf>>),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultOf {
    class: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    network: Option<Failing>,
    #[serde(default)]
    cause: Option<Box<Self>>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failing {
    Refused,
    ConnectTimeout,
    ReadTimeout,
}

impl Failing {
    const fn network(self) -> Network {
        match self {
            Self::Refused => Network::Refused,
            Self::ConnectTimeout => Network::ConnectTimeout,
            Self::ReadTimeout => Network::ReadTimeout,
        }
    }

    /// Returns what a client of the network says.
    const fn class(self) -> &'static str {
        match self {
            Self::Refused => "java.net.ConnectException",
            Self::ConnectTimeout | Self::ReadTimeout => "java.net.SocketTimeoutException",
        }
    }
}

impl FaultOf {
    fn fault(&self) -> Fault {
        let mut fault = Fault::new(&self.class, &self.message);
        // A client of the network says by its class how it failed.
        let network = self.network.map(Failing::network).or_else(|| network_of(&self.class));
        if let Some(network) = network {
            fault = fault.network(network);
        }
        match &self.cause {
            Some(cause) => fault.cause(cause.fault()),
            None => fault,
        }
    }
}

fn network_of(class: &str) -> Option<Network> {
    match class {
        "java.net.ConnectException" => Some(Network::Refused),
        "java.net.SocketTimeoutException" => Some(Network::ReadTimeout),
        _ => None,
    }
}

impl Rule {
    pub fn fits(&self, state: &str, method: &str, index: Option<usize>) -> bool {
        let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        is(&self.state, state) && is(&self.method, method) && (self.index.is_none() || self.index == index)
    }

    /// Returns the fault with which this try fails, if it does.
    pub fn fault(&self, attempt: u32) -> Option<Fault> {
        let fault = match &self.fault {
            None => self
                .network
                .map(|network| Fault::new(network.class(), "the network failed")),
            Some(Faults::Always(fault)) => Some(fault.fault()),
            Some(Faults::ByTurns(faults)) => {
                let turn = usize::try_from(attempt.saturating_sub(1)).unwrap_or_default();
                let fault = faults.get(turn % faults.len().max(1));
                fault.and_then(Option::as_ref).map(FaultOf::fault)
            }
        };
        match (fault, self.network) {
            (Some(fault), Some(network)) => Some(fault.network(network.network())),
            (fault, _) => fault,
        }
    }
}

//! Sets, streams and plain procedures side by side, in a process that is killed twenty times: nothing is lost, nothing counts
//! twice, and all runs in its order.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::{join_all, try_join_all};
use procession::flow::{
    AppendError, Node, NodeContext, NodeState, Processed, Processor, Set, Stream, StreamName, StreamState,
};
use procession::provider::{Clock, SystemClock};
use procession::status::{ListFilter, WaitReason};
use procession::testkit::Trouble;
use procession::{Executor, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use crate::kit::{ROWS, Tested, by};

/// Tells the process that is killed where it works.
const PLACE: &str = "PROCESSION_FLOW_PLACE";
/// What that process prints at each call.
const CALLED: &[u8] = b"called\n";
const KILLS: usize = 20;
const SETS: u32 = 12;
const LAYERS: u32 = 3;
/// Nodes of a layer. Each stands behind all nodes of the layer before.
const WIDTH: u32 = 4;
const STREAMS: u32 = 8;
/// Nodes that a client appends to each stream.
const APPENDED: u32 = 60;
const ORDERS: u32 = 40;
const STAGES: u32 = 4;
/// Between looks at what somebody else changes.
const LOOK: Duration = Duration::from_millis(2);

/// What is outside of the engine: a file with a line for each call, in their order.
#[derive(Clone)]
struct Site {
    calls: PathBuf,
    executor: Arc<OnceLock<Executor>>,
}

impl Site {
    fn called(&self, unit: &str, part: u32, label: &str) -> Result<(), StageError> {
        let line = format!("{unit} {part} {label}\n");
        let file = File::options().create(true).append(true).open(&self.calls);
        // Whoever kills this process counts the calls.
        let said = file.and_then(|mut file| file.write_all(line.as_bytes()));
        said.and_then(|()| std::io::stdout().write_all(CALLED))
            .map_err(StageError::fail)
    }

    fn stream(&self, number: u32) -> Result<Stream, StageError> {
        let executor = self.executor.get().ok_or_else(|| StageError::retry("it starts"))?;
        executor.stream("mixed", unit(number)).map_err(StageError::fail)
    }
}

fn unit(stream: u32) -> String {
    format!("stream-{stream}")
}

/// A node of a set or of a stream. Some fail at first.
#[derive(Clone, Serialize, Deserialize)]
struct Work {
    unit: String,
    label: String,
    /// The stream that it appends a node to.
    appends_to: Option<u32>,
}

impl Work {
    fn new(unit: impl Display, label: impl Display) -> Self {
        Self {
            unit: unit.to_string(),
            label: label.to_string(),
            appends_to: None,
        }
    }
}

impl Processor for Work {
    const NAME: &'static str = "mixed.work";
    type Env = Site;
    type Output = u32;

    async fn process(&self, cx: &mut NodeContext<'_>, site: &Site) -> Result<Processed<u32>, StageError> {
        site.called(&self.unit, cx.place(), &self.label)?;
        let key = format!("{} {}", self.unit, self.label);
        let times: u32 = cx.get(ROWS, &key).await?.unwrap_or_default();
        cx.put(ROWS, &key, &(times + 1))?;
        if let Some(stream) = self.appends_to {
            let node = Node::of(Work::new(unit(stream), format!("{}-0", self.unit)));
            let name = StreamName::new("mixed", unit(stream)).map_err(StageError::fail)?;
            cx.append(&name, node).await?;
        }
        if cx.place() % 7 == 3 && cx.attempt() == 1 {
            return Err(StageError::retry("not at first"));
        }
        Ok(Processed::Done(cx.place()))
    }
}

/// A procedure that appends a node to a stream in each of its stages.
#[derive(Serialize, Deserialize)]
struct Order {
    number: u32,
}

impl Procedure for Order {
    const KIND: &'static str = "mixed.order";
    type Stage = u32;
    type Env = Site;
    type Output = u32;

    fn first(&self) -> u32 {
        0
    }

    async fn execute(&mut self, stage: u32, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let (unit_of_order, to) = (format!("order-{}", self.number), self.number % STREAMS);
        cx.env().called(&unit_of_order, stage, "stage")?;
        let key = format!("{unit_of_order} {stage}");
        let times: u32 = cx.get(ROWS, &key).await?.unwrap_or_default();
        cx.put(ROWS, &key, &(times + 1))?;
        let node = Node::of(Work::new(unit(to), format!("{unit_of_order}-{stage}")));
        let stream = cx.env().stream(to)?;
        stream.append_in(cx, node).await.map_err(StageError::retry)?;
        Ok(match stage + 1 {
            STAGES => Step::Done(self.number),
            next => Step::Next(next),
        })
    }
}

/// Layers of nodes, a procedure behind the last one, and a node behind that, which appends to a stream.
fn layered(number: u32) -> Result<Set, Trouble> {
    let name = format!("set-{number}");
    let mut set = Set::builder(name.clone());
    let mut before = Vec::new();
    for layer in 0..LAYERS {
        let nodes = (0..WIDTH).map(|place| format!("{layer}-{place}"));
        let nodes = nodes.map(|label| Node::new(label.clone(), Work::new(&name, label)).after(before.iter().copied()));
        before = nodes.map(|node| set.add(node)).collect();
    }
    let order = Node::procedure("order", Order { number: 1_000 + number });
    let order = set.add(order.after(before));
    let mut last = Work::new(&name, "last-0");
    last.appends_to = Some(number % STREAMS);
    set.add(Node::new("last", last).after([order]));
    Ok(set.build()?)
}

/// Returns the keys of all rows that must be there at the end.
fn expected() -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    for set in 0..SETS {
        keys.extend((0..LAYERS * WIDTH).map(|node| format!("set-{set} {}-{}", node / WIDTH, node % WIDTH)));
        keys.insert(format!("set-{set} last-0"));
        keys.insert(format!("{} set-{set}-0", unit(set % STREAMS)));
    }
    for order in (0..ORDERS).chain((0..SETS).map(|set| 1_000 + set)) {
        for stage in 0..STAGES {
            keys.insert(format!("order-{order} {stage}"));
            keys.insert(format!("{} order-{order}-{stage}", unit(order % STREAMS)));
        }
    }
    for stream in 0..STREAMS {
        keys.extend((0..APPENDED).map(|node| format!("{} client-{node}", unit(stream))));
    }
    keys
}

/// Asks for all of it, as a client does that does not know what it had asked for when it died, and waits for the end.
async fn ask_for_all(executor: &Executor, streams: &[Stream]) -> Tested {
    let sets = try_join_all((0..SETS).map(async |number| {
        let set = executor.start_set(layered(number)?).key(format!("set-{number}"));
        Ok::<_, Trouble>(set.await?)
    }));
    let orders = try_join_all((0..ORDERS).map(async |number| {
        let order = executor.submit(Order { number }).key(format!("order-{number}"));
        Ok::<_, Trouble>(order.await?)
    }));
    let appended = try_join_all(streams.iter().map(async |stream| {
        for number in 0..APPENDED {
            let work = Work::new(stream.name().group(), format!("client-{number}"));
            match stream.append(Node::new(format!("client-{number}"), work)).await {
                Ok(_) | Err(AppendError::Finished { .. }) => {}
                Err(error) => return Err(Trouble::from(error)),
            }
        }
        Ok(())
    }));
    let (sets, orders, appended) = futures::join!(sets, orders, appended);
    appended?;
    for set in sets? {
        let counts = set.outcome().await?;
        assert_eq!(
            (counts.success, counts.total()),
            (LAYERS * WIDTH + 2, LAYERS * WIDTH + 2)
        );
    }
    for order in orders? {
        order.outcome().await?;
    }
    for stream in streams {
        stream.finish().await?;
        while stream.status().await?.state != StreamState::Finish {
            SystemClock.sleep_until(SystemClock.now().after(LOOK)).await;
        }
    }
    Ok(())
}

/// Retries what was killed again and again while it was out, as a person would who has looked: it asks, or is paused as poison.
async fn settle_doubts(executor: Executor) {
    let live = ListFilter {
        live_only: true,
        ..ListFilter::default()
    };
    while let Ok(page) = executor.list(live.clone(), None, 1_000).await {
        let in_doubt = |question: &String| question.starts_with("in doubt");
        let rests = page
            .items
            .iter()
            .filter(|one| one.wait == Some(WaitReason::Poison) || one.question.as_ref().is_some_and(in_doubt));
        // It may have moved meanwhile.
        join_all(rests.map(|one| executor.retry_now(one.id, by()))).await;
        SystemClock.sleep_until(SystemClock.now().after(LOOK)).await;
    }
}

/// Every row was written in one commit, and every node of a stream has one record.
async fn count_all(executor: &Executor, streams: &[Stream]) -> Tested {
    let rows: BTreeMap<String, u32> = executor
        .scan::<u32>(ROWS, "")
        .await?
        .into_iter()
        .map(|(key, times)| Ok((String::from_utf8(key)?, times)))
        .collect::<Result<_, Trouble>>()?;
    let twice: Vec<_> = rows.iter().filter(|(_, times)| **times != 1).collect();
    assert!(twice.is_empty(), "counted twice: {twice:?}");
    assert_eq!(rows.into_keys().collect::<BTreeSet<_>>(), expected());
    for stream in streams {
        let unit = stream.name().group();
        let nodes = expected()
            .iter()
            .filter(|key| key.starts_with(&format!("{unit} ")))
            .count();
        let records = stream.records(None, 1_000).await?.items;
        let places: BTreeSet<u32> = records.iter().map(|record| record.place).collect();
        assert_eq!((records.len(), places.len()), (nodes, nodes), "{unit}");
        assert!(
            records.iter().all(|record| record.state == NodeState::Success),
            "{unit}"
        );
    }
    Ok(())
}

/// Whatever was called again was called again before anything behind it.
fn all_in_order(calls: &str) {
    let mut latest: BTreeMap<&str, u32> = BTreeMap::new();
    let mut next_of_caller: BTreeMap<(&str, &str), u32> = BTreeMap::new();
    for line in calls.lines() {
        let mut words = line.split(' ');
        let (unit, part, label) = (words.next(), words.next(), words.next());
        let (unit, label) = (unit.unwrap_or_default(), label.unwrap_or_default());
        let part: u32 = part.and_then(|part| part.parse().ok()).unwrap_or_default();
        // Nodes of one layer run in any order.
        let at = if unit.starts_with("set-") && part < LAYERS * WIDTH {
            part / WIDTH
        } else {
            part
        };
        let latest = latest.entry(unit).or_default();
        assert!(*latest <= at, "{line}: after {latest}");
        *latest = at;
        // What one caller has appended runs as it has appended it.
        if let Some((caller, number)) = label.rsplit_once('-').filter(|_| unit.starts_with("stream-")) {
            let number: u32 = number.parse().unwrap_or_default();
            let latest = next_of_caller.entry((unit, caller)).or_default();
            assert!(*latest <= number, "{line}: after {latest}");
            *latest = number;
        }
    }
}

async fn work_in(place: &Path) -> Tested {
    let site = Site {
        calls: place.join("calls"),
        executor: Arc::default(),
    };
    let builder = Executor::builder(place.join("journal"))
        .processor::<Work>(site.clone())
        .register::<Order>(site.clone())
        .streams();
    let executor = builder.start().await?;
    site.executor
        .set(executor.clone())
        .map_err(|_| "it was started twice")?;
    let settling = actix_rt::spawn(settle_doubts(executor.clone()));
    let streams: Vec<Stream> = (0..STREAMS)
        .map(|number| executor.stream("mixed", unit(number)))
        .collect::<Result<_, _>>()?;
    ask_for_all(&executor, &streams).await?;
    settling.abort();
    count_all(&executor, &streams).await?;
    all_in_order(&fs::read_to_string(&site.calls)?);
    executor.drain(Duration::from_secs(1)).await?;
    Ok(fs::write(place.join("done"), "all of it was counted")?)
}

/// Runs the process, and kills it at this call. Returns `true` if it ended by itself before.
fn run(place: &Path, killed_at: usize) -> Result<bool, Trouble> {
    let test = "killed::sets_streams_and_procedures_survive_twenty_kills";
    let mut child = Command::new(std::env::current_exe()?)
        .args(["--exact", test, "--nocapture"])
        .env(PLACE, place)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(File::options().create(true).append(true).open(place.join("log"))?)
        .spawn()?;
    let said = BufReader::new(child.stdout.take().ok_or("it has no output")?);
    let mut calls = 0;
    for line in said.lines() {
        calls += usize::from(line?.as_bytes() == CALLED.trim_ascii());
        if calls == killed_at {
            child.kill()?;
        }
    }
    Ok(child.wait()?.success())
}

#[test]
fn sets_streams_and_procedures_survive_twenty_kills() -> Tested {
    if let Some(place) = std::env::var_os(PLACE) {
        return actix_rt::System::new().block_on(work_in(Path::new(&place)));
    }
    let directory = tempfile::tempdir()?;
    let place = directory.path();
    let log = || fs::read_to_string(place.join("log")).unwrap_or_default();
    for kill in 0..KILLS {
        // From early in a start to far on: 1 to 38 calls.
        let has_ended = run(place, 1 + (kill * 17) % 38)?;
        assert!(
            !has_ended && log().is_empty(),
            "kill {kill}: it ended before: {}",
            log()
        );
    }
    let has_ended = run(place, usize::MAX)?;
    assert!(has_ended && place.join("done").exists(), "{}", log());
    Ok(())
}

//! Short ways to run a stream.

use std::sync::{Mutex, PoisonError};

use procession::flow::{AppendError, Node, NodeStatus, Stream, StreamRecord, StreamState};
use procession::testkit::{Ended, Enumeration, Fault, FaultPlan, Final, Run, Trouble, World, enumerate};

use crate::kit::{Lab, ROWS, Tested, kinds, settle_doubts};

/// The stream of all tests that have one.
pub(crate) fn the_stream(run: &Run) -> Result<Stream, Trouble> {
    Ok(run.executor.stream("invoices", "customer-17")?)
}

/// Appends nodes in one call. A stream that has ended has them.
pub(crate) async fn append(stream: &Stream, nodes: impl IntoIterator<Item = Node>) -> Tested {
    match stream.append_all(nodes).await {
        Ok(_) | Err(AppendError::Finished { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn of_record(record: &StreamRecord) -> String {
    format!("{} {}", record.name, record.state)
}

fn of_node(node: &NodeStatus) -> String {
    format!("{} {}", node.name, node.state)
}

/// Returns how all nodes stand once everything is at rest, oldest first: `n1 SUCCESS, n2 PENDING, n3 WAIT`.
pub(crate) async fn states(run: &Run, stream: &Stream) -> Result<String, Trouble> {
    run.settle().await;
    let records = stream.records(None, 1_000).await?;
    let status = stream.status().await?;
    let waiting = stream.waiting(0, 1_000).await?;
    let mut shown: Vec<String> = records.items.iter().rev().map(of_record).collect();
    assert_eq!(
        status.ended as usize,
        shown.len(),
        "all that has ended is recorded: {shown:?}"
    );
    shown.extend(status.in_hand.iter().map(of_node));
    if status.state != StreamState::Finish {
        assert_eq!(status.waiting as usize, waiting.items.len());
        assert_eq!(
            status.oldest,
            waiting.items.first().map(|node| node.since),
            "the first waits longest"
        );
    }
    shown.extend(waiting.items.iter().map(of_node));
    Ok(shown.join(", "))
}

/// Returns how the stream stands once everything is at rest.
pub(crate) async fn state(run: &Run, stream: &Stream) -> Result<StreamState, Trouble> {
    run.settle().await;
    Ok(stream.status().await?.state)
}

/// Drives a stream, crashed at every commit, before, after and torn, and again in each recovery. Returns what the crash-free
/// run did.
pub(crate) fn enumerate_stream(
    drive: impl AsyncFn(&Lab, &Run, &Stream) -> Tested,
) -> Result<(Enumeration, Lab), Trouble> {
    let first: Mutex<Option<Lab>> = Mutex::new(None);
    let done = enumerate(
        Lab::default,
        kinds,
        async |lab: &Lab, run: &Run| drive(lab, run, &the_stream(run)?).await,
        &[ROWS],
        |plain, crashed, crashes| {
            let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert_with(|| plain.clone());
            plain.compare(crashed, crashes)
        },
    )?;
    let lab = first.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok((done, lab.unwrap_or_default()))
}

/// Comes to rest, and settles what two crashes have left in doubt.
pub(crate) async fn rest(run: &Run) -> Tested {
    settle_doubts(run).await
}

/// Drives a long scenario, then crashes it once at each of these commits, before and after, and compares the final worlds.
/// Returns the commits of the crash-free run.
pub(crate) fn crash_at(
    chosen: impl Fn(u64) -> Vec<u64>,
    set_up: impl Fn(&Lab, procession::Builder) -> procession::Builder,
    drive: impl AsyncFn(&Lab, &Run) -> Tested,
) -> Result<u64, Trouble> {
    let live = |world: &World, lab: &Lab, plan: FaultPlan| {
        world.run(
            plan,
            |builder| set_up(lab, builder),
            async |run: &Run| {
                drive(lab, run).await?;
                rest(run).await?;
                Ok((Final::of(run, &[ROWS]).await?, run.store.commits() - 1))
            },
        )
    };
    let lab = Lab::default();
    let (expected, commits) = live(&World::new(), &lab, FaultPlan::none())?.done()?;
    for commit in chosen(commits) {
        for fault in [Fault::CrashBefore, Fault::CrashAfter] {
            let name = format!("commit {commit} of {commits}, {fault:?}");
            let (world, crashed) = (World::new(), Lab::default());
            let ended = live(&world, &crashed, FaultPlan::at(commit, fault)).map_err(|why| format!("{name}: {why}"))?;
            if let Ended::Done(_) = ended {
                return Err(format!("{name}: it did not crash").into());
            }
            let ended = live(&world, &crashed, FaultPlan::none()).and_then(Ended::done);
            let (found, _) = ended.map_err(|why| format!("{name}: {why}"))?;
            if found != expected {
                return Err(format!("{name}: the final world is another").into());
            }
            lab.compare(&crashed, 1).map_err(|why| format!("{name}: {why}"))?;
        }
    }
    Ok(commits)
}

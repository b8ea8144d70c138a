//! Counters across crashes: what was told is counted once, and what nobody survived to tell is not.

use metrics_util::debugging::DebuggingRecorder;
use procession::status::{ListFilter, ProcedureState};
use procession::testkit::{Fault, Run};

use super::metrics::{Read, assert_three, limited, run_these};
use crate::support::{Act, Lab, Plan, Tested, at_every_commit, chain, failing, live_through, plan};

/// As few commits as may be, for crashes at each of them and again at each of the next life.
fn small_three() -> [(&'static str, Plan); 3] {
    let yields = plan("y", [Act::Yield(5, Box::new(Act::Done(7)))]);
    [("s", chain("s", 1)), ("f", failing("f", 1)), ("y", yields)]
}

/// A commit that reached the disk in the instant of the crash was told to nobody, and is not counted;
/// nothing is counted twice, and the gauges of the life that came to the end are right.
#[test]
fn e_112_nothing_is_counted_twice_however_it_crashes() -> Tested {
    /// Commits of the first life with which something is born or ends.
    const TELLING: [u64; 6] = [1, 2, 3, 5, 6, 7];
    let done = at_every_commit(true, |faults| {
        let recorder = DebuggingRecorder::new();
        let drive = async |_: &Lab, run: &Run| {
            run_these(run, small_three()).await?;
            let all = run.executor.list(ListFilter::default(), None, 10).await?.items;
            let succeeded = all.iter().filter(|status| status.state == ProcedureState::Success);
            assert_eq!((all.len(), succeeded.count()), (3, 2), "the store knows them all");
            Ok(())
        };
        let lives = || live_through(faults, |_| Lab::default(), limited, drive, |_, _| Ok(()));
        let lived = metrics::with_local_recorder(&recorder, lives)?;
        let came = faults.get(..lived.crashes).unwrap_or(faults);
        let read = Read::of(&recorder.snapshotter());
        let untold = |(commit, fault): &&(u64, Fault)| *fault == Fault::CrashAfter && *commit > 0;
        match (came, came.iter().filter(untold).count()) {
            (_, 0) => assert_three(&read, &format!("{came:?}")),
            ([(commit, _)], _) => assert_untold(&read, true, u32::from(TELLING.contains(commit)), came),
            (_, most) => assert_untold(&read, false, u32::try_from(most)?, came),
        }
        Ok(lived)
    })?;
    assert_eq!(done.commits, 7);
    Ok(())
}

/// So many births and ends were not counted, or fewer if it need not be all; and the rest is as ever.
fn assert_untold(read: &Read, all: bool, untold: u32, came: &[(u64, Fault)]) {
    let born = read.value("submitted_total limited");
    let (well, badly) = (
        read.value("finished_total limited success"),
        read.value("finished_total limited rolled_back"),
    );
    assert!(
        born <= 3.0 && well <= 2.0 && badly <= 1.0,
        "{came:?}: {born} {well} {badly}"
    );
    let missing = 6.0 - born - well - badly;
    assert!(missing <= f64::from(untold), "{came:?}: {missing} of {untold}");
    assert!(!all || missing == f64::from(untold), "{came:?}: {missing} of {untold}");
    assert_eq!(read.value("failed_total limited"), badly, "{came:?}");
    let samples = |end: &str| read.samples(&format!("procedure_seconds limited {end}")).len() as f64;
    assert_eq!((samples("success"), samples("rolled_back")), (well, badly), "{came:?}");
    assert_eq!(read.value("retries_total limited"), 0.0, "{came:?}");
    for gauge in ["limiter_used limited", "limiter_waiting limited", "commits_waiting "] {
        assert_eq!(read.value(gauge), 0.0, "{gauge}, {came:?}");
    }
    assert_eq!(
        (read.sum("active"), read.value("limiter_limit limited")),
        (0.0, 2.0),
        "{came:?}"
    );
}

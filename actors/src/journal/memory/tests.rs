//! Crashes, torn and failed writes, and damage, each at a chosen point.

use futures::FutureExt;
use futures::executor::block_on;

use super::*;
use crate::journal::conformance::check_failure_is_final;
use procession_kernel::Seq;

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn batch(epoch: Epoch, number: u64, keys: &[&str]) -> Batch {
    let mut batch = Batch::new(epoch);
    batch.advance_to(Seq(number));
    for key in keys {
        batch.put(Space::Keys, key.as_bytes(), &number.to_be_bytes());
    }
    batch
}

/// Takes the store with commit 0, and writes commits 1 and 2 of two records each as far as the store lives.
fn run(disk: &MemoryDisk, plan: FaultPlan) -> Result<MemoryStore, StoreError> {
    let store = MemoryStore::open(disk, plan)?;
    let epoch = block_on(store.acquire())?;
    let batches = [
        batch(epoch, 0, &[]),
        batch(epoch, 1, &["a", "b"]),
        batch(epoch, 2, &["c", "d"]),
    ];
    for batch in batches {
        if store.append(batch).now_or_never().is_none() {
            break;
        }
    }
    Ok(store)
}

fn keys(disk: &MemoryDisk) -> String {
    disk.dump(&Space::Keys)
        .into_iter()
        .map(|(key, _)| String::from_utf8_lossy(&key).into_owned())
        .collect()
}

#[test]
fn a_crash_before_leaves_nothing_and_one_after_leaves_all() -> Outcome {
    for (fault, expected) in [(Fault::CrashBefore, "ab"), (Fault::CrashAfter, "abcd")] {
        let disk = MemoryDisk::new();
        run(&disk, FaultPlan::at(2, fault))?;
        assert_eq!(keys(&disk), expected, "{fault:?}");
        MemoryStore::open(&disk, FaultPlan::none())?;
        assert_eq!(keys(&disk), expected, "{fault:?}");
    }
    Ok(())
}

#[test]
fn a_torn_batch_is_dropped_whole_wherever_it_is_cut() -> Outcome {
    let whole = MemoryDisk::new();
    drop(run(&whole, FaultPlan::none())?);
    let points = whole.torn_points(2);
    assert_eq!(
        points.len(),
        4,
        "before and between the two records, and inside each: {points:?}"
    );
    assert_eq!(
        whole.torn_points(0).len(),
        1,
        "an empty batch can be torn in its header"
    );
    assert_eq!(whole.torn_points(3), Vec::<usize>::new());
    assert_eq!(whole.last_commit(), Some(2));
    for cut in 0..200 {
        let disk = MemoryDisk::new();
        run(&disk, FaultPlan::at(2, Fault::Torn { cut }))?;
        let store = MemoryStore::open(&disk, FaultPlan::none())?;
        let left = block_on(store.scan(Scan {
            space: Space::Keys,
            from: vec![],
            to: None,
            limit: 10,
        }))?;
        assert_eq!(left.len(), 2, "cut at {cut}");
        let epoch = block_on(store.acquire())?;
        block_on(store.append(batch(epoch, 3, &["e"])))?;
        assert_eq!(keys(&disk), "abe", "cut at {cut}");
    }
    Ok(())
}

#[test]
fn every_flipped_byte_of_committed_data_is_an_error() -> Outcome {
    let disk = MemoryDisk::new();
    drop(run(&disk, FaultPlan::none())?);
    for offset in 0..disk.len() {
        disk.flip_byte(offset);
        let opened = MemoryStore::open(&disk, FaultPlan::none());
        assert!(matches!(opened, Err(StoreError::Damaged { .. })), "byte {offset}");
        disk.flip_byte(offset);
    }
    MemoryStore::open(&disk, FaultPlan::none())?;
    Ok(())
}

#[test]
fn a_dead_store_answers_nothing_and_writes_nothing() -> Outcome {
    let disk = MemoryDisk::new();
    let store = MemoryStore::open(&disk, FaultPlan::at(1, Fault::CrashAfter))?;
    let crashed = store.crashed();
    let epoch = block_on(store.acquire())?;
    block_on(store.append(batch(epoch, 1, &["a"])))?;
    assert!(store.crashed().now_or_never().is_none());
    assert!(store.append(batch(epoch, 2, &["b"])).now_or_never().is_none());
    assert!(crashed.now_or_never().is_some());
    assert!(store.is_dead());
    let written = disk.len();
    assert!(store.append(batch(epoch, 3, &["c"])).now_or_never().is_none());
    assert!(store.get(Space::Keys, b"a".to_vec()).now_or_never().is_none());
    assert!(store.acquire().now_or_never().is_none());
    assert_eq!(disk.len(), written);
    let next = MemoryStore::open(&disk, FaultPlan::none())?;
    drop(store);
    assert!(
        MemoryStore::open(&disk, FaultPlan::none()).is_err(),
        "the dead one's end does not let go for the living"
    );
    assert_eq!(keys(&disk), "ab");
    drop(next);
    Ok(())
}

#[test]
fn dropping_a_healthy_store_is_no_crash() -> Outcome {
    let store = run(&MemoryDisk::new(), FaultPlan::none())?;
    let crashed = store.crashed();
    drop(store);
    assert!(crashed.now_or_never().is_none());
    Ok(())
}

#[test]
fn a_failed_commit_poisons_and_is_not_seen() -> Outcome {
    for fault in [Fault::FailWrite, Fault::FailSync, Fault::FailNoSpace] {
        let disk = MemoryDisk::new();
        let store = MemoryStore::open(&disk, FaultPlan::at(1, fault))?;
        check_failure_is_final(&store)?;
        assert_eq!(store.appends_after_failure(), 2, "{fault:?}");
        assert_eq!(store.commits(), 2, "{fault:?}");
        drop(store);
        MemoryStore::open(&disk, FaultPlan::none())?;
    }
    Ok(())
}

#[test]
fn postponed_faults_happen_so_many_commits_later() -> Outcome {
    let disk = MemoryDisk::new();
    let store = MemoryStore::open(&disk, FaultPlan::at(1, Fault::CrashBefore))?;
    let epoch = block_on(store.acquire())?;
    store.postpone_faults(1);
    for number in [0, 1] {
        block_on(store.append(batch(epoch, number, &["a"])))?;
    }
    assert!(store.append(batch(epoch, 2, &["b"])).now_or_never().is_none());
    assert_eq!(keys(&disk), "a");
    Ok(())
}

#[test]
fn withheld_receipts_come_in_order_when_released() -> Outcome {
    let disk = MemoryDisk::new();
    let store = MemoryStore::open(&disk, FaultPlan::at(1, Fault::Withhold))?;
    let epoch = block_on(store.acquire())?;
    block_on(store.append(batch(epoch, 1, &["a"])))?;
    let mut first = store.append(batch(epoch, 2, &["b"]));
    let mut second = store.append(batch(epoch, 3, &["c"]));
    assert!((&mut first).now_or_never().is_none());
    assert!((&mut second).now_or_never().is_none());
    assert!(store.is_withholding());
    assert_eq!(keys(&disk), "abc", "they are on the disk");
    let seen = block_on(store.get(Space::Keys, b"b".to_vec()))?;
    assert_eq!(seen, None, "no read sees what has no receipt");
    store.release_receipts();
    assert_eq!(block_on(first)?.seq(), Seq(2));
    assert_eq!(block_on(second)?.seq(), Seq(3));
    assert!(block_on(store.get(Space::Keys, b"c".to_vec()))?.is_some());
    assert_eq!(block_on(store.append(batch(epoch, 4, &["d"])))?.seq(), Seq(4));
    Ok(())
}

#[test]
fn a_crash_keeps_withheld_receipts_for_ever() -> Outcome {
    let disk = MemoryDisk::new();
    let store = MemoryStore::open(&disk, FaultPlan::at(0, Fault::Withhold))?;
    let epoch = block_on(store.acquire())?;
    let mut withheld = store.append(batch(epoch, 1, &["a"]));
    store.crash();
    assert!((&mut withheld).now_or_never().is_none());
    assert_eq!(keys(&disk), "a");
    Ok(())
}

#[test]
fn an_epoch_taken_behind_the_owners_back_fences_it() -> Outcome {
    let disk = MemoryDisk::new();
    let store = run(&disk, FaultPlan::none())?;
    let before = keys(&disk);
    let taken = disk.take_epoch();
    let answer = block_on(store.append(batch(Epoch(taken.0 - 1), 3, &["e"])));
    assert!(
        matches!(answer, Err(AppendError::Fenced { newer }) if newer == taken),
        "{answer:?}"
    );
    assert_eq!(keys(&disk), before);
    drop(store);
    let store = MemoryStore::open(&disk, FaultPlan::none())?;
    assert!(block_on(store.acquire())? > taken);
    Ok(())
}

#[test]
fn one_store_at_a_time() -> Outcome {
    let disk = MemoryDisk::new();
    let store = MemoryStore::open(&disk, FaultPlan::none())?;
    assert!(matches!(
        MemoryStore::open(&disk, FaultPlan::none()),
        Err(StoreError::Held { .. })
    ));
    drop(store);
    MemoryStore::open(&disk, FaultPlan::none())?;
    Ok(())
}

#[test]
fn reads_count_rows() -> Outcome {
    let store = run(&MemoryDisk::new(), FaultPlan::none())?;
    block_on(store.scan(Scan {
        space: Space::Keys,
        from: vec![],
        to: None,
        limit: 3,
    }))?;
    block_on(store.get(Space::Keys, b"a".to_vec()))?;
    assert_eq!(store.reads(), 4);
    assert!(store.appended_bytes() > 0);
    Ok(())
}

/// Of two openings, the second has only what it has written itself, and neither answers each time.
#[test]
fn recent_writes_are_told_now_and_then_and_old_ones_never() -> Outcome {
    let disk = MemoryDisk::new();
    let scan = Scan {
        space: Space::Keys,
        from: vec![],
        to: None,
        limit: 9,
    };
    let told = |store: &MemoryStore| -> Vec<Option<RecentWrites>> {
        let mut answers: Vec<_> = (0..64).map(|_| store.recent_writes(&scan)).collect();
        answers.sort();
        answers.dedup();
        answers
    };
    let writes = |keys: &[(&str, Option<u64>)]| -> RecentWrites {
        let write = |(key, value): &(&str, Option<u64>)| {
            let value = value.map(|value| value.to_be_bytes().to_vec());
            (key.as_bytes().to_vec(), value)
        };
        keys.iter().map(write).collect()
    };
    let store = run(&disk, FaultPlan::none().recent(1))?;
    let all = writes(&[("a", Some(1)), ("b", Some(1)), ("c", Some(2)), ("d", Some(2))]);
    assert_eq!(told(&store), [None, Some(all)]);
    drop(store);
    let store = MemoryStore::open(&disk, FaultPlan::none().recent(1))?;
    let mut third = batch(block_on(store.acquire())?, 3, &["e"]);
    third.delete(Space::Keys, b"a");
    block_on(store.append(third))?;
    assert_eq!(told(&store), [None, Some(writes(&[("a", None), ("e", Some(3))]))]);
    drop(store);
    assert_eq!(told(&run(&MemoryDisk::new(), FaultPlan::none())?), [None]);
    Ok(())
}

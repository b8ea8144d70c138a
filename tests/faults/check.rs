//! What must hold after a fault, once its cause is gone.

use std::fs;
use std::path::Path;
use std::time::Duration;

use procession::operate::OperatorRequest;
use procession::status::{ListFilter, WaitReason};
use procession::{Executor, ProcedureId};

use crate::Outcome;
use crate::place::Ground;
use crate::work::{COUNTS, STAGES, Tally, engine};

/// How long an end may take at most.
const DEADLINE: Duration = Duration::from_secs(30);

/// Returns the numbers and ids that the ledger says were acknowledged.
pub(crate) fn acknowledged(ledger: &Path) -> Outcome<Vec<(u64, ProcedureId)>> {
    let mut known = Vec::new();
    for line in fs::read_to_string(ledger)?.lines() {
        let mut words = line.split(' ');
        if words.next() == Some("acknowledged") {
            let (number, id) = (words.next().ok_or("no number")?, words.next().ok_or("no id")?);
            known.push((number.parse()?, id.parse()?));
        }
    }
    Ok(known)
}

/// Starts the engine on what is there: all that was acknowledged is there and
/// ends, each stage was committed once, and new work is done. Returns how many there were.
pub(crate) fn whole(ground: &Ground) -> Outcome<usize> {
    let known = acknowledged(&ground.ledger())?;
    actix_rt::System::new().block_on(async {
        let executor = engine(&ground.journal).start().await?;
        resume_poison(&executor).await?;
        for (number, id) in &known {
            let output = executor.handle::<Tally>(*id).wait_for(DEADLINE).await;
            let output = output.map_err(|error| format!("{number}, acknowledged as {id}: {error}"))?;
            assert_eq!(output, *number, "acknowledged as {id}");
        }
        let number = u64::MAX / 2;
        let filler = String::new();
        let fresh = executor.submit(Tally { number, filler }).await?;
        assert_eq!(fresh.wait_for(DEADLINE).await?, number);

        let procedures = all_ended(&executor).await?;
        let counts: Vec<(Vec<u8>, u32)> = executor.scan(COUNTS, "").await?;
        for (stage, count) in &counts {
            assert_eq!(*count, 1, "{} was committed so often", String::from_utf8_lossy(stage));
        }
        assert_eq!(counts.len(), STAGES * procedures);
        // Those over were stored, and nobody was told before the fault.
        assert!(procedures > known.len());
        executor.drain(Duration::from_secs(5)).await?;
        Ok(known.len())
    })
}

/// A stage that process after process died with is poison to the engine, and rests until somebody has looked at it.
/// Random kills meet one stage three times now and then, on a slow machine more often.
pub(crate) async fn resume_poison(executor: &Executor) -> Outcome {
    let mut cursor = None;
    loop {
        let page = executor.list(ListFilter::default(), cursor, 1_000).await?;
        for status in page
            .items
            .iter()
            .filter(|status| status.wait == Some(WaitReason::Poison))
        {
            executor
                .retry_now(status.id, OperatorRequest::new("a test", "it was killed"))
                .await?;
        }
        cursor = page.next;
        if cursor.is_none() {
            return Ok(());
        }
    }
}

/// Waits for the end of all that the journal holds; gives how many there are.
async fn all_ended(executor: &Executor) -> Outcome<usize> {
    let (mut cursor, mut count) = (None, 0);
    loop {
        let page = executor.list(ListFilter::default(), cursor, 1_000).await?;
        for status in &page.items {
            executor.handle::<Tally>(status.id).wait_for(DEADLINE).await?;
        }
        count += page.items.len();
        cursor = page.next;
        if cursor.is_none() {
            return Ok(count);
        }
    }
}

/// What a process said that met the fault: its cause, and that nothing was acknowledged from then on.
pub(crate) fn stopped_with(lines: &[String], cause: &str) -> Outcome {
    let of = |beginning: &str| -> Vec<&String> { lines.iter().filter(|line| line.starts_with(beginning)).collect() };
    let (failed, late, poisoned) = (of("failed "), of("late "), of("poisoned "));
    let told = !failed.is_empty() && late.len() == 3 && poisoned.len() == 1;
    let all = failed.iter().chain(&late).chain(&poisoned);
    let clear = all.clone().all(|line| line.contains(cause));
    let advised = failed
        .iter()
        .chain(&late)
        .all(|line| line.contains("restart the engine"));
    // What the journal had taken before is told until the first failure is.
    let first = lines.iter().position(|line| line.starts_with("failed "));
    let after = lines.iter().skip(first.unwrap_or(lines.len()));
    let quiet = after.filter(|line| line.starts_with("acknowledged ")).count() == 0;
    if told && clear && advised && quiet {
        return Ok(());
    }
    let tail: Vec<&str> = lines.iter().rev().take(20).rev().map(String::as_str).collect();
    Err(format!("it should have stopped with \"{cause}\", and said: {}", tail.join("\n")).into())
}

/// What a process said that was refused at its start.
pub(crate) fn refused_with(lines: &[String], parts: &[&str]) -> Outcome {
    let refusal = lines.iter().find(|line| line.starts_with("refused "));
    match refusal {
        Some(line) if parts.iter().all(|part| line.contains(part)) => Ok(()),
        _ => Err(format!("a refusal should say {parts:?}: {}", lines.join("\n")).into()),
    }
}

/// Every file below a directory with its content, in order.
pub(crate) fn files(directory: &Path) -> Outcome<Vec<(std::path::PathBuf, Vec<u8>)>> {
    let mut found = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.push((path.clone(), fs::read(path)?));
            }
        }
    }
    found.sort();
    Ok(found)
}

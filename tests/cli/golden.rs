//! What each verb prints, compared with a file. `PROCESSION_GOLDEN=write` writes the files
//! anew: look at the difference before it is kept.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use futures::{StreamExt, TryStreamExt};
use procession::{Executor, ProcedureId};
use serde_json::Value;

use crate::Outcome;
use crate::journal::{Does, Job, Running, in_a_circle, of_each, rest};
use crate::run::{Said, look};

/// A journal that goes with the test.
pub(crate) struct Place {
    _root: tempfile::TempDir,
    pub(crate) journal: PathBuf,
}

pub(crate) fn made(make: fn(&Path) -> Outcome) -> Outcome<Place> {
    let root = tempfile::tempdir()?;
    let journal = root.path().join("journal");
    make(&journal)?;
    Ok(Place { _root: root, journal })
}

/// Compares what a verb prints with its file.
fn must_print(place: &Place, name: &str, arguments: &str, code: i32) -> Outcome {
    must_have_said(&look(arguments, &place.journal)?, name, arguments, code)
}

/// Compares what a verb has said with its file.
pub(crate) fn must_have_said(said: &Said, name: &str, arguments: &str, code: i32) -> Outcome {
    assert_eq!(said.code, Some(code), "{arguments}: {}{}", said.out, said.err);
    let text = format!("$ procession {arguments}\n{}{}", said.out, said.err);
    let text: String = text.lines().map(|line| steady(line) + "\n").collect();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/cli/golden/{name}.txt"));
    if std::env::var_os("PROCESSION_GOLDEN").is_some_and(|value| value == "write") {
        return Ok(fs::write(file, text)?);
    }
    let golden = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    assert_eq!(
        text,
        golden,
        "{arguments}; PROCESSION_GOLDEN=write writes {}",
        file.display()
    );
    Ok(())
}

/// Takes out what each run has another of: the reader's clock, the size of files, the room on the
/// disk and what an engine knows of its syncs, and how the engine stands.
pub(crate) fn steady(line: &str) -> String {
    if let Ok(Value::Object(mut document)) = serde_json::from_str(line) {
        for (name, put) in [
            ("now", "NOW"),
            ("bytes", "BYTES"),
            ("disk_free_bytes", "FREE"),
            ("engine", "ENGINE"),
        ] {
            if document.contains_key(name) && !document.contains_key("part") {
                document.insert(name.to_owned(), Value::from(put));
            }
        }
        // An act is answered as soon as it is on disk; what the dashboard shows is a moment behind.
        if document.contains_key("dry_run") {
            document.insert("as_of".to_owned(), Value::from("AS_OF"));
        }
        return Value::Object(document).to_string();
    }
    if let Some((_, rest)) = line.split_once(" are free on its disk") {
        let is_told = ["; commit p99 ", "; fsync p50 "].map(|what| rest.contains(what));
        assert!(rest.is_empty() || is_told == [true; 2], "{line}");
        return "FREE are free on its disk".to_owned();
    }
    if let Some((who, rest)) = line.split_once(" has ended with revision ")
        && let Some((revision, rest)) = rest.split_once(';')
    {
        assert!(revision.parse::<u64>().is_ok(), "{line}");
        return format!("{who} has ended with revision REVISION;{rest}");
    }
    match line.split_once("B, ") {
        Some((_, rest)) if rest.contains("live famil") => format!("BYTES, {rest}"),
        Some(_) | None => line.to_owned(),
    }
}

#[test]
fn every_verb_prints_what_its_file_says() -> Outcome {
    let place = made(of_each)?;
    for (name, arguments, code) in [
        ("ls", "ls", 0),
        ("ls_all_json", "ls --all --json", 0),
        ("ls_filtered", "ls reason:lock,timer age:>1m req-", 0),
        ("ls_failed", "ls state:rolledback err:TIMEOUT", 0),
        ("ls_page", "ls --all --limit 2 --after 2.0", 0),
        ("ls_rule", "ls rule:S2,S5", 0),
        ("show", "show 4.0", 0),
        ("show_failed", "show 2.0", 0),
        ("show_json", "show 3.0 --json", 0),
        ("tree", "tree 5.0", 0),
        ("tree_below_json", "tree 5.3 --json", 0),
        ("history", "history 2.0", 0),
        ("history_family_json", "history 5.0 --family --json --limit 2", 0),
        ("why", "why 4.0", 0),
        ("why_permit", "why 7.0", 0),
        ("why_ended", "why 1.0", 0),
        ("why_parent_json", "why 5.0 --json", 0),
        ("locks", "locks", 0),
        ("locks_json", "locks --json", 0),
        ("limits", "limits", 0),
        ("limits_json", "limits --json", 0),
        ("failures", "failures", 0),
        ("ls_failures", "ls failure:any", 0),
        ("doctor", "doctor", 3),
        ("doctor_json", "doctor --json", 3),
        ("export", "export 2.0", 0),
        ("audit_none", "audit", 0),
        ("fields", "ls --all --fields id,state,cause.text", 0),
        ("fields_json", "history 2.0 --fields number,stage,took_ms --json", 0),
        ("fields_one", "show 2.0 --fields key,labels", 0),
        ("fields_unknown", "ls --fields id,when", 0),
    ] {
        must_print(&place, name, arguments, code)?;
    }
    Ok(())
}

#[test]
fn sizes_are_told_by_the_default_bounds() -> Outcome {
    let root = tempfile::tempdir()?;
    actix_rt::System::new().block_on(async {
        let running = Running::start(root.path()).await?;
        running
            .submit(None, Does::Retries("x".repeat(600_000)), "large")
            .await?;
        running.leave().await
    })?;
    let said = look("doctor", root.path())?;
    assert_eq!(said.code, Some(3), "{}", said.out);
    let told = "; 1048576 are allowed by default: it was submitted with this size";
    assert!(
        said.out.contains("has a payload of 6000") && said.out.contains(told),
        "{}",
        said.out
    );
    let said = look("ls rule:size", root.path())?;
    assert!(said.out.contains("1.0"), "{}", said.out);
    Ok(())
}

#[test]
fn signals_of_one_count_for_it_alone() -> Outcome {
    let root = tempfile::tempdir()?;
    let each = 5_001;
    actix_rt::System::new().block_on(async {
        // Its commits are batched, unlike those of an engine on one thread.
        let executor = Executor::builder(root.path()).register::<Job>(()).start().await?;
        let (lock, does) = (None, Does::Spawns(vec![Does::Waits("go".into()); 2]));
        let parent = executor.submit(Job { lock, does }).await?.id();
        rest(&executor, parent).await?;
        for member in 1..=2 {
            let id = ProcedureId::new(parent.family, member);
            let sent = (0..each).map(|_| executor.signal(id, "noise", &()).into_future());
            let sent = futures::stream::iter(sent).buffer_unordered(2_000);
            sent.try_collect::<Vec<_>>().await?;
        }
        let running = Running { executor };
        running.leave().await
    })?;
    let said = look("doctor", root.path())?;
    let told = "has 5001 signals that no stage has taken; 10000 may wait by default";
    assert_eq!(said.out.matches(told).count(), 2, "{}", said.out);
    Ok(())
}

#[test]
fn a_circle_has_its_exit_codes() -> Outcome {
    let place = made(in_a_circle)?;
    for (name, arguments, code) in [
        ("circle_why", "why 1.0", 4),
        ("circle_why_json", "why 2.0 --json", 4),
        ("circle_locks", "locks", 0),
        ("circle_doctor", "doctor", 3),
        ("circle_doctor_json", "doctor --json", 3),
        ("circle_ls", "ls rule:deadlock", 0),
        ("circle_show", "show 1.0", 0),
        ("circle_export", "export 1.0", 0),
    ] {
        must_print(&place, name, arguments, code)?;
    }
    Ok(())
}

#[test]
fn an_export_shows_values_only_if_asked_for() -> Outcome {
    let place = made(of_each)?;
    let redacted = look("export --all", &place.journal)?;
    let whole = look("export --all --payload", &place.journal)?;
    assert_eq!((redacted.code, whole.code), (Some(0), Some(0)));
    // "approval" is in a payload, as bytes, and in the sentence of one that waits for it.
    let payload: String = "Spawns".bytes().map(|byte| format!("{byte:02x}")).collect();
    assert!(!redacted.out.contains(&payload) && whole.out.contains(&payload));
    let mut families = 0;
    for line in whole.out.lines() {
        let document: Value = serde_json::from_str(line)?;
        if document.get("type").is_some_and(|kind| kind == "family") {
            let export: procession::offline::FamilyExport = serde_json::from_value(document)?;
            assert!(export.whole && export.unreadable.is_empty());
            families += 1;
        }
    }
    assert_eq!(families, 7);
    Ok(())
}

#[test]
fn a_look_leaves_no_trace() -> Outcome {
    let place = made(of_each)?;
    let before = files(&place.journal)?;
    for verb in [
        "ls",
        "show 1.0",
        "tree 5.0",
        "history 1.0",
        "why 4.0",
        "locks",
        "limits",
        "doctor",
        "export 1.0",
    ] {
        // A failure that nobody has acknowledged needs somebody.
        let code = if verb == "doctor" { 3 } else { 0 };
        assert_eq!(look(verb, &place.journal)?.code, Some(code), "{verb}");
        assert!(files(&place.journal)? == before, "{verb} has changed the directory");
    }
    Ok(())
}

/// What a directory holds, and when each file was written.
pub(crate) fn files(root: &Path) -> Outcome<BTreeMap<PathBuf, (SystemTime, Vec<u8>)>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let content = match entry.file_type()?.is_dir() {
                true => {
                    folders.push(entry.path());
                    Vec::new()
                }
                false => fs::read(entry.path())?,
            };
            files.insert(entry.path(), (entry.metadata()?.modified()?, content));
        }
    }
    Ok(files)
}

//! `export --payload`: users' data as JSON beside the family as it is stored, the same of either source, and what an
//! import makes of it.

use std::collections::BTreeSet;
use std::path::Path;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::Outcome;
use crate::golden::made;
use crate::import::empty;
use crate::journal::{Does, Running, of_each, of_sets};
use crate::remote::Canned;
use crate::run::{look, procession};
use crate::site::{Site, Time, all};

/// Bytes, which JSON cannot express.
struct Bytes(&'static [u8]);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

/// One that has ended, and one to which two signals were sent.
fn of_signals(place: &Path) -> Outcome {
    actix_rt::System::new().block_on(async {
        let running = Running::start(place).await?;
        running.submit(None, Does::Ends, "done").await?;
        let waits = running.submit(None, Does::Waits("go".into()), "waits").await?;
        running.executor.signal(waits, "paid", &json!({ "amount": 7 })).await?;
        running.executor.signal(waits, "photo", &Bytes(&[0xff, 0x00])).await?;
        running.leave().await
    })
}

/// Reads the documents that were printed, one of each line.
fn documents(out: &str) -> Outcome<Vec<Value>> {
    Ok(out.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
}

/// Returns those of one type.
fn of_type<'d>(documents: &'d [Value], name: &'d str) -> impl Iterator<Item = &'d Value> {
    documents.iter().filter(move |document| document["type"] == name)
}

#[test]
fn payloads_are_json_and_what_json_cannot_express_is_hexadecimal() -> Outcome {
    let place = made(of_signals)?;
    let said = look("export --all --payload", &place.journal)?;
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    let documents = documents(&said.out)?;
    let values: Vec<&Value> = of_type(&documents, "value").collect();
    let job = |does: Value| json!({ "lock": null, "does": does });
    let value = |id: &str, part: &str, bytes: u64, value: Value| json!({ "type": "value", "id": id, "part": part, "bytes": bytes, "value": value, "raw": null });
    assert_eq!(
        values,
        [
            &value("1.0", "payload", 17, job(json!("Ends"))),
            &value("1.0", "output", 5, json!("done")),
            &value("2.0", "payload", 22, job(json!({ "Waits": "go" }))),
        ]
    );
    let payloads: Vec<&Value> = of_type(&documents, "signal").map(|signal| &signal["payload"]).collect();
    assert_eq!(
        payloads,
        [
            &json!({ "size": 9, "value": { "amount": 7 }, "raw": null }),
            &json!({ "size": 4, "value": null, "raw": "c402ff00" }),
        ]
    );
    Ok(())
}

#[test]
fn without_the_option_there_are_sizes_alone() -> Outcome {
    let place = made(of_signals)?;
    let said = look("export --all", &place.journal)?;
    assert_eq!(said.code, Some(0), "{}", said.err);
    let documents = documents(&said.out)?;
    for document in of_type(&documents, "value") {
        assert!(document["bytes"].is_u64() && document.get("value").is_none() && document.get("raw").is_none());
    }
    for signal in of_type(&documents, "signal") {
        assert_eq!(signal["payload"]["redacted"], true, "{signal}");
    }
    assert!(
        !said.out.contains("amount") && !said.out.contains("ff00"),
        "{}",
        said.out
    );
    Ok(())
}

#[test]
fn notes_are_shown_and_each_value_once() -> Outcome {
    let place = made(of_sets)?;
    let said = look("export --all --payload", &place.journal)?;
    assert_eq!(said.code, Some(0), "{}", said.err);
    let documents = documents(&said.out)?;
    let notes: Vec<&Value> = of_type(&documents, "history")
        .filter_map(|entry| entry.get("note"))
        .collect();
    assert!(!notes.is_empty());
    for note in notes {
        assert!(note.get("redacted").is_none() && note.get("raw").is_some(), "{note}");
    }
    let mut seen = BTreeSet::new();
    for value in of_type(&documents, "value") {
        let which = (value["id"].to_string(), value["part"].to_string());
        assert!(seen.insert(which), "{value} is there twice");
    }
    // The row of a stream changes as nodes are appended, and the value that it began with is kept.
    assert!(said.out.contains("\"part\":\"submitted\""), "{}", said.out);
    Ok(())
}

#[test]
fn a_dashboard_gives_what_a_closed_journal_gives() -> Outcome {
    for make in [of_each, of_signals] {
        let place = made(make)?;
        let closed = look("export 2.0 --payload", &place.journal)?;
        let site = Site::open(&place.journal, Time::Still, all)?;
        let open = site.run("export 2.0 --payload --reason report")?;
        assert_eq!(
            (closed.code, open.code),
            (Some(0), Some(0)),
            "{}{}",
            closed.err,
            open.err
        );
        assert_eq!(open.out, closed.out);
    }
    Ok(())
}

#[test]
fn what_was_imported_is_exported_with_the_same_payloads() -> Outcome {
    let (from, to) = (made(of_signals)?, made(empty)?);
    let exported = look("export 2.0 --payload", &from.journal)?;
    let file = from.journal.with_file_name("family.jsonl");
    std::fs::write(&file, &exported.out)?;
    let (file, data) = (file.to_str(), to.journal.to_str());
    let (file, data) = (file.ok_or("not UTF-8")?, data.ok_or("not UTF-8")?);
    let imported = procession([
        "import", file, "--data", data, "--who", "ann", "--reason", "look", "--yes",
    ])?;
    assert_eq!(imported.code, Some(0), "{}", imported.err);
    let again = look("export 2.0 --payload", &to.journal)?;
    let (before, after) = (documents(&exported.out)?, documents(&again.out)?);
    for name in ["history", "signal", "value"] {
        let (before, after): (Vec<_>, Vec<_>) = (of_type(&before, name).collect(), of_type(&after, name).collect());
        assert!(
            !before.is_empty() && before == after,
            "{name}: {before:?} became {after:?}"
        );
    }
    Ok(())
}

/// The answers about one procedure without signals or values, whose row has these revisions.
fn rows_of(revisions: [&str; 2]) -> Vec<String> {
    let row =
        |revision: &str| json!({ "items": [{ "id": "2.0", "depth": 0, "revision": revision }], "truncated": false });
    let [before, after] = revisions;
    let none = json!({ "items": [], "cursor": null });
    let replies = [row(before), none.clone(), none, json!({}), row(after)];
    replies.iter().map(|reply| Canned::json(200, reply)).collect()
}

#[test]
fn a_family_that_goes_on_while_it_is_read_is_said_to_be_torn() -> Outcome {
    let torn = "the family of 2.0 went on while it was read";
    for (revisions, is_torn) in [(["7", "8"], true), (["7", "7"], false)] {
        let site = Canned::open(rows_of(revisions))?;
        let said = site.run("export 2.0")?;
        assert_eq!(said.code, Some(if is_torn { 3 } else { 0 }), "{}", said.err);
        assert_eq!(said.err.contains(torn), is_torn, "{}", said.err);
        let asked = site.asked()?;
        assert!(
            asked.last().is_some_and(|last| last.contains("/procedures/2.0/tree")),
            "{asked:?}"
        );
    }
    let place = made(of_signals)?;
    let said = look("export 2.0 --payload", &place.journal)?;
    let documents = documents(&said.out)?;
    let stored = of_type(&documents, "family").next().ok_or("it is as it is stored")?;
    for whole in [true, false] {
        let mut export = stored.clone();
        export["whole"] = Value::from(whole);
        let site = Canned::open(vec![Canned::json(200, &json!({ "export": export }))])?;
        let said = site.run("export 2.0 --payload --reason report")?;
        assert_eq!(said.code, Some(if whole { 0 } else { 3 }), "{}", said.err);
        assert_eq!(said.err.contains(torn), !whole, "{}", said.err);
    }
    Ok(())
}

#[test]
fn an_export_of_all_of_an_engine_says_that_it_is_of_no_one_moment() -> Outcome {
    let place = made(of_each)?;
    let site = Site::open(&place.journal, Time::Still, all)?;
    let said = site.run("export --all")?;
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.err.contains("no two need be of one moment"), "{}", said.err);
    let closed = look("export --all", &made(of_each)?.journal)?;
    assert_eq!((closed.code, closed.err.as_str()), (Some(0), ""));
    Ok(())
}

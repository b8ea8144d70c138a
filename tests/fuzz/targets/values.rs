//! Every engine value that stands on disk, the user's values, the keys, and a commit
//! as the embedded store keeps it: what decodes is the same when it is encoded and decoded again.

use std::collections::BTreeMap;
use std::fmt::Debug;

use procession::ProcedureId;
use procession::procedure::Timestamp;
use procession::status::ListFilter;
use procession_actors::journal::{codec, keys};
use procession_actors::testkit::format;
use procession_kernel::{Epoch, EventName, Key, LimitKey, Record};
use serde::{Deserialize, Serialize};

use super::Checked;

/// Something that users store.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Order {
    name: String,
    items: Vec<Item>,
    notes: BTreeMap<String, Option<u64>>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Item {
    Text(String),
    Bytes(Vec<u8>),
    Pair(u8, i64),
    Within(Box<Item>),
}

/// The first byte says as what the rest is read.
pub(crate) fn check(bytes: &[u8]) -> Checked {
    let Some((what, bytes)) = bytes.split_first() else {
        return Ok(());
    };
    let id = ProcedureId::new(7, 3);
    match what % 14 {
        0 => row(id, bytes),
        1 => same(
            bytes,
            |bytes| format::history(7, 3, bytes),
            |entry| Record::History(Box::new(entry.clone())),
        ),
        2 => same(bytes, format::signal, |(entry, payload)| {
            Record::Signal(id, 1, entry.clone(), payload.clone())
        }),
        3 => same(bytes, format::key_entry, |entry| {
            Record::Key(Key::from("k"), entry.clone())
        }),
        4 => same(
            bytes,
            |bytes| format::audit(5, bytes),
            |entry| Record::Audit(Box::new(entry.clone())),
        ),
        5 => same(bytes, format::pause, |what| Record::Pause(what.clone(), true)),
        6 => same(bytes, format::started, |(epoch, deaths)| {
            Record::Started(*epoch, *deaths)
        }),
        7 => same(bytes, format::limit, |limit| Record::Limit(LimitKey::from("l"), *limit)),
        8 => users(bytes),
        9 => {
            drop(codec::describe(bytes));
            Ok(())
        }
        10 => key(bytes),
        11 => {
            format::row(id, bytes).ok();
            Ok(())
        }
        12 => {
            let again = format::commit(bytes);
            assert!(again.is_none_or(|again| again == bytes));
            Ok(())
        }
        _ => same(
            bytes,
            |bytes| format::labels(id, bytes),
            |labels| Record::Labels(id, labels.clone()),
        ),
    }
}

/// A row is also shown, and looked for.
fn row(id: ProcedureId, bytes: &[u8]) -> Checked {
    same(
        bytes,
        |bytes| format::row(id, bytes),
        |row| Record::Row(Box::new(row.clone())),
    )?;
    if let Ok(row) = format::row(id, bytes) {
        let filter = ListFilter {
            live_only: bytes.len().is_multiple_of(2),
            kind: Some(row.kind.clone()),
            state: Some(row.state),
            labels: row.labels.iter().cloned().collect(),
        };
        assert_eq!(
            format::admits(&filter, &row),
            bytes.len() % 2 == 1 || row.ended.is_none()
        );
        let told = format!(
            "{} {} {:?} {}",
            row.state,
            row.since,
            row.wait,
            codec::describe(row.stage.as_slice())
        );
        assert!(!told.is_empty());
        procession_kernel::check_rows(&[row]).ok();
    }
    Ok(())
}

/// What can be read is written so that the same is read again.
fn same<T: PartialEq + Debug, E>(
    bytes: &[u8],
    read: impl Fn(&[u8]) -> Result<T, E>,
    record: impl Fn(&T) -> Record,
) -> Checked {
    let Ok(value) = read(bytes) else { return Ok(()) };
    let batch = format::writes(&[record(&value)])?;
    let again = batch
        .writes()
        .find_map(|write| write.value.and_then(|bytes| read(bytes).ok()));
    assert_eq!(again.as_ref(), Some(&value));
    Ok(())
}

fn users(bytes: &[u8]) -> Checked {
    let Ok(order) = codec::decode_user::<Order>(bytes) else {
        return Ok(());
    };
    let written = codec::encode_user(&order)?;
    let again: Order = codec::decode_user(written.as_slice())?;
    assert_eq!(again, order);
    Ok(())
}

fn key(bytes: &[u8]) -> Checked {
    if let Some(id) = keys::parse_procedure(bytes) {
        assert!(bytes.starts_with(&keys::procedure(id)));
    }
    if let Some((id, number, name)) = keys::parse_signal(bytes) {
        let name = EventName::from(name);
        assert_eq!(keys::signal(id, number, name.as_str()), bytes);
    }
    if let Some((ended, family)) = keys::parse_failure(bytes) {
        assert_eq!(bytes, keys::failure(ended, family));
    }
    if let Some((due, family)) = keys::parse_finished(bytes) {
        assert!(bytes.starts_with(&keys::finished(due, family)));
        assert!(due.after(std::time::Duration::MAX) >= due && Timestamp::default().since(due).is_zero());
        assert!(Epoch(family).to_string().parse() == Ok(family) && due.to_string().ends_with('Z'));
    }
    match keys::after_prefix(bytes) {
        Some(after) => assert!(after.as_slice() > bytes && !after.starts_with(bytes)),
        None => assert!(bytes.iter().all(|byte| *byte == u8::MAX)),
    }
    Ok(())
}

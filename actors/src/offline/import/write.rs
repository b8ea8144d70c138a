//! The one commit of an import: rows, values, index, key, numbers and the audit entry.

use procession_kernel::{
    AUDIT_KEPT, Act, AuditEntry, FailureEntry, Labels, OperatorRequest, Record, Rules, Seq, Timestamp,
};

use super::content::Content;
use super::root;
use super::settle::Settled;
use super::target::Target;
use crate::error::{CodecError, ImportError, ReadError};
use crate::journal::{Batch, Space, encode, keys};

/// Refuses a request that is too long for the audit log.
pub(super) fn check_by(rules: &Rules, by: &OperatorRequest) -> Result<(), ImportError> {
    let limit = rules.bounds.name;
    let key = by.key.as_ref().map_or(0, |key| key.as_str().len());
    let sizes = [by.who.len(), by.why.len(), key];
    match sizes.into_iter().find(|size| *size > limit) {
        Some(size) => Err(ImportError::TooLong { size, limit }),
        None => Ok(()),
    }
}

/// Creates the commit, and returns the number of its audit entry.
pub(super) async fn batch(
    target: &Target<'_>,
    settled: &Settled,
    by: &OperatorRequest,
    now: Timestamp,
) -> Result<(Batch, u64), ImportError> {
    let content = &settled.content;
    let mut batch = Batch::new(target.loaded.epoch);
    let (oldest, number) = target.loaded.kernel.audited();
    let families = target.families().await?;
    let mut records: Vec<Record> = content
        .rows
        .iter()
        .map(|row| Record::Row(Box::new(row.clone())))
        .collect();
    // Rows that inherit labels name the entry of another.
    let own = content
        .rows
        .iter()
        .filter(|row| row.labels.entry() == Some(row.id.member));
    for row in own {
        records.push(Record::Labels(row.id, Labels::clone(&row.labels)));
        records.push(Record::Labelled(content.family, Labels::clone(&row.labels)));
    }
    records.push(match settled.due {
        Some(due) => Record::FamilyEnded(content.family, due),
        None => Record::FamilyBegan(content.family),
    });
    records.extend(failure(content).map(|failure| Record::FailureListed(Box::new(failure))));
    records.push(Record::FamiliesReserved(families.max(content.family + 1)));
    let act = Act::Import(content.family);
    records.push(Record::Audit(Box::new(AuditEntry {
        number,
        at: now,
        who: by.who.clone(),
        why: by.why.clone(),
        words: act.to_string(),
        target: Some(root(content.family)),
        changes: Vec::new(),
        changed: u32::try_from(content.rows.len()).unwrap_or(u32::MAX),
        key: by.key.clone(),
        digest: None,
        act: Some(act),
        abort: None,
        submitted: None,
        reach: None,
    })));
    if number - oldest >= AUDIT_KEPT as u64 {
        records.push(Record::AuditDropped(oldest));
    }
    let value_bytes = records.iter().map(Record::value_bytes).sum();
    encode::make_room(&mut batch, records.len(), value_bytes);
    for record in &records {
        encode::write(&mut batch, record).map_err(ReadError::from)?;
    }
    for (space, key, value) in &content.raw {
        batch.put(space.clone(), key.as_slice(), value.as_slice());
    }
    write_key(target, settled, &mut batch).await?;
    batch.advance_to(content.rows.first().map_or(Seq::default(), |root| root.revision));
    let refused = batch.writes().find_map(|write| target.reader.bounds().refusal(&write));
    match refused {
        Some(why) => Err(ImportError::Unusable {
            family: content.family,
            why,
        }),
        None => Ok((batch, number)),
    }
}

/// Returns the failure of a family that nobody had acknowledged when it was exported.
fn failure(content: &Content) -> Option<FailureEntry> {
    let root = content.rows.first().filter(|_| content.is_failure)?;
    let origin = root.rare().cause.as_ref().map(|cause| cause.origin);
    let origin = origin.and_then(|origin| content.rows.iter().find(|row| row.id == origin));
    FailureEntry::of(root, origin.map(|origin| &origin.kind))
}

/// Writes the idempotency key. An entry that outlived an earlier copy of the family is due for eviction here; that is
/// cancelled, since the key stands for the family again.
async fn write_key(target: &Target<'_>, settled: &Settled, batch: &mut Batch) -> Result<(), ImportError> {
    let Some((key, value)) = &settled.content.key else {
        return Ok(());
    };
    let left = target.key_entry(key).await?;
    if let Some(until) = left.and_then(|entry| entry.until) {
        batch.delete(Space::Finished, &keys::finished(until, settled.content.family));
    }
    batch.put(Space::Keys, key.as_str().as_bytes(), value.as_slice());
    Ok(())
}

impl From<CodecError> for ImportError {
    fn from(error: CodecError) -> Self {
        Self::Read(ReadError::from(error))
    }
}

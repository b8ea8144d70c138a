//! Reads a procedure's value as it is committed, and decodes it as the type that runs it.

use procession_kernel::{KindRules, ProcedureId, Row};

use crate::error::{CodecError, ReadError};
use crate::guard::guarded;
use crate::journal::keys::PAYLOAD;
use crate::journal::{Reader, codec};
use crate::procedure::Procedure;
use crate::upgrade::Old;

/// Reads a value, live or ended. Returns `None` if the journal does not know the procedure.
pub(crate) async fn read<P: Procedure>(reader: &Reader, id: ProcedureId) -> Result<Option<P>, ReadError> {
    loop {
        let Some((row, Some(bytes))) = reader.row_with(id, PAYLOAD).await? else {
            return Ok(None);
        };
        // A commit between the reads of row and value may have stored the value as upgraded. It does so once, so the
        // loop ends.
        if row.version < P::VERSION && reader.row(id).await?.is_some_and(|now| now.version != row.version) {
            continue;
        }
        return Ok(Some(decode::<P>(&row, &bytes)?));
    }
}

/// Decodes the value of a row; an older one is upgraded, and not stored.
fn decode<P: Procedure>(row: &Row, bytes: &[u8]) -> Result<P, CodecError> {
    let rules = KindRules {
        oldest: P::OLDEST,
        ..KindRules::new(P::VERSION)
    };
    rules.check_version(&row.kind, row.version).map_err(unreadable)?;
    let value: P = if row.version < P::VERSION {
        let upgraded = guarded("upgrade", || P::upgrade(row.version, Old::new(bytes))).map_err(unreadable)?;
        upgraded.map_err(|error| unreadable(format!("version {}: {}", row.version, error.text())))?
    } else {
        guarded("Deserialize", || codec::decode_user(bytes)).map_err(unreadable)??
    };
    // Types may look alike when encoded, and their kinds tell them apart.
    let kind = guarded("kind", || value.kind()).map_err(unreadable)?;
    if kind != row.kind {
        return Err(unreadable(format!(
            "{} is of the kind \"{}\", and the type asked for is of the kind \"{kind}\"",
            row.id, row.kind
        )));
    }
    Ok(value)
}

fn unreadable(why: String) -> CodecError {
    CodecError {
        what: "the stored value cannot be read",
        why,
    }
}

//! One group of reads, done one after another in one job of the reader.

use procession_kernel::{Blob, ProcedureId, Wake};

use crate::context::{Signal, Woken};
use crate::error::{ReadError, StoreError};
use crate::journal::encode::StoredSignal;
use crate::journal::keys::{self, OUTPUT, PAYLOAD};
use crate::journal::reader::{PAGE, decode_row};
use crate::journal::store::Scan;
use crate::journal::{JournalStore, Reader, Space, codec};
use crate::step::ChildOutcome;

/// The inputs that a call needs.
pub(in crate::supervisor::dispatch) struct InputRequest {
    pub(in crate::supervisor::dispatch) id: ProcedureId,
    /// `true` if the procedure's value is needed, because no actor has it.
    pub(in crate::supervisor::dispatch) payload: bool,
    /// What woke the procedure, or the children that its join rule is asked about.
    pub(in crate::supervisor::dispatch) wake: Option<Wake>,
    /// The children as they are on disk, if that is known. An output that is missing here is read.
    pub(in crate::supervisor::dispatch) children: Option<Vec<ChildOutcome>>,
    /// The siblings that the rule of its gate is asked about.
    pub(in crate::supervisor::dispatch) siblings: Vec<ProcedureId>,
}

/// The inputs that were read for a call.
pub(in crate::supervisor) struct CallInputs {
    pub(in crate::supervisor::dispatch) payload: Option<Blob>,
    pub(in crate::supervisor::dispatch) woken: Woken,
}

/// Reads the inputs of all these calls. Returns one result per call, in the same order.
pub(super) async fn read(reader: &Reader, requests: Vec<InputRequest>) -> Vec<Result<CallInputs, ReadError>> {
    let count = requests.len();
    let all = reader.run(move |store| {
        Box::pin(async move {
            let mut found = Vec::with_capacity(requests.len());
            for request in requests {
                found.push(find(store, request).await);
            }
            Ok(found)
        })
    });
    all.await
        .unwrap_or_else(|error| (0..count).map(|_| Err(error.clone().into())).collect())
}

async fn find(store: &dyn JournalStore, request: InputRequest) -> Result<CallInputs, ReadError> {
    let InputRequest {
        id,
        payload,
        wake,
        children,
        siblings,
    } = request;
    let payload = if payload {
        Some(value_of(store, id).await?)
    } else {
        None
    };
    let woken = match wake {
        None if siblings.is_empty() => Woken::Plainly,
        None => Woken::Children(outcomes_of(store, siblings).await?),
        Some(Wake::Timeout(_) | Wake::Decision(None)) => Woken::Timeout,
        Some(Wake::Decision(Some(answer))) => Woken::Answer(answer),
        Some(Wake::Children(first, count)) => Woken::Children(match children {
            Some(known) => with_outputs(store, known).await?,
            None => outcomes(store, id, first, count).await?,
        }),
        Some(Wake::Signal(name, number)) => {
            let key = keys::signal(id, number, name.as_str());
            let (payload, last) = match store.get(Space::Signals, key).await? {
                Some(bytes) => {
                    let StoredSignal { entry, payload } = codec::decode(&bytes)?;
                    (payload, entry.last)
                }
                None => (Blob::default(), false),
            };
            let name = name.to_string();
            Woken::Signal(Box::new(Signal {
                name,
                number,
                last,
                payload,
            }))
        }
    };
    Ok(CallInputs { payload, woken })
}

async fn value_of(store: &dyn JournalStore, id: ProcedureId) -> Result<Blob, StoreError> {
    let bytes = store.get(Space::Payloads, keys::payload(id, PAYLOAD).to_vec()).await?;
    let missing = || StoreError::Damaged {
        place: "the store".to_owned(),
        why: format!("the payload of {id} is missing"),
    };
    Ok(Blob::from(bytes.ok_or_else(missing)?))
}

/// Reads the outputs that were not in memory, and adds them.
async fn with_outputs(
    store: &dyn JournalStore,
    mut children: Vec<ChildOutcome>,
) -> Result<Vec<ChildOutcome>, StoreError> {
    for child in children.iter_mut().filter(|child| child.output.is_none()) {
        child.output = output_of(store, child.id).await?;
    }
    Ok(children)
}

async fn output_of(store: &dyn JournalStore, id: ProcedureId) -> Result<Option<Blob>, StoreError> {
    let bytes = store.get(Space::Payloads, keys::payload(id, OUTPUT).to_vec()).await?;
    Ok(bytes.map(Blob::from))
}

/// Reads the rows of a list of children in one pass, and the output of each. Children that are gone are left out.
async fn outcomes(
    store: &dyn JournalStore,
    parent: ProcedureId,
    first: u32,
    count: u32,
) -> Result<Vec<ChildOutcome>, ReadError> {
    let mut outcomes = Vec::new();
    let mut next = first;
    let end = first.saturating_add(count);
    while next < end {
        let page = Scan {
            space: Space::Procedures,
            from: keys::procedure(ProcedureId::new(parent.family, next)).to_vec(),
            to: Some(keys::procedure(ProcedureId::new(parent.family, end)).to_vec()),
            limit: PAGE,
        };
        let rows = store.scan(page).await?;
        next = end;
        let full = rows.len() == PAGE;
        for (key, bytes) in rows {
            let Some(id) = keys::parse_row(&key) else {
                continue;
            };
            outcomes.push(outcome(store, id, &bytes).await?);
            next = if full { id.member.saturating_add(1) } else { end };
        }
    }
    Ok(outcomes)
}

/// Reads the rows of these siblings, and the output of each.
async fn outcomes_of(store: &dyn JournalStore, siblings: Vec<ProcedureId>) -> Result<Vec<ChildOutcome>, ReadError> {
    let mut outcomes = Vec::with_capacity(siblings.len());
    for id in siblings {
        let key = keys::procedure(id).to_vec();
        if let Some(bytes) = store.get(Space::Procedures, key).await? {
            outcomes.push(outcome(store, id, &bytes).await?);
        }
    }
    Ok(outcomes)
}

async fn outcome(store: &dyn JournalStore, id: ProcedureId, row: &[u8]) -> Result<ChildOutcome, ReadError> {
    let row = decode_row(id, row)?.without_labels();
    let output = output_of(store, id).await?;
    Ok(ChildOutcome::of(&row, output))
}

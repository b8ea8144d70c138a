//! The state of a family after its import: paused at its root with nothing running, or ended with its retention
//! restarted.

use procession_kernel::{Epoch, Kernel, Row, Rules, Seq, Timestamp, WaitReason};

use super::content::Content;
use super::{Imported, KEPT_AT_LEAST, named};
use crate::journal::Space;
use crate::journal::reader::decode_entry;
use crate::supervisor::dispatch::rollback_stacks::holes;
use crate::view::Status;

/// A family as it is written to the journal.
pub(super) struct Settled {
    pub(super) content: Content,
    pub(super) due: Option<Timestamp>,
    warnings: Vec<String>,
}

impl Settled {
    pub(super) fn of(mut content: Content, seq: Seq, now: Timestamp) -> Result<Self, String> {
        let mut warnings = Vec::new();
        let mut in_doubt = Vec::new();
        for row in &mut content.rows {
            row.revision = seq;
            // In this journal the id of its receiver may be another procedure's.
            row.clear_rare(|rare| rare.end_signal = None);
            // It waits in this journal from now on: a broadcast that is under way does not address it, and others wait
            // for locks and permits before it.
            row.waits_after = match &row.wait {
                Some(WaitReason::Event(..) | WaitReason::Lock(_) | WaitReason::Permit(_)) => seq,
                Some(_) | None => Seq::default(),
            };
            if row.in_flight.take().is_some() {
                // It may have run in part, here or where it was exported. It keeps what it holds, and runs to its
                // commit before any of it is undone.
                row.wait = Some(WaitReason::Suspect);
                row.repeated = row.repeated.saturating_add(1);
                row.ready = None;
                row.since = now;
                in_doubt.push(row.id.to_string());
            }
        }
        let due = if content.live {
            pause(&mut content.rows);
            None
        } else {
            Some(keep(&mut content.rows, now))
        };
        let kernel = check(&content, seq)?;
        if !in_doubt.is_empty() {
            warnings.push(format!(
                "a stage of {} was running: it may be partly done, and runs again, one after the other, when the family \
                 is resumed",
                named(in_doubt)
            ));
        }
        warnings.extend(broken_rollbacks(&kernel, &content)?);
        warnings.extend(of_live(&content));
        Ok(Self { content, due, warnings })
    }

    /// Returns the description of the import.
    pub(super) fn told(&self) -> Imported {
        Imported {
            family: self.content.family,
            number: None,
            live: self.content.live,
            due: self.due,
            procedures: self.content.rows.iter().map(Status::of).collect(),
            history: self.content.history,
            signals: self.content.signals.len(),
            warnings: self.warnings.clone(),
        }
    }
}

fn pause(rows: &mut [Row]) {
    if let Some(root) = rows.first_mut() {
        root.rare_mut().paused = true;
    }
}

/// Keeps the result for its full retention after the end, counted from now.
fn keep(rows: &mut [Row], now: Timestamp) -> Timestamp {
    let ended = rows.iter().filter_map(|row| row.ended).max().unwrap_or_default();
    let due = rows.first().and_then(|root| root.due).unwrap_or_default();
    let due = now.after(due.since(ended).max(KEPT_AT_LEAST));
    if let Some(root) = rows.first_mut() {
        root.due = Some(due);
    }
    due
}

/// Checks the family as a start would, in a separate kernel, and returns that.
fn check(content: &Content, seq: Seq) -> Result<Kernel, String> {
    let mut kernel = Kernel::new(Rules::default(), Epoch::default(), 0);
    kernel.continue_after(seq);
    let rows = content.rows.iter().cloned().map(Box::new).collect();
    let taken = kernel.take_in(content.family, rows, &content.signals);
    taken.map(|()| kernel).map_err(|rejected| rejected.why)
}

/// Returns the warnings about rollbacks that cannot go on with the history that the family brings. An engine may hold such a
/// family, so it is no reason to refuse it.
fn broken_rollbacks(kernel: &Kernel, content: &Content) -> Result<Vec<String>, String> {
    let entries = content.raw.iter().filter(|(space, ..)| *space == Space::History);
    let entries = entries.map(|(_, key, value)| decode_entry(key.as_slice(), value.as_slice()));
    let entries = entries.filter_map(Result::transpose).collect::<Result<Vec<_>, _>>();
    let entries = entries.map_err(|error| error.to_string())?;
    let holes = holes::of_family(kernel, content.family, &entries).into_iter();
    let warning = |(id, hole)| {
        format!(
            "the rollback of {id} cannot go on ({hole}): it stops there once the family is resumed, and waits for an \
             operator; import an export from before the damage, if there is one"
        )
    };
    Ok(holes.map(warning).collect())
}

/// Returns the warnings for a family that may continue some day.
fn of_live(content: &Content) -> Vec<String> {
    if !content.live {
        return Vec::new();
    }
    let mut kinds: Vec<String> = content
        .rows
        .iter()
        .filter(|row| !row.is_over())
        .map(|row| format!("{} (version {})", row.kind, row.version))
        .collect();
    kinds.sort_unstable();
    kinds.dedup();
    let mut warnings = vec![
        format!("a start without the code of {} quarantines it", named(kinds)),
        "resume it only if it lives nowhere else: an export is a copy".to_owned(),
        "user data that its stages wrote, and their effects outside the engine, are not included".to_owned(),
    ];
    let cleaning = content.rows.iter().filter(|row| row.rare().cleaning);
    let cleaning: Vec<String> = cleaning.map(|row| row.id.to_string()).collect();
    if !cleaning.is_empty() {
        warnings.push(format!(
            "the clean-up of {} runs at the next start, paused or not",
            named(cleaning)
        ));
    }
    warnings
}

//! Runs a pure stage again on copies of its value, for the test kit: a pure stage leaves the same each time.

use std::time::{Duration, Instant};

use procession_kernel::{Blob, Key, Seq, StageEffects, StageEnded, StageOutcome, UserWrite};

use super::{Step, failure, step_outcome};
use crate::context::{Call, Host, PureContext, StageContext};
use crate::error::CodecError;
use crate::fault_injection::seen::Called;
use crate::guard::guarded;
use crate::journal::codec;
use crate::procedure::Procedure;
use crate::stage_error::StageError;

/// How often a stage is computed. The machine may interrupt one computation, and hardly all of them.
const COMPUTATIONS: usize = 5;
/// How long a pure stage may hold its worker.
const LONGEST: Duration = Duration::from_millis(1);

/// Computes the stage of a call several times, each time on a copy of the value as it is, and tells the test kit whether
/// the results differ, or even the fastest took too long.
pub(super) fn examine<P: Procedure>(host: &Host, call: &Call, value: &P, cx: &StageContext<'_, P>) {
    let Some(interceptor) = host.interceptor.as_ref().filter(|asks| asks.examines_pure_stages()) else {
        return;
    };
    let stage = codec::decode_user::<P::Stage>(call.stage.stage.as_slice());
    let called = Called {
        id: call.stage.id,
        kind: call.stage.kind.clone(),
        stage: stage.map_or_else(|_| "?".to_owned(), |stage| format!("{stage:?}")),
        visit: call.stage.visit,
        attempt: call.stage.attempt,
        undo: false,
    };
    let found = found(call, value, cx).unwrap_or_else(|error| Some(error.to_string()));
    interceptor.examined(&called, found.as_deref());
}

/// Returns what is not pure about the stage, if anything is.
fn found<P: Procedure>(call: &Call, value: &P, cx: &StageContext<'_, P>) -> Result<Option<String>, CodecError> {
    let before = codec::encode_user(value)?;
    let (mut first, mut fastest) = (None, Duration::MAX);
    for _ in 0..COMPUTATIONS {
        let mut copy: P = codec::decode_user(before.as_slice())?;
        let stage: P::Stage = codec::decode_user(call.stage.stage.as_slice())?;
        let mut pure = PureContext::of(cx);
        let begun = now();
        let step = guarded("compute", || copy.compute(stage, &mut pure));
        fastest = fastest.min(begun.elapsed());
        let left = left_by(call, &copy, step, pure)?;
        match &first {
            None => first = Some(left),
            Some(first) => {
                if let Some(what) = difference(first, &left) {
                    return Ok(Some(format!("computed again from the same value, it {what}")));
                }
            }
        }
    }
    let is_slow = fastest > LONGEST;
    Ok(
        is_slow
            .then(|| format!("the fastest of {COMPUTATIONS} computations took {fastest:?}; {LONGEST:?} are allowed")),
    )
}

/// Returns what a computation leaves: the report, with the value whether it has changed or not. A failure leaves itself and
/// its note alone.
fn left_by<P: Procedure>(
    call: &Call,
    value: &P,
    step: Result<Result<Step<P>, StageError>, String>,
    pure: PureContext<'_, P>,
) -> Result<StageEnded, CodecError> {
    let has_succeeded = matches!(step, Ok(Ok(_)));
    let outcome = match step {
        Ok(Ok(step)) => step_outcome(step)?,
        Ok(Err(error)) => failure(error),
        Err(panic) => StageOutcome::Panicked(panic),
    };
    let (id, now) = (call.stage.id, call.stage.ready);
    let mut report = StageEnded::new(id, Seq::default(), call.fence.epoch, now, outcome);
    let mut done = pure.into_done();
    report.note = done.note.take();
    if has_succeeded {
        done.leave_in(&mut report);
        report.payload = Some(codec::encode_user(value)?);
    }
    Ok(report)
}

/// Returns how two computations differ. The entries of a map that has no order of its own may come in another one.
fn difference(first: &StageEnded, second: &StageEnded) -> Option<&'static str> {
    let bytes = |blob: &Option<Blob>| blob.as_ref().map(|blob| sorted(blob.as_slice()));
    if bytes(&first.payload) != bytes(&second.payload) {
        return Some("left another value");
    }
    if bytes(&first.note) != bytes(&second.note) {
        return Some("left another note");
    }
    if !outcomes_are_alike(&first.outcome, &second.outcome) {
        return Some("returned another step");
    }
    let (one, other) = (effects_of(first), effects_of(second));
    if !one.writes.iter().map(written).eq(other.writes.iter().map(written)) {
        return Some("wrote other user data");
    }
    let has_left_alike = one.submitted == other.submitted
        && one.signals == other.signals
        && one.children == other.children
        && first.nothing_to_undo == second.nothing_to_undo;
    (!has_left_alike).then_some("submitted, sent or added something else")
}

fn effects_of(report: &StageEnded) -> StageEffects {
    report.effects.as_deref().cloned().unwrap_or_default()
}

fn outcomes_are_alike(first: &StageOutcome, second: &StageOutcome) -> bool {
    match (first, second) {
        (StageOutcome::Next(one), StageOutcome::Next(other)) | (StageOutcome::Done(one), StageOutcome::Done(other)) => {
            sorted(one.as_slice()) == sorted(other.as_slice())
        }
        (one, other) => one == other,
    }
}

fn written(write: &UserWrite) -> (&Key, &[u8], Option<Vec<u8>>) {
    (&write.space, &write.key, write.value.as_deref().map(sorted))
}

/// The bytes without their order: a `HashMap` has another one each time that it was decoded.
fn sorted(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes.sort_unstable();
    bytes
}

#[expect(clippy::disallowed_methods, reason = "times user code, for a test of it")]
fn now() -> Instant {
    Instant::now()
}

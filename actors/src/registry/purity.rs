//! Runs a pure stage again on copies of its value, for the test kit: a pure stage leaves the same each time.

use std::time::{Duration, Instant};

use procession_kernel::{StageEnded, StageOutcome};

use super::{Step, step_outcome};
use crate::context::{Call, Host, PureContext, StageContext};
use crate::error::CodecError;
use crate::fault_injection::seen::{Called, StageInterceptor};
use crate::journal::codec;
use crate::procedure::Procedure;
use crate::stage_error::StageError;

/// How often a stage is computed. The machine may interrupt one computation, and hardly all of them.
const COMPUTATIONS: usize = 5;
/// How long a pure stage may hold its worker.
const LONGEST: Duration = Duration::from_millis(1);

/// Computes the stage of a call several times, each time on a copy of the value as it is, and tells the test kit if the
/// results differ, or if even the fastest took too long.
pub(super) fn examine<P: Procedure>(host: &Host, call: &Call, value: &P, cx: &StageContext<'_, P>) {
    let Some(interceptor) = host.interceptor.as_ref().filter(|asks| asks.examines_pure_stages()) else {
        return;
    };
    let found = found(call, value, cx);
    let stage = codec::decode_user::<P::Stage>(call.stage.stage.as_slice());
    let called = Called {
        id: call.stage.id,
        kind: call.stage.kind.clone(),
        stage: stage.map_or_else(|_| "?".to_owned(), |stage| format!("{stage:?}")),
        visit: call.stage.visit,
        attempt: call.stage.attempt,
        undo: false,
    };
    tell(&**interceptor, &called, found);
}

fn tell(interceptor: &dyn StageInterceptor, called: &Called, found: Result<Option<String>, CodecError>) {
    let why = found.unwrap_or_else(|error| Some(error.to_string()));
    interceptor.examined(called, why.as_deref());
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
        let step = copy.compute(stage, &mut pure);
        fastest = fastest.min(begun.elapsed());
        let left = left_by(call, &copy, step, pure)?;
        match &first {
            None => first = Some(left),
            Some(first) if *first == left => {}
            Some(first) => return Ok(Some(format!("it left {first:?} once, and then {left:?}"))),
        }
    }
    let is_slow = fastest > LONGEST;
    Ok(
        is_slow
            .then(|| format!("the fastest of {COMPUTATIONS} computations took {fastest:?}; {LONGEST:?} are allowed")),
    )
}

/// Returns what a computation leaves: the report, the value in it whether it has changed or not.
fn left_by<P: Procedure>(
    call: &Call,
    value: &P,
    step: Result<Step<P>, StageError>,
    pure: PureContext<'_, P>,
) -> Result<StageEnded, CodecError> {
    let outcome = match step {
        Ok(step) => step_outcome(step)?,
        Err(error) => StageOutcome::Fail(error.text().to_owned()),
    };
    let (id, now) = (call.stage.id, call.stage.ready);
    let mut report = StageEnded::new(id, Default::default(), call.fence.epoch, now, outcome);
    let mut done = pure.into_done();
    report.note = done.note.take();
    done.leave_in(&mut report);
    report.payload = Some(codec::encode_user(value)?);
    Ok(report)
}

#[expect(clippy::disallowed_methods, reason = "times user code, for a test of it")]
fn now() -> Instant {
    Instant::now()
}

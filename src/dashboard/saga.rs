//! Sagas: `procedures/{id}/saga`, the picture; and the verbs that answer all of a saga's members that rest.

use actix_web::web::{self, Data};
use actix_web::{HttpRequest, Scope};
use procession_actors::view::Status;
use procession_kernel::{OperatorRequest, ProcedureId, VerbName, WaitReason};
use serde_json::{Map, Value, json};

use super::access::Right;
use super::act::{Body, Request, Wish};
use super::params::id_of;
use super::problem::{Answer, Problem};
use super::procedure::Asked;
use super::redact::Part;
use super::routes::{read, write};
use super::show::words;
use super::state::{State, caller};
use crate::saga::{DecideError, Decided, Saga, SagaReader, Said, is_member};
use crate::views::ChangedView;

/// Changes, and members, that one answer lists.
const LISTED: usize = 100;

/// Adds the paths of sagas. They stand before those of other verbs, which have any name.
pub(super) fn paths(api: Scope) -> Scope {
    api.service(read("/procedures/{id}/saga").route(web::get().to(saga)))
        .service(write("/procedures/{id}/forward").route(web::post().to(forward)))
        .service(write("/procedures/{id}/skip").route(web::post().to(skip)))
}

async fn saga(request: HttpRequest, state: Data<State>) -> Answer {
    let asked = Asked::new(&request, &state, &[])?;
    let moment = state.moment()?;
    let row = asked.row().await?;
    must_be_saga(&row)?;
    let _turn = state.turns.take(&asked.grant).await?;
    let shown = |kind: &str, said: Said, text: &str| {
        let part = match said {
            Said::Error => Part::Error,
            Said::Question => Part::Question,
        };
        words(state.redact_text(kind, part, text, &asked.grant))
    };
    let mut picture = SagaReader::live(&state.executor, row.id).picture(shown).await?;
    if let Some(context) = picture.get_mut("context") {
        let redact = &state.redact;
        redact.redact(row.kind.as_str(), Part::Payload, context, &asked.grant);
    }
    state.reply(moment, picture)
}

fn must_be_saga(row: &Status) -> Result<(), Problem> {
    match is_member(row) {
        true => Ok(()),
        false => Err(Problem::other_sort(
            "saga",
            row.id,
            "`procedures?filter=kind:saga.NAME`",
        )),
    }
}

/// Refuses what would answer a saga that rests by other ways than a decision: an answer may say what needs another right, and
/// an end by hand leaves out what its states have done.
pub(super) async fn must_be_no_answer(
    state: &State,
    id: ProcedureId,
    verb: VerbName,
    wish: &Wish,
) -> Result<(), Problem> {
    let is_end = verb == VerbName::OverrideResult || (verb == VerbName::Bypass && wish.fails());
    if verb != VerbName::Decide && !is_end {
        return Ok(());
    }
    let row = state.engine().committed().status(id).await?;
    let rests = |row: &Status| is_member(row) && matches!(row.wait, Some(WaitReason::Decision(_)));
    match row.is_some_and(|row| rests(&row)) {
        true => Err(Problem::saga_rests(id)),
        false => Ok(()),
    }
}

async fn forward(request: HttpRequest, body: Body, state: Data<State>) -> Answer {
    caller(&request)?.need(Right::Operate)?;
    decide(&request, body, &state, async |saga, values, by| {
        saga.forward(&values.params, by).await
    })
    .await
}

async fn skip(request: HttpRequest, body: Body, state: Data<State>) -> Answer {
    caller(&request)?.need(Right::Repair)?;
    decide(&request, body, &state, async |saga, values, by| {
        saga.skip(&values.results, by).await
    })
    .await
}

/// What a body brings to lay over the context.
struct Values {
    params: Map<String, Value>,
    results: Map<String, Value>,
}

async fn decide(
    request: &HttpRequest,
    body: Body,
    state: &State,
    take: impl AsyncFnOnce(&Saga, Values, OperatorRequest) -> Result<Decided, DecideError>,
) -> Answer {
    let id = id_of(request)?;
    let asked = Request::read(request, body, &caller(request)?.0)?;
    asked.must_be_planned()?;
    state.can_tell()?;
    let is_dry = asked.by.dry_run;
    must_be_saga(&state.executor.status(id).await?)?;
    let (params, results) = (asked.wish.params, asked.wish.results);
    let saga = state.executor.saga(id);
    let decided = take(&saga, Values { params, results }, asked.by).await?;
    let operated = &decided.operated;
    let changes: Vec<ChangedView> = operated
        .iter()
        .flat_map(|one| &one.changes)
        .take(LISTED)
        .map(ChangedView::from)
        .collect();
    let members = decided.members.iter().take(LISTED);
    let members: Vec<Value> = members
        .map(|rest| json!({ "id": rest.id.to_string(), "state": rest.state }))
        .collect();
    let number = operated.iter().find_map(|one| one.number);
    let body = json!({
        "dry_run": is_dry,
        "revision": decided.revision.to_string(),
        "number": number.map(|number| number.to_string()),
        "changes": changes,
        "changed": operated.iter().map(|one| one.changed).sum::<u32>(),
        "abort": null,
        "plan": null,
        "members": members,
    });
    state.reply_acted(is_dry, body)
}

impl From<DecideError> for Problem {
    fn from(error: DecideError) -> Self {
        let text = error.to_string();
        match error {
            DecideError::Superseded => Self::superseded(),
            DecideError::NotResting { .. } | DecideError::CannotSkip { .. } => Self::not_now(&text),
            DecideError::Codec(_) => Self::request(text, "Send an object."),
            DecideError::Ask(error) => error.into(),
        }
    }
}

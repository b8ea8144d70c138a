//! `events`: what changes, as server-sent events. A stream reads on from its own place in the
//! ring of changes, so it has no queue of its own: one that is slow finds less there, or is told
//! to read anew, and holds up nobody.

mod follow;
mod reading;

use actix_web::http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName};
use actix_web::{HttpRequest, HttpResponse, web};
use std::time::Duration;

use super::model::Moment;
use super::params::Params;
use super::problem::{Answer, Problem};
use super::state::{State, viewer};
use follow::Follow;

pub(super) async fn events(request: HttpRequest, state: web::Data<State>) -> Answer {
    let grant = viewer(&request)?;
    let params = Params::of(&request, &["from", "filter", "name"])?;
    let filter = params.filter()?;
    let from = beginning(&request, &params)?;
    let newest = state.moment()?;
    let durable = state.engine().durable();
    // The reply to an act may be of a commit that is shown here only a moment later.
    let is_ahead = |at: Moment| at.epoch == newest.epoch && at.seq > newest.seq && at.seq <= durable;
    let from = from.map(|from| from.map(|at| if is_ahead(at) { newest } else { at }));
    if *state.closed.borrow() {
        return Err(Problem::closing());
    }
    let Some(place) = grant
        .who()
        .and_then(|who| state.streams.enter(who, params.text("name")))
    else {
        let remedy = "Close another one, or ask again later.";
        return Err(Problem::too_many(
            "Too many streams are open.",
            remedy,
            Duration::from_secs(5),
        ));
    };
    let follow = Follow::new(state.into_inner(), grant, filter, place, from.unwrap_or(Ok(newest)));
    let stream = futures::stream::unfold(follow, |mut follow| async move {
        let event = follow.next().await?;
        Some((Ok::<_, std::convert::Infallible>(event), follow))
    });
    Ok(HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, "text/event-stream"))
        .insert_header((CONTENT_ENCODING, "identity"))
        .insert_header((HeaderName::from_static("x-accel-buffering"), "no"))
        .streaming(stream))
}

/// Where a stream begins that goes on from somewhere; what cannot be read is nowhere in the ring.
fn beginning(request: &HttpRequest, params: &Params) -> Result<Option<Result<Moment, ()>>, Problem> {
    if let Some(last) = request.headers().get("last-event-id") {
        return Ok(Some(last.to_str().map_err(|_| ()).and_then(str::parse)));
    }
    let wrong = |()| Problem::request("\"from\" is the `as_of` of a reply.", "Correct it, or leave it out.");
    let from = params
        .text("from")
        .map(|from| from.parse::<Moment>().map_err(wrong))
        .transpose()?;
    Ok(from.map(Ok))
}

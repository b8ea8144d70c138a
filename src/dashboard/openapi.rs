//! `openapi.json`: the whole API as an OpenAPI document. It is written by hand; tests hold it
//! against the paths that are served and against the golden replies.

use actix_web::{HttpRequest, HttpResponse};

use super::params::Params;
use super::problem::Answer;
use super::state::viewer;

pub(super) async fn document(request: HttpRequest) -> Answer {
    viewer(&request)?;
    Params::of(&request, &[])?;
    Ok(HttpResponse::Ok()
        .content_type("application/json")
        .body(procession_page::OPENAPI))
}

//! The paths of the API and of the page, below wherever the host mounts it.

use actix_web::dev::{ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::middleware::from_fn;
use actix_web::web::{self, ServiceConfig};
use actix_web::{Error, HttpResponse, Resource, ResponseError};

use super::gate::gate;
use super::problem::Problem;
use super::state::State;
use super::{
    act, audit, charts, events, failures, find, flows, list, logs, me, openapi, page, procedure, stages, timeline,
    values, whole,
};

/// Longest body, in bytes.
pub(super) const BODY_MAX: usize = 64 * 1024;

/// Puts the API under `api/v1` of the scope that is configured, and the page everywhere else.
pub(super) fn configure(config: &mut ServiceConfig, state: &web::Data<State>) {
    let api = web::scope("/api/v1");
    #[cfg(feature = "saga")]
    let api = super::saga::paths(api);
    let api = api
        .app_data(state.clone())
        .app_data(web::PayloadConfig::new(BODY_MAX))
        .wrap(from_fn(gate))
        .service(read("/me").route(web::get().to(me::me)))
        .service(read("/attention").route(web::get().to(whole::attention)))
        .service(read("/limits").route(web::get().to(whole::limits)))
        .service(read("/locks").route(web::get().to(whole::locks)))
        .service(read("/kinds").route(web::get().to(whole::kinds)))
        .service(read("/kinds/{kind}/stages").route(web::get().to(stages::stages)))
        .service(read("/engine").route(web::get().to(whole::engine)))
        .service(read("/audit").route(web::get().to(audit::audit)))
        .service(read("/charts").route(web::get().to(charts::charts)))
        .service(read("/openapi.json").route(web::get().to(openapi::document)))
        .service(read("/events").route(web::get().to(events::events)))
        .service(read("/failures").route(web::get().to(failures::failures)))
        .service(read("/find").route(web::get().to(find::find)))
        .service(read("/flows").route(web::get().to(flows::flows)))
        .service(read("/procedures").route(web::get().to(list::list)))
        .service(read("/procedures/{id}").route(web::get().to(procedure::one)))
        .service(read("/procedures/{id}/tree").route(web::get().to(procedure::tree)))
        .service(read("/procedures/{id}/graph").route(web::get().to(flows::graph)))
        .service(read("/procedures/{id}/queue").route(web::get().to(flows::queue)))
        .service(read("/procedures/{id}/timeline").route(web::get().to(timeline::timeline)))
        .service(read("/procedures/{id}/history").route(web::get().to(procedure::history)))
        .service(read("/procedures/{id}/logs").route(web::get().to(logs::shown::logs)))
        .service(read("/procedures/{id}/values").route(web::get().to(values::values)))
        .service(read("/procedures/{id}/waits").route(web::get().to(procedure::waits)))
        .service(read("/procedures/{id}/bulk").route(web::get().to(act::bulk::progress)))
        .service(read("/procedures/{id}/signals").route(web::get().to(procedure::signals)))
        .service(write("/procedures/{id}/{verb}").route(web::post().to(act::procedure)))
        .service(write("/bulk/{verb}").route(web::post().to(act::bulk::begin)))
        .service(write("/kinds/{kind}/{verb}").route(web::post().to(act::many)))
        .service(write("/engine/{verb}").route(web::post().to(act::many)))
        .service(write("/limits/{key:.+}").route(web::post().to(act::limit)))
        .default_service(web::to(no_such_path));
    config.service(api).service(pages(state));
}

/// The page and its files: whatever else is below the mount.
fn pages(
    state: &web::Data<State>,
) -> Resource<
    impl ServiceFactory<ServiceRequest, Config = (), Response = ServiceResponse, Error = Error, InitError = ()> + use<>,
> {
    web::resource(["", "/{tail:.*}"])
        .app_data(state.clone())
        .wrap(from_fn(gate))
        .route(web::get().to(page::page))
        .route(web::head().to(page::page))
        .default_service(web::to(page::other_method))
}

/// A path that is read; any other method is refused in words.
pub(super) fn read(path: &str) -> Resource {
    web::resource(path).default_service(web::to(not_this_method))
}

/// A path by which something is changed.
pub(super) fn write(path: &str) -> Resource {
    web::resource(path).default_service(web::to(act::other_method))
}

async fn not_this_method() -> HttpResponse {
    Problem::method("GET").error_response()
}

async fn no_such_path() -> HttpResponse {
    Problem::no_such_path().error_response()
}

//! The dashboard behind the host's own login: who may look, and who may act.
//!
//! ```text
//! cargo run --example login
//! ```
//! `ann` may do everything, `bob` may look. The password of both is in `LOGIN_PASSWORD`, or else made up and printed.
//! The dashboard never asks who somebody is. A middleware of the host names the user in the request, and `access` says
//! what that user may do.
#![expect(clippy::print_stdout, reason = "an example talks")]

use std::error::Error;
use std::hash::{BuildHasher, RandomState};

use actix_web::dev::ServiceRequest;
use actix_web::{App, HttpMessage, HttpRequest, HttpServer, web};
use actix_web_httpauth::extractors::AuthenticationError;
use actix_web_httpauth::extractors::basic::BasicAuth;
use actix_web_httpauth::headers::www_authenticate::basic::Basic;
use actix_web_httpauth::middleware::HttpAuthentication;
use procession::Executor;
use procession::dashboard::{Dashboard, Grant};
use procession::procedure::Noop;

/// The user behind a request, as the login found it.
#[derive(Clone)]
struct User(String);

/// The password of both users. A real service asks its own store of users.
#[derive(Clone)]
struct Password(String);

impl Password {
    fn of_service() -> Self {
        Self(std::env::var("LOGIN_PASSWORD").unwrap_or_else(|_| {
            let made_up = RandomState::new().hash_one(std::process::id());
            format!("{made_up:x}")
        }))
    }
}

/// Names the user in the request, or refuses it.
async fn login(request: ServiceRequest, sent: BasicAuth) -> Result<ServiceRequest, (actix_web::Error, ServiceRequest)> {
    let is_known = matches!(sent.user_id(), "ann" | "bob");
    let password = request.app_data::<Password>().map(|password| password.0.as_str());
    if is_known && sent.password().is_some() && sent.password() == password {
        request.extensions_mut().insert(User(sent.user_id().to_owned()));
        return Ok(request);
    }
    let challenge = AuthenticationError::new(Basic::with_realm("procedures"));
    Err((challenge.into(), request))
}

/// What each user may do with procedures.
fn rights(request: &HttpRequest) -> Grant {
    match request.extensions().get::<User>() {
        Some(User(who)) if who == "ann" => Grant::All { who: who.clone() },
        Some(User(who)) => Grant::ReadOnly { who: who.clone() },
        None => Grant::Deny,
    }
}

#[actix_web::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let executor = Executor::builder("data/login").register::<Noop>(()).start().await?;
    executor.submit(Noop).key("something to look at").await?;
    // It is reached as localhost. One with a name of its own says so: `.hosts(["ops.example"])?`.
    let dashboard = Dashboard::builder(&executor).access(rights).start().await?;
    let password = Password::of_service();
    println!(
        "http://localhost:8080/ops, as ann or bob, with the password {}",
        password.0
    );
    HttpServer::new(move || {
        let scope = web::scope("/ops").wrap(HttpAuthentication::basic(login));
        App::new()
            .app_data(password.clone())
            .service(scope.configure(dashboard.routes()))
    })
    .workers(1)
    .bind(("127.0.0.1", 8080))?
    .run()
    .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use actix_web::http::StatusCode;
    use actix_web::http::header::AUTHORIZATION;
    use actix_web::test::{TestRequest, init_service};

    use super::*;

    /// `ann:right` and `bob:right`, and one with another password, as basic authentication sends them.
    const SENT: [(Option<&str>, StatusCode); 4] = [
        (Some("Basic YW5uOnJpZ2h0"), StatusCode::OK),
        (Some("Basic Ym9iOnJpZ2h0"), StatusCode::OK),
        (Some("Basic YW5uOndyb25n"), StatusCode::UNAUTHORIZED),
        (None, StatusCode::UNAUTHORIZED),
    ];

    #[actix_rt::test]
    async fn only_users_get_in() -> Result<(), Box<dyn Error>> {
        let directory = tempfile::tempdir()?;
        let executor = Executor::builder(directory.path().join("journal")).start().await?;
        let dashboard = Dashboard::builder(&executor).access(rights).start().await?;
        let scope = web::scope("/ops")
            .wrap(HttpAuthentication::basic(login))
            .configure(dashboard.routes());
        let app = init_service(App::new().app_data(Password("right".to_owned())).service(scope)).await;
        for (sent, expected) in SENT {
            let mut request = TestRequest::get()
                .uri("/ops/api/v1/me")
                .insert_header(("host", "localhost"));
            if let Some(sent) = sent {
                request = request.insert_header((AUTHORIZATION, sent));
            }
            let status = match actix_web::dev::Service::call(&app, request.to_request()).await {
                Ok(reply) => reply.status(),
                Err(refused) => refused.as_response_error().status_code(),
            };
            assert_eq!(status, expected, "{sent:?}");
        }
        Ok(())
    }
}

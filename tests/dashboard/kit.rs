//! A kind of procedure for every state that is looked at, and short ways to ask.

use std::future::IntoFuture;
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::http::header::HeaderMap;
use actix_web::test::{TestRequest, call_service, init_service, read_body};
use actix_web::{App, web};
use procession::dashboard::{Dashboard, DashboardBuilder, Grant, NoAccess};
use procession::limits::{LockNeed, LockPath};
use procession::procedure::{Accepts, Child, RetryPolicy};
use procession::testkit::{FaultPlan, Run, Trouble, World};
use procession::{Builder, Children, Procedure, ProcedureId, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a test gives.
pub(crate) type Tested = Result<(), Trouble>;

/// What a procedure of the tests does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Job {
    /// Ends well.
    End,
    /// Waits for this event.
    Wait(String),
    /// Fails with these words.
    Fail(String),
    /// Fails, and tries again.
    Retry(String),
    /// Has so many children, which wait for an event.
    Parent(u32),
    /// Holds this lock, and waits for an event.
    Hold(String),
    /// Notes this, and ends well.
    Note(String),
    /// Asks this, and ends with the answer.
    Ask(String),
    /// Has a child that asks this, and so many more, each after the one before it.
    AskFirst(String, u32),
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Stage {
    Begin,
    Finish,
}

impl Procedure for Job {
    const KIND: &'static str = "job";
    const HOLD_LOCKS: bool = true;
    type Stage = Stage;
    type Env = ();
    type Output = String;

    fn first(&self) -> Stage {
        Stage::Begin
    }

    async fn execute(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let wait = |event: &str| Step::Wait {
            event: event.to_owned(),
            timeout: None,
            then: Stage::Finish,
        };
        match (stage, &*self) {
            (Stage::Finish, Self::Ask(_)) => {
                let answer = cx.answer::<Value>()?;
                Ok(Step::Done(
                    answer.map_or("no answer".to_owned(), |answer| answer.to_string()),
                ))
            }
            (_, Self::Ask(question)) => Ok(Step::Ask {
                question: question.clone(),
                timeout: None,
                then: Stage::Finish,
            }),
            (Stage::Finish, _) | (_, Self::End) => Ok(Step::Done("done".to_owned())),
            (_, Self::Wait(event)) => Ok(wait(event)),
            (_, Self::Hold(_)) => Ok(wait("release")),
            (_, Self::Note(text)) => {
                cx.note(text)?;
                Ok(Step::Next(Stage::Finish))
            }
            (_, Self::Fail(why)) => Err(StageError::fail(why)),
            (_, Self::Retry(why)) => Err(StageError::retry(why)),
            (_, Self::AskFirst(question, more)) => {
                let first = Child::new(&Self::Ask(question.clone()))?;
                let rest = (0..*more).map(|before| Ok(Child::new(&Self::End)?.after([before])));
                let rest = rest.collect::<Result<Vec<Child>, StageError>>()?;
                let children = rest.into_iter().fold(Children::new().child(first), Children::child);
                Ok(Step::Spawn {
                    children,
                    then: Stage::Finish,
                })
            }
            (_, Self::Parent(children)) => {
                let child = Self::Wait("go".to_owned());
                let children = Children::of((0..*children).map(|_| &child))?;
                Ok(Step::Spawn {
                    children,
                    then: Stage::Finish,
                })
            }
        }
    }

    fn retry() -> RetryPolicy {
        RetryPolicy::default().attempts(50)
    }

    fn accepts((): &()) -> Accepts {
        Accepts::anything().event_if("typed", |name: &String| match name.as_str() {
            "" => Err("a name is missing".to_owned()),
            _ => Ok(()),
        })
    }

    fn locks(&self, _: &Stage) -> Vec<LockNeed> {
        match self {
            Self::Hold(path) => vec![LockNeed::exclusive(LockPath::parse(path))],
            _ => Vec::new(),
        }
    }
}

/// An engine, and a dashboard over it.
pub(crate) struct Site<'a> {
    pub(crate) run: &'a Run,
    pub(crate) dashboard: Dashboard,
}

/// A reply, read whole.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

/// Runs a test over an engine that holds nothing yet. Whoever asks may do everything.
pub(crate) fn site<T>(drive: impl AsyncFnOnce(&Site<'_>) -> Result<T, Trouble>) -> Result<T, Trouble> {
    site_on(&World::new(), drive)
}

/// Runs a test over what is there already.
pub(crate) fn site_on<T>(
    world: &World,
    drive: impl AsyncFnOnce(&Site<'_>) -> Result<T, Trouble>,
) -> Result<T, Trouble> {
    site_in(world, |builder| builder, everybody, drive)
}

pub(crate) fn everybody(dashboard: DashboardBuilder<NoAccess>) -> DashboardBuilder {
    dashboard.access(|_: &actix_web::HttpRequest| Grant::All { who: "ann".to_owned() })
}

pub(crate) fn site_in<T>(
    world: &World,
    engine: impl FnOnce(Builder) -> Builder,
    set_up: impl FnOnce(DashboardBuilder<NoAccess>) -> DashboardBuilder,
    drive: impl AsyncFnOnce(&Site<'_>) -> Result<T, Trouble>,
) -> Result<T, Trouble> {
    let register = |builder: Builder| engine(builder.register::<Job>(()));
    world
        .run(FaultPlan::none(), register, async |run: &Run| {
            let dashboard = set_up(Dashboard::builder(&run.executor)).start().await?;
            let site = Site { run, dashboard };
            site.shown().await?;
            drive(&site).await
        })?
        .done()
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }
}

impl Site<'_> {
    pub(crate) async fn submit(&self, job: Job, key: &str) -> Result<ProcedureId, Trouble> {
        let submission = self.run.executor.submit(job).key(key).into_future();
        let handle = self.run.wait(submission).await??;
        self.run.settle().await;
        self.shown().await?;
        Ok(handle.id())
    }

    pub(crate) async fn signal(&self, id: ProcedureId, event: &str) -> Tested {
        self.run.executor.signal(id, event, &"now").await?;
        self.run.settle().await;
        self.shown().await
    }

    /// Waits until the dashboard shows all that is on disk.
    pub(crate) async fn shown(&self) -> Tested {
        let durable = self.run.executor.snapshot().await?.durable;
        self.dashboard.reached(durable).await;
        Ok(())
    }

    /// Lets this much time pass, and so what was read of the engine grow old.
    pub(crate) async fn pass(&self, time: Duration) -> Tested {
        self.run.pass(time).await;
        self.shown().await
    }

    /// Asks for a path of the API.
    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.ask(near(TestRequest::get()), path).await
    }

    /// Asks for a path that is there.
    pub(crate) async fn body(&self, path: &str) -> Result<Value, Trouble> {
        let reply = self.get(path).await;
        if reply.status != StatusCode::OK {
            return Err(format!("{path}: {} {}", reply.status, reply.body).into());
        }
        Ok(reply.body)
    }

    pub(crate) async fn ask(&self, request: TestRequest, path: &str) -> Reply {
        self.ask_at("/ops/procedures", request, path).await
    }

    pub(crate) async fn ask_at(&self, mount: &str, request: TestRequest, path: &str) -> Reply {
        let scope = web::scope(mount).configure(self.dashboard.routes());
        let app = init_service(App::new().service(scope)).await;
        let request = request.uri(&format!("{mount}/api/v1/{path}")).to_request();
        let response = call_service(&app, request).await;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = read_body(response).await;
        let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
        Reply { status, headers, body }
    }
}

/// A request from this machine, to this machine.
pub(crate) fn near(request: TestRequest) -> TestRequest {
    let peer = ([127, 0, 0, 1], 50_000).into();
    request.peer_addr(peer).insert_header(("host", "localhost:8080"))
}

/// Returns the ids of a list.
pub(crate) fn ids(body: &Value) -> Vec<String> {
    let items = body["items"].as_array().cloned().unwrap_or_default();
    items.iter().map(|item| text(&item["id"])).collect()
}

/// The ids of all pages of `procedures` or `flows`, the newest families first.
pub(crate) async fn newest(site: &Site<'_>, list: &str, filter: &str, limit: usize) -> Result<Vec<String>, Trouble> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("{list}?order=newest&limit={limit}&filter={filter}&cursor={cursor}");
        let page = site.body(&path).await?;
        all.extend(ids(&page));
        match page.get("cursor").and_then(Value::as_str) {
            Some(next) => next.clone_into(&mut cursor),
            None => return Ok(all),
        }
    }
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns what stands at a place of a reply.
pub(crate) fn at(value: &Value, place: &str) -> Value {
    value.pointer(place).cloned().unwrap_or(Value::Null)
}

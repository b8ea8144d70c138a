//! Sagas as pictures, and the verbs that answer what rests of them.

use std::future::IntoFuture;
use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::http::StatusCode;
use procession::Builder;
use procession::ProcedureId;
use procession::dashboard::{DashboardBuilder, Grant, NoAccess, Part, Redact, Right, Rights};
use procession::operate::OperatorRequest;
use procession::saga::{Call, Fault, MachineSettings, Sagas};
use procession::testkit::{Trouble, World};
use serde_json::{Value, json};

use crate::act::post;
use crate::kit::{Site, Tested, at, everybody, ids, site_in, text};

/// Rests at a Choice, which cannot be skipped.
const PICKY: &str = r#"{ "Name": "picky", "StartState": "How", "States": {
    "How": { "Type": "Choice", "Choices": [{ "Expression": "[a] == 1", "Next": "Done" }] },
    "Done": { "Type": "Succeed" }
} }"#;

/// Services that fail with the class that they are told, and an order that can be compensated for an hour.
pub(crate) fn sagas() -> Result<Sagas, Trouble> {
    let mut sagas = Sagas::builder()
        .json("order.json", include_str!("machines/order.json"))
        .json("tour.json", include_str!("machines/tour.json"))
        .json("picky.json", PICKY)
        .set("order", MachineSettings::default().compensable(Duration::from_hours(1)));
    for method in [
        "reserve", "release", "pay", "refund", "wrap", "plan", "flight", "room", "cancel", "mail",
    ] {
        sagas = sagas.method("shop", method, async |_: Call, (how,): (Option<String>,)| {
            match how.as_deref() {
                None | Some("ok") => Ok("done"),
                Some(class) => Err(Fault::new(class, "the shop said no")),
            }
        });
    }
    Ok(sagas.build()?)
}

pub(crate) fn engine(sagas: Sagas) -> impl Fn(Builder) -> Builder {
    let kept = Duration::from_hours(24);
    move |builder| builder.sagas(sagas.clone()).retention(kept, kept)
}

pub(crate) async fn start(
    site: &Site<'_>,
    sagas: &Sagas,
    machine: &str,
    key: &str,
    params: Value,
) -> Result<ProcedureId, Trouble> {
    let machine = sagas.machine(machine)?.params(&params)?;
    let started = site.run.executor.submit(machine).key(key).into_future();
    let handle = site.run.wait(started).await??;
    site.run.settle().await;
    site.shown().await?;
    Ok(handle.id())
}

async fn told(site: &Site<'_>, id: ProcedureId) -> Result<Value, Trouble> {
    site.run.settle().await;
    site.shown().await?;
    site.body(&format!("procedures/{id}/saga")).await
}

fn list(saga: &Value, pointer: &str) -> Vec<Value> {
    at(saga, pointer).as_array().cloned().unwrap_or_default()
}

fn state(saga: &Value, name: &str) -> Value {
    let mut states = list(saga, "/states").into_iter();
    states.find(|state| at(state, "/name") == name).unwrap_or_default()
}

/// The edges that were taken, in words.
fn taken(saga: &Value) -> Vec<String> {
    let edges = list(saga, "/edges").into_iter();
    let taken = edges.filter(|edge| at(edge, "/taken") == true);
    taken
        .map(|edge| ["/from", "/kind", "/to"].map(|name| text(&at(&edge, name))).join(" "))
        .collect()
}

/// Where members are, each with what it does there.
fn here(saga: &Value) -> Vec<String> {
    let states = list(saga, "/states").into_iter();
    let here = states.flat_map(|state| {
        let name = text(&at(&state, "/name"));
        let members = list(&state, "/here").into_iter();
        members.map(move |one| format!("{name} {} {}", text(&at(&one, "/id")), text(&at(&one, "/does"))))
    });
    here.collect()
}

/// One saga in each row of the table of standings: its key, its params, and what is decided about it.
const ROWS: [(&str, &str); 9] = [
    ("running", r#"{ "reserve": "ok", "pay": "x.Later" }"#),
    ("rests", r#"{ "reserve": "ok", "pay": "x.Boom" }"#),
    (
        "compensating",
        r#"{ "reserve": "ok", "release": "x.Boom", "pay": "x.NoMoney" }"#,
    ),
    (
        "its rollback rests",
        r#"{ "reserve": "ok", "release": "x.Boom", "pay": "x.NoMoney" }"#,
    ),
    ("took effect", r#"{ "reserve": "ok", "pay": "ok", "gift": true }"#),
    ("nothing to undo", r#"{ "reserve": "x.Gone" }"#),
    ("rolled back", r#"{ "reserve": "ok", "pay": "x.NoMoney" }"#),
    (
        "skipped",
        r#"{ "reserve": "ok", "release": "x.Boom", "pay": "x.NoMoney" }"#,
    ),
    ("undone for ann", r#"{ "reserve": "ok", "pay": "ok" }"#),
];

/// Rows that time would change.
const LATE: [&str; 2] = ["running", "compensating"];

/// What is told of each: standing, status and compensation; the sentence; how many states were undone; who is where.
fn wanted(row: &str, id: ProcedureId) -> (String, &'static str, usize, Vec<String>) {
    let one = |state: &str, does: &str| vec![format!("{state} {id} {does}")];
    let (is, sentence, undone, here) = match row {
        "running" => ("running RU null", "at [Pay]", 0, one("Pay", "waits")),
        "rests" => (
            "rests UN null",
            "state [Pay]: x.Boom: the shop said no; 2 steps took effect, or may have: forward, skip or compensate",
            0,
            one("Pay", "rests"),
        ),
        "compensating" => (
            "compensating UN RU",
            "undoing, 1 of 2 undone, now [Reserve]",
            1,
            one("Reserve", "undoes"),
        ),
        "its rollback rests" => (
            "compensation_rests UN UN",
            "undoing, 1 of 2 undone; [Reserve] is in doubt: retry or skip it",
            1,
            one("Reserve", "undo_rests"),
        ),
        "took effect" => ("ended SU null", "every step took effect", 0, Vec::new()),
        "nothing to undo" => (
            "ended FA null",
            "state [Reserve]: GONE: it was sold: x.Gone: the shop said no; nothing had to be undone",
            0,
            Vec::new(),
        ),
        "rolled back" => (
            "ended UN SU",
            "rolled back, 2 undone: state [Pay]: NOT_PAID: there is no money: x.NoMoney: the shop said no",
            2,
            Vec::new(),
        ),
        "skipped" => (
            "ended UN SU",
            "rolled back, 1 undone, [Reserve] skipped: state [Pay]: NOT_PAID: there is no money: x.NoMoney: the shop said no",
            1,
            Vec::new(),
        ),
        _ => (
            "ended SU SU",
            "succeeded, then rolled back, 2 undone: aborted by ann: too late",
            2,
            Vec::new(),
        ),
    };
    (is.to_owned(), sentence, undone, here)
}

/// The picture of one row, which agrees with the handle, the list and the explanation.
async fn agrees(site: &Site<'_>, row: &str, id: ProcedureId) -> Result<Value, Trouble> {
    let saga = told(site, id).await?;
    let (is, sentence, undone, here_wanted) = wanted(row, id);
    let word = |name: &str| at(&saga, &format!("/{name}")).as_str().unwrap_or("null").to_owned();
    assert_eq!(
        [word("standing"), word("status"), word("compensation")].join(" "),
        is,
        "{row}"
    );
    assert_eq!(at(&saga, "/sentence"), sentence, "{row}");
    let states = list(&saga, "/states");
    let counted = |name: &str| -> u64 {
        states
            .iter()
            .filter_map(|state| at(state, &format!("/{name}")).as_u64())
            .sum()
    };
    assert_eq!(counted("compensated"), undone as u64, "{row}");
    assert_eq!(here(&saga), here_wanted, "{row}");

    let instance = site.run.executor.saga(id).instance().await?;
    assert_eq!(instance.sentence(), sentence, "{row}");
    for seen in &instance.states {
        let shown = state(&saga, &seen.state);
        assert_eq!(at(&shown, "/visited"), true, "{row}: {}", seen.state);
    }
    let rests: Vec<String> = instance
        .rests
        .iter()
        .map(|rest| format!("{} {}", rest.id, rest.state))
        .collect();
    let shown = list(&saga, "/rests").into_iter();
    let shown: Vec<String> = shown
        .map(|rest| format!("{} {}", text(&at(&rest, "/id")), text(&at(&rest, "/state"))))
        .collect();
    assert_eq!(shown, rests, "{row}");
    let asks = ids(&site.body("procedures?filter=reason:decision").await?);
    assert_eq!(asks.contains(&id.to_string()), row == "rests", "{row}");
    let explained = site.run.executor.explain(id).await?;
    if row == "rests" {
        let one = site.body(&format!("procedures/{id}")).await?;
        assert_eq!(at(&one, "/procedure/question"), sentence);
        assert_eq!(explained.reason, "waits for a decision");
    }
    Ok(saga)
}

#[test]
fn g_037_each_standing_has_its_words_its_list_and_its_picture_also_after_a_restart() -> Tested {
    let sagas = sagas()?;
    let world = World::new();
    let ids = site_in(&world, engine(sagas.clone()), everybody, async |site| {
        let mut ids = Vec::new();
        for (row, params) in ROWS.into_iter().filter(|(row, _)| !LATE.contains(row)) {
            ids.push((
                row,
                start(site, &sagas, "order", row, serde_json::from_str(params)?).await?,
            ));
        }
        // The three tries of each undo that fails are used up.
        site.pass(Duration::from_mins(4)).await?;
        let by = |why: &str| OperatorRequest::new("ann", why);
        for (row, id) in &ids {
            let saga = site.run.executor.saga(*id);
            match *row {
                "skipped" => drop(saga.skip_compensation(by("released by hand")).await?),
                "undone for ann" => drop(saga.compensate(by("too late")).await?),
                _ => {}
            }
        }
        site.run.settle().await;
        // Its window, and no retry of another one.
        site.pass(Duration::from_hours(1)).await?;
        for (row, params) in ROWS.into_iter().filter(|(row, _)| LATE.contains(row)) {
            ids.push((
                row,
                start(site, &sagas, "order", row, serde_json::from_str(params)?).await?,
            ));
        }
        for (row, id) in &ids {
            let saga = agrees(site, row, *id).await?;
            if *row == "took effect" {
                let way = ["Reserve next Pay", "Pay next How", "How choice Wrap", "Wrap next Done"];
                assert_eq!(taken(&saga), way);
            }
            if *row == "rolled back" {
                let way = [
                    "Reserve next Pay",
                    "Reserve undo Release",
                    "Pay catch Undo",
                    "Pay undo Refund",
                ];
                assert_eq!(taken(&saga), way);
                assert_eq!(state(&saga, "Release")["status"], "SU");
                assert_eq!(saga["version"], "2");
            }
        }
        Ok(ids)
    })?;
    site_in(&world, engine(sagas), everybody, async |site| {
        for (row, id) in ids {
            agrees(site, row, id).await?;
        }
        Ok(())
    })
}

/// A flight, a room and an order of a tour that rest.
pub(crate) fn resting() -> Value {
    json!({ "flight": "x.Boom", "rooms": ["ok", "x.Boom", "ok"], "pay": "x.Boom" })
}

#[test]
fn branches_elements_and_sub_machines_are_marked_where_they_are() -> Tested {
    let sagas = sagas()?;
    site_in(&World::new(), engine(sagas.clone()), everybody, async |site| {
        let id = start(site, &sagas, "tour", "tour", resting()).await?;
        let saga = told(site, id).await?;
        let way = [
            "Plan next Book",
            "Book branch Flight",
            "Book branch Rooms",
            "Book branch Buy",
        ];
        assert_eq!(taken(&saga), way);
        let marks = [
            "Flight 1.1 rests",
            "Rooms 1.5 rests",
            "Rooms 1.2 waits",
            "Buy 1.3 waits",
            "Booked 1.0 waits",
        ];
        assert_eq!(here(&saga), marks);
        assert_eq!(state(&saga, "Rooms")["counts"], json!({ "SU": 2, "UN": 1 }));
        assert_eq!(
            state(&saga, "Buy")["machines"],
            json!([{ "id": "1.7", "status": "rests" }])
        );
        assert_eq!(at(&saga, "/regions/2"), json!({ "title": "Book: Rooms", "parent": 0 }));
        assert_eq!(state(&saga, "CancelRoom")["region"], 2);
        assert_eq!(saga["context"], json!({ "redacted": true, "size": 63 }));
        // A branch shows the machine that it is a part of, a sub machine its own.
        assert_eq!(told(site, "1.1".parse()?).await?["id"], "1.0");
        let sub = told(site, "1.7".parse()?).await?;
        assert_eq!((&sub["id"], &sub["machine"]), (&json!("1.7"), &json!("order")));
        assert_eq!(here(&sub), ["Pay 1.7 rests"]);
        Ok(())
    })
}

#[test]
fn what_rests_goes_forward_with_its_plan_and_once_for_a_key() -> Tested {
    let sagas = sagas()?;
    site_in(&World::new(), engine(sagas.clone()), everybody, async |site| {
        let id = start(site, &sagas, "tour", "tour", resting()).await?;
        let path = format!("procedures/{id}/forward");
        let params = json!({ "flight": "ok", "pay": "ok", "rooms": ["ok"] });
        let plan = post(site, &format!("{path}?dry_run=true"), &json!({ "params": params }))
            .await
            .body;
        assert_eq!((&plan["dry_run"], &plan["changed"]), (&json!(true), &json!(3)));
        let members = [("1.1", "Flight"), ("1.5", "Rooms"), ("1.7", "Pay")];
        let members = members.map(|(id, state)| json!({ "id": id, "state": state }));
        assert_eq!(plan["members"], json!(members));
        assert_eq!(told(site, id).await?["standing"], "rests", "a plan changes nothing");

        let unplanned = post(site, &path, &json!({ "params": params, "reason": "a new price" })).await;
        assert_eq!(unplanned.status, StatusCode::BAD_REQUEST);
        // A decision about one of them makes the plan an old one.
        let skip = post(site, "procedures/1.5/skip?dry_run=true", &json!({ "results": {} }))
            .await
            .body;
        assert_eq!(skip["members"], json!([{ "id": "1.5", "state": "Rooms" }]));
        let skipped = json!({ "results": {}, "reason": "no room needed", "expected": skip["revision"] });
        assert_eq!(post(site, "procedures/1.5/skip", &skipped).await.status, StatusCode::OK);
        let act = json!({ "params": params, "reason": "a new price", "expected": plan["revision"], "key": "once" });
        told(site, id).await?;
        let old = post(site, &path, &act).await;
        assert_eq!(
            (old.status, text(&old.body["kind"])),
            (StatusCode::CONFLICT, "revised".to_owned())
        );
        let plan = post(site, &format!("{path}?dry_run=true"), &json!({ "params": params }))
            .await
            .body;
        let members = [("1.1", "Flight"), ("1.7", "Pay")];
        let members = members.map(|(id, state)| json!({ "id": id, "state": state }));
        assert_eq!(plan["members"], json!(members));
        let act = json!({ "params": params, "reason": "a new price", "expected": plan["revision"], "key": "once" });
        let done = post(site, &path, &act).await;
        assert_eq!(done.status, StatusCode::OK, "{}", done.body);
        assert_eq!(done.body["changed"], 2);
        let ended = told(site, id).await?;
        assert_eq!(
            (&ended["standing"], &ended["status"]),
            (&json!("ended"), &json!("SU")),
            "{ended}"
        );
        let again = post(site, &path, &act).await;
        assert_eq!(again.status, StatusCode::OK, "{}", again.body);
        assert_eq!(again.body["changed"], 2);
        let audit = site.body("audit").await?;
        assert_eq!(audit["items"].as_array().map(Vec::len), Some(3), "{audit}");
        Ok(())
    })
}

#[test]
fn refusals_say_what_the_saga_does_and_what_to_do() -> Tested {
    let sagas = sagas()?;
    site_in(&World::new(), engine(sagas.clone()), everybody, async |site| {
        let rests = start(site, &sagas, "order", "rests", json!({ "pay": "x.Boom" })).await?;
        let odd = start(site, &sagas, "picky", "odd", json!({ "a": 2 })).await?;
        let ended = start(site, &sagas, "order", "gone", json!({ "reserve": "x.Gone" })).await?;
        let job = site.submit(crate::kit::Job::End, "job").await?;
        let body = |expected: &str| json!({ "reason": "try", "expected": expected });
        for (path, status, kind, detail) in [
            (
                format!("procedures/{ended}/forward"),
                StatusCode::CONFLICT,
                "not_now",
                "The saga does not rest: it has ended.",
            ),
            (
                format!("procedures/{rests}/forward"),
                StatusCode::CONFLICT,
                "revised",
                "Another decision came first, or another member of the saga has come to rest.",
            ),
            (
                format!("procedures/{odd}/skip?dry_run=true"),
                StatusCode::CONFLICT,
                "not_now",
                "State [How] cannot be skipped: it is no task; forward the saga with other params, or compensate it.",
            ),
            (
                format!("procedures/{job}/forward"),
                StatusCode::NOT_FOUND,
                "unknown",
                "There is no saga 4.0.",
            ),
        ] {
            let mut body = body("1");
            if path.contains("dry_run") {
                body = json!({ "reason": "try" });
            }
            let reply = post(site, &path, &body).await;
            assert_eq!(
                (reply.status, text(&reply.body["kind"])),
                (status, kind.to_owned()),
                "{path}: {}",
                reply.body
            );
            assert_eq!(text(&reply.body["detail"]), detail, "{path}");
        }
        let no_object = post(
            site,
            &format!("procedures/{rests}/forward?dry_run=true"),
            &json!({ "params": 7 }),
        )
        .await;
        assert_eq!(no_object.status, StatusCode::BAD_REQUEST, "{}", no_object.body);
        assert_eq!(
            site.get(&format!("procedures/{job}/saga")).await.status,
            StatusCode::NOT_FOUND
        );
        let method = site.get(&format!("procedures/{rests}/forward")).await;
        assert_eq!(method.status, StatusCode::METHOD_NOT_ALLOWED);
        Ok(())
    })
}

#[test]
fn kinds_of_machines_have_the_versions_of_their_definitions() -> Tested {
    let (old, new) = (sagas()?, newer()?);
    let world = World::new();
    let versions = async |site: &Site<'_>| {
        let kinds = site.body("kinds").await?;
        let of = |name: &str| {
            let mut kinds = list(&kinds, "/items").into_iter();
            let kind = kinds.find(|kind| at(kind, "/kind") == name).unwrap_or_default();
            at(&kind, "/machine_versions")
        };
        Ok::<_, Trouble>(["saga.order", "saga.picky", "procession.bulk"].map(of))
    };
    let known = |version: Value, starts: bool| json!({ "version": version, "starts": starts });
    site_in(&world, engine(old), everybody, async |site| {
        let [order, picky, bulk] = versions(site).await?;
        assert_eq!(order, json!([known("2".into(), true)]));
        assert_eq!(picky, json!([known(Value::Null, true)]));
        assert_eq!(bulk, Value::Null, "it is no machine");
        Ok(())
    })?;
    // Sagas that began with the old version go on by it.
    site_in(&world, engine(new), everybody, async |site| {
        let [order, picky, _] = versions(site).await?;
        assert_eq!(order, json!([known("2".into(), false), known("3".into(), true)]));
        assert_eq!(picky, json!([known(Value::Null, false)]));
        Ok(())
    })
}

/// An order that must be done within a minute.
fn timed() -> Result<Sagas, Trouble> {
    let settings = MachineSettings::default().timeout(Duration::from_secs(60));
    let sagas = Sagas::builder()
        .json("order.json", include_str!("machines/order.json"))
        .set("order", settings);
    let sagas = ["reserve", "release", "pay", "refund", "wrap"]
        .into_iter()
        .fold(sagas, |sagas, method| {
            sagas.method("shop", method, async |_: Call, (how,): (Option<String>,)| match how {
                Some(class) if class != "ok" => Err(Fault::new(&class, "the shop said no")),
                _ => Ok("done"),
            })
        });
    Ok(sagas.build()?)
}

#[test]
fn a_saga_starts_from_its_kind_with_params_and_has_the_time_limit_of_its_machine() -> Tested {
    site_in(&World::new(), engine(timed()?), everybody, async |site| {
        let start = async |query: &str, value: Value| {
            let body = json!({ "value": value, "reason": "look" });
            post(site, &format!("kinds/saga.order/submit{query}"), &body).await
        };
        let refused = start("?dry_run=true", json!(7)).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST);
        assert!(
            text(&at(&refused.body, "/detail")).contains("they are no object"),
            "{}",
            refused.body
        );
        let planned = start("?dry_run=true", json!({})).await;
        assert_eq!(planned.status, StatusCode::OK, "{}", planned.body);
        // The names of a machine's own value are params as any other.
        let params = json!({ "reserve": "ok", "pay": "x.Later", "m": "tour", "c": {} });
        let begun = start("", params).await;
        assert_eq!(begun.status, StatusCode::OK, "{}", begun.body);
        let id: ProcedureId = text(&at(&begun.body, "/submitted")).parse()?;
        let saga = told(site, id).await?;
        assert_eq!(here(&saga), [format!("Pay {id} waits")]);
        let first = at(&site.body(&format!("procedures/{id}/history")).await?, "/items/0/stage");
        assert!(text(&first).contains("Reserve"), "{first}");
        site.pass(Duration::from_secs(61)).await?;
        let saga = told(site, id).await?;
        assert_eq!(at(&saga, "/standing"), "ended", "{saga}");
        // So has one that runs again: its value was read back.
        let again = post(
            site,
            &format!("procedures/{id}/run-again"),
            &json!({ "reason": "look" }),
        )
        .await;
        let again: ProcedureId = text(&at(&again.body, "/submitted")).parse()?;
        assert_eq!(here(&told(site, again).await?), [format!("Pay {again} waits")]);
        site.pass(Duration::from_secs(61)).await?;
        assert_eq!(at(&told(site, again).await?, "/standing"), "ended");
        Ok(())
    })
}

#[test]
fn kinds_say_what_one_is_started_with() -> Tested {
    site_in(&World::new(), engine(sagas()?), everybody, async |site| {
        let kinds = list(&site.body("kinds").await?, "/items");
        let with = |kind: &str| {
            let found = kinds.iter().find(|one| at(one, "/kind") == kind);
            found.map(|one| at(one, "/starts_with")).unwrap_or_default()
        };
        assert_eq!(with("saga.order"), "params");
        assert_eq!(with("job"), "value");
        assert_eq!(with("procession.bulk"), Value::Null);
        Ok(())
    })
}

/// The order in another version alone.
fn newer() -> Result<Sagas, Trouble> {
    let order = include_str!("machines/order.json").replace("\"Version\": \"2\"", "\"Version\": \"3\"");
    let mut sagas = Sagas::builder().json("order.json", order);
    for method in ["reserve", "release", "pay", "refund", "wrap"] {
        sagas = sagas.method("shop", method, async |_: Call, _: Vec<Value>| Ok(()));
    }
    Ok(sagas.build()?)
}

#[test]
fn what_rests_takes_decisions_and_no_answers() -> Tested {
    let sagas = sagas()?;
    site_in(&World::new(), engine(sagas.clone()), everybody, async |site| {
        let order = start(site, &sagas, "order", "order", json!({ "pay": "x.Boom" })).await?;
        let tour = start(site, &sagas, "tour", "tour", resting()).await?;
        let branch = ProcedureId::new(tour.family, 1);
        for id in [order, branch] {
            let revision = site.run.executor.status(id).await?.revision;
            let refused = [
                ("decide", json!({ "answer": { "skip": {} } })),
                ("decide", json!({ "answer": true })),
                ("override-result", json!({ "output": { "s": "SU", "c": {} } })),
                ("bypass", json!({ "as": "failed" })),
            ];
            for (verb, mut body) in refused {
                body["reason"] = "by hand".into();
                let path = format!("procedures/{id}/{verb}");
                let plan = post(site, &format!("{path}?dry_run=true"), &body).await;
                body["expected"] = revision.to_string().into();
                body["confirm"] = id.to_string().into();
                for reply in [plan, post(site, &path, &body).await] {
                    let found = (reply.status, text(&reply.body["kind"]));
                    assert_eq!(
                        found,
                        (StatusCode::CONFLICT, "not_now".to_owned()),
                        "{path}: {}",
                        reply.body
                    );
                    assert_eq!(
                        text(&reply.body["detail"]),
                        format!("Saga {id} rests, and takes no answer.")
                    );
                    let remedy = text(&reply.body["remedy"]);
                    assert!(remedy.contains("`forward`") && remedy.contains("`skip`"), "{remedy}");
                }
            }
            assert_eq!(
                site.run.executor.status(id).await?.revision,
                revision,
                "nothing has changed"
            );
        }
        // A bypass leaves the saga as it stands: the last resort stays possible.
        let bypass = post(site, &format!("procedures/{order}/bypass?dry_run=true"), &json!({})).await;
        assert_eq!(bypass.status, StatusCode::OK, "{}", bypass.body);
        Ok(())
    })
}

/// Hides what is said of failures and asked, and shows values.
struct Words;

impl Redact for Words {
    fn redact(&self, _: &str, part: Part, value: &mut Value, _: &Grant) {
        if matches!(part, Part::Error | Part::Question) {
            *value = Value::from("(hidden)");
        }
    }
}

#[test]
fn what_is_hidden_of_failures_is_in_no_word_of_the_picture() -> Tested {
    let sagas = sagas()?;
    let hiding = |dashboard: DashboardBuilder<NoAccess>| everybody(dashboard).redact(Words);
    site_in(&World::new(), engine(sagas.clone()), hiding, async |site| {
        let tour = start(site, &sagas, "tour", "tour", resting()).await?;
        let lost = json!({ "reserve": "ok", "pay": "x.NoMoney" });
        let lost = start(site, &sagas, "order", "order", lost).await?;
        for id in [tour, lost] {
            let saga = told(site, id).await?;
            assert!(!saga.to_string().contains("said no"), "{saga}");
            assert!(text(&saga["sentence"]).contains("(hidden)"), "{saga}");
        }
        let context = told(site, lost).await?["context"].clone();
        assert_eq!(at(&context, "/value/reserved"), "done");
        Ok(())
    })
}

#[test]
fn each_decision_needs_its_right() -> Tested {
    let sagas = sagas()?;
    let operator = |dashboard: DashboardBuilder<NoAccess>| {
        let rights = Rights::none().with(Right::View).with(Right::Operate);
        let who = || "bob".to_owned();
        dashboard.access(move |_: &HttpRequest| Grant::Only { who: who(), rights })
    };
    site_in(&World::new(), engine(sagas.clone()), operator, async |site| {
        let id = start(site, &sagas, "order", "order", json!({ "pay": "x.Boom" })).await?;
        let plan = json!({});
        let forward = post(site, &format!("procedures/{id}/forward?dry_run=true"), &plan).await;
        assert_eq!(forward.status, StatusCode::OK, "{}", forward.body);
        let skip = post(site, &format!("procedures/{id}/skip?dry_run=true"), &plan).await;
        assert_eq!(
            (skip.status, &skip.body["right"]),
            (StatusCode::FORBIDDEN, &json!("repair"))
        );
        Ok(())
    })
}

/// A machine of so many tasks, one after the other, of which the last one fails.
fn chain(length: usize) -> String {
    let mut states = serde_json::Map::new();
    for number in 0..length {
        let how = if number + 1 == length { "x.Boom" } else { "ok" };
        let next = (number + 1 < length).then(|| format!("S{}", number + 1));
        let mut state = json!({
            "Type": "ServiceTask", "ServiceName": "shop", "ServiceMethod": "plan", "Input": [how]
        });
        if let Some((state, next)) = state.as_object_mut().zip(next) {
            state.insert("Next".to_owned(), next.into());
        }
        states.insert(format!("S{number}"), state);
    }
    json!({ "Name": "chain", "StartState": "S0", "States": states }).to_string()
}

#[test]
fn a_large_machine_is_a_table_and_a_long_loop_is_counted_whole() -> Tested {
    let method = async |_: Call, (how,): (String,)| match how.as_str() {
        "ok" => Ok("done"),
        class => Err(Fault::new(class, "no")),
    };
    let looped = r#"{ "Name": "looped", "StartState": "Each", "States": { "Each": {
        "Type": "ServiceTask", "ServiceName": "shop", "ServiceMethod": "plan", "Input": ["$.[loopElement]"],
        "Loop": { "Collection": "$.[all]", "Parallel": 0 }
    } } }"#;
    let sagas = Sagas::builder()
        .json("chain.json", chain(301))
        .json("looped.json", looped)
        .method("shop", "plan", method)
        .build()?;
    site_in(&World::new(), engine(sagas.clone()), everybody, async |site| {
        let id = start(site, &sagas, "chain", "chain", json!({})).await?;
        let saga = told(site, id).await?;
        assert_eq!((&saga["drawn"], taken(&saga).len()), (&json!(false), 300));
        assert_eq!(here(&saga), ["S300 1.0 rests"]);
        let all: Vec<&str> = (0..1_500)
            .map(|number| if number < 20 { "x.Boom" } else { "ok" })
            .collect();
        let id = start(site, &sagas, "looped", "looped", json!({ "all": all })).await?;
        let saga = told(site, id).await?;
        let each = state(&saga, "Each");
        assert_eq!(each["counts"], json!({ "FA": 20, "SU": 1_480 }));
        let named = each["here"].as_array().map(Vec::len);
        assert_eq!(
            (named, &each["here_more"]),
            (Some(16), &json!(5)),
            "20 that rest, and the one that waits for them"
        );
        assert_eq!(saga["rests"].as_array().map(Vec::len), Some(20));
        assert!(
            text(&saga["sentence"]).ends_with("; 17 more rest"),
            "{}",
            saga["sentence"]
        );
        Ok(())
    })
}

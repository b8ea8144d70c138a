//! Sagas of an engine: how each stands, of a closed journal and through a dashboard, and decisions about those that rest.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use procession::operate::OperatorRequest;
use procession::saga::{Call, Fault, MachineSettings, Sagas, Standing};
use procession::{Builder, Executor, ProcedureId};
use procession_actors::testkit::TestClock;
use serde_json::{Value, json};

use crate::Outcome;
use crate::golden::must_have_said;
use crate::journal::{BEGIN, rest};
use crate::run::{look, procession};
use crate::site::{Site, Time, all};

/// Services that fail with the class that they are told.
fn sagas() -> Outcome<Sagas> {
    let settings = MachineSettings::default().compensable(Duration::from_secs(3_600));
    let mut sagas = Sagas::builder()
        .json("order.json", include_str!("../dashboard/machines/order.json"))
        .json("tour.json", include_str!("../dashboard/machines/tour.json"))
        .set("order", settings);
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

fn with_sagas(builder: Builder) -> Outcome<Builder> {
    let kept = Duration::from_secs(30 * 86_400);
    Ok(builder.sagas(sagas()?).retention(kept, kept))
}

/// A saga in each standing: its params, what it comes to, its status and compensation, and its sentence.
const ROWS: [(&str, Standing, &str, &str); 9] = [
    (
        r#"{ "reserve": "ok", "pay": "x.Boom" }"#,
        Standing::Rests,
        "rests (UN,-)",
        "state [Pay]: x.Boom: the shop said no; 2 steps took effect, or may have: forward, skip or compensate",
    ),
    (
        r#"{ "reserve": "ok", "release": "x.Boom", "pay": "x.NoMoney" }"#,
        Standing::CompensationRests,
        "compensation rests (UN,UN)",
        "undoing, 1 of 2 undone; [Reserve] is in doubt: retry or skip it",
    ),
    (
        r#"{ "reserve": "ok", "pay": "ok", "gift": true }"#,
        Standing::Ended,
        "ended (SU,-)",
        "every step took effect",
    ),
    (
        r#"{ "reserve": "x.Gone" }"#,
        Standing::Ended,
        "ended (FA,-)",
        "state [Reserve]: GONE: it was sold: x.Gone: the shop said no; nothing had to be undone",
    ),
    (
        r#"{ "reserve": "ok", "pay": "x.NoMoney" }"#,
        Standing::Ended,
        "ended (UN,SU)",
        "rolled back, 2 undone: state [Pay]: NOT_PAID: there is no money: x.NoMoney: the shop said no",
    ),
    (
        r#"{ "reserve": "ok", "release": "x.Boom", "pay": "x.NoMoney", "skipped": true }"#,
        Standing::Ended,
        "ended (UN,SU)",
        "rolled back, 1 undone, [Reserve] skipped: state [Pay]: NOT_PAID: there is no money: x.NoMoney: the shop said no",
    ),
    (
        r#"{ "reserve": "ok", "pay": "ok", "undone": true }"#,
        Standing::Ended,
        "ended (SU,SU)",
        "succeeded, then rolled back, 2 undone: aborted by ann: too late",
    ),
    (
        r#"{ "reserve": "ok", "release": "x.Boom", "pay": "x.NoMoney", "late": true }"#,
        Standing::Compensating,
        "compensating (UN,RU)",
        "undoing, 1 of 2 undone, now [Reserve]",
    ),
    (
        r#"{ "reserve": "ok", "pay": "x.Later" }"#,
        Standing::Running,
        "running (RU,-)",
        "at [Pay]",
    ),
];

/// Starts each of them, and waits until it stands as it is to. Time passes for those alone that need it.
async fn start_all(journal: &Path) -> Outcome {
    let clock = TestClock::new();
    clock.advance_to(BEGIN);
    let builder = Executor::builder(journal)
        .inline()
        .seed(7)
        .clock(Arc::new(clock.clone()));
    let executor = with_sagas(builder)?.start().await?;
    let by = |why: &str| OperatorRequest::new("ann", why);
    for (params, standing, _, sentence) in ROWS {
        let params: Value = serde_json::from_str(params)?;
        let saga = executor.submit(sagas()?.machine("order")?.params(&params)?).await?.id();
        let saga = executor.saga(saga);
        let undone = params.get("undone").is_some();
        for round in 0.. {
            rest(&executor, saga.id()).await?;
            let instance = saga.instance().await?;
            if instance.standing == standing && instance.sentence() == sentence {
                break;
            }
            assert!(round < 1_000, "it stands otherwise: {}", instance.sentence());
            if undone && instance.sentence().contains("can still be undone") {
                saga.compensate(by("too late")).await?;
            } else if params.get("skipped").is_some() && instance.standing == Standing::CompensationRests {
                saga.skip_compensation(by("released by hand")).await?;
            } else {
                clock.advance(Duration::from_secs(60));
            }
        }
    }
    executor.drain(Duration::ZERO).await?;
    Ok(())
}

#[test]
fn g_037_each_standing_is_told_in_the_same_words_by_a_closed_journal_and_by_a_dashboard() -> Outcome {
    let root = tempfile::tempdir()?;
    actix_rt::System::new().block_on(start_all(root.path()))?;
    let ids = (1..).filter(|family| ProcedureId::root(*family).member == 0);
    let ids: Vec<u64> = ids.take(ROWS.len()).collect();
    let mut closed = Vec::new();
    for (id, (_, _, is, sentence)) in ids.iter().zip(ROWS) {
        let said = look(&format!("saga show {id}"), root.path())?;
        assert_eq!(said.code, Some(0), "{}", said.err);
        let lines: Vec<&str> = said.out.lines().collect();
        let head = format!("{id}.0 order version 2: {is} since ");
        assert!(
            lines.first().is_some_and(|line| line.starts_with(&head)),
            "{head}: {}",
            said.out
        );
        assert_eq!(lines.get(1), Some(&sentence), "{}", said.out);
        closed.push(said.out);
    }
    let asks = look("ls reason:decision", root.path())?.out;
    assert!(
        asks.contains("1.0 ") && asks.contains("waits for a decision") && !asks.contains("2.0 "),
        "{asks}"
    );
    let site = Site::open_with(root.path(), Time::Still, all, with_sagas)?;
    for (id, closed) in ids.iter().zip(closed) {
        assert_eq!(site.run(&format!("saga show {id}"))?.out, closed);
    }
    Ok(())
}

fn start(site: &Site, machine: &str, params: &Value) -> Outcome<ProcedureId> {
    actix_rt::System::new().block_on(async {
        let saga = sagas()?.machine(machine)?.params(params)?;
        let id = site.executor().submit(saga).key(machine).await?.id();
        rest(site.executor(), id).await?;
        assert_eq!(site.executor().saga(id).instance().await?.rests.len(), 3);
        Ok(id)
    })
}

#[test]
fn what_rests_is_shown_planned_skipped_and_sent_forward() -> Outcome {
    let root = tempfile::tempdir()?;
    let site = Site::open_with(root.path(), Time::Still, all, with_sagas)?;
    let params = json!({ "flight": "x.Boom", "rooms": ["ok", "x.Boom", "ok"], "pay": "x.Boom" });
    start(&site, "tour", &params)?;
    for (name, arguments, code) in [
        ("saga_show", "saga show tour", 0),
        ("saga_show_json", "saga show 1.7 --json", 0),
        ("saga_skip_plan", "saga skip 1.5 --dry-run", 0),
        ("saga_skip", "saga skip 1.5 --yes --reason full", 0),
        (
            "saga_forward_plan",
            r#"saga forward 1.0 --params {"flight":"ok"} --dry-run"#,
            0,
        ),
        (
            "saga_forward_plan_json",
            r#"saga forward 1.1 --params {"flight":"ok"} --dry-run --json"#,
            0,
        ),
        ("saga_forward_no_reason", "saga forward 1.0 --yes", 2),
        (
            "saga_forward_no_object",
            "saga forward 1.0 --params 7 --yes --reason x",
            2,
        ),
        ("saga_show_unknown", "saga show 77.0", 1),
        (
            "saga_forward",
            r#"saga forward 1.0 --params {"flight":"ok","pay":"ok"} --yes --reason mended"#,
            0,
        ),
    ] {
        must_have_said(&site.run(arguments)?, name, arguments, code)?;
    }
    Ok(())
}

#[test]
fn a_closed_journal_shows_a_saga_and_decides_nothing() -> Outcome {
    let root = tempfile::tempdir()?;
    let site = Site::open_with(root.path(), Time::Still, all, with_sagas)?;
    let params = json!({ "flight": "x.Boom", "rooms": ["x.Boom"], "pay": "x.Boom" });
    start(&site, "tour", &params)?;
    let online = site.run("saga show 1.0")?;
    drop(site);
    assert_eq!(look("saga show 1.0", root.path())?.out, online.out);
    must_have_said(&look("saga show 9", root.path())?, "saga_show_none", "saga show 9", 1)?;
    let refused = procession(["saga", "forward", "1.0", "--yes", "--reason", "x"])?;
    assert!(
        refused.code == Some(2) && refused.err.contains("--url"),
        "{}",
        refused.err
    );
    Ok(())
}

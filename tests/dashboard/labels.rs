//! Keys and labels: what was submitted with a key, and lists that an index answers.

use std::future::IntoFuture;
use std::time::Duration;

use actix_web::http::StatusCode;
use procession::ProcedureId;
use procession::testkit::Trouble;
use serde_json::{Value, json};

use crate::kit::{Job, Site, Tested, ids, site, text};

async fn submit(site: &Site<'_>, job: Job, key: &str, customer: &str) -> Result<ProcedureId, Trouble> {
    let submission = site.run.executor.submit(job).key_for(key, Duration::from_hours(1));
    let submission = submission.label("customer", customer).label("city", "New York");
    let handle = site.run.wait(submission.into_future()).await??;
    site.run.settle().await;
    site.shown().await?;
    Ok(handle.id())
}

#[test]
fn a_key_leads_to_its_procedure_while_it_lives_and_after_it_has_gone() -> Tested {
    site(async |site| {
        let id = submit(site, Job::Wait("go".to_owned()), "order/1 ä", "4711").await?;
        let path = "find?key=order%2F1%20%C3%A4";
        let live = site.body(path).await?;
        assert_eq!((&live["found"], &live["id"]), (&json!("live"), &json!(id.to_string())));
        assert_eq!(
            live["procedure"]["labels"],
            json!({ "city": "New York", "customer": "4711" })
        );
        site.signal(id, "go").await?;
        let ended = site.body(path).await?;
        assert_eq!(
            (&ended["found"], &ended["procedure"]["state"]),
            (&json!("ended"), &json!("Success"))
        );
        site.pass(Duration::from_mins(20)).await?;
        let gone = site.body(path).await?;
        assert_eq!((&gone["found"], &gone["procedure"]), (&json!("gone"), &Value::Null));
        assert_eq!(
            (&gone["id"], &gone["key_until"]),
            (&json!(id.to_string()), &json!("1970-01-01T01:00:00Z"))
        );
        site.pass(Duration::from_hours(1)).await?;
        let unknown = site.get(path).await;
        assert_eq!(
            (unknown.status, &unknown.body["kind"]),
            (StatusCode::NOT_FOUND, &json!("unknown"))
        );
        let without = site.get("find").await;
        assert_eq!(without.status, StatusCode::BAD_REQUEST);
        Ok(())
    })
}

#[test]
fn a_list_of_a_label_or_a_key_reads_no_other_rows() -> Tested {
    site(async |site| {
        for number in 0..20 {
            let customer = if number == 7 { "4711" } else { "1" };
            let job = if number % 2 == 0 {
                Job::End
            } else {
                Job::Wait("go".to_owned())
            };
            submit(site, job, &format!("order-{number:02}"), customer).await?;
        }
        let cases = [
            ("label:customer=4711", vec!["8.0"]),
            ("label:customer=4711%20label:customer=1", vec![]),
            (
                "label:%22city=New%20York%22%20key:order-0%20state:ended",
                vec!["1.0", "3.0", "5.0", "7.0", "9.0"],
            ),
            ("key:=order-07", vec!["8.0"]),
            ("key:=order-0", vec![]),
            ("key:=order-06", vec![]),
            ("key:order-0", vec!["2.0", "4.0", "6.0", "8.0", "10.0"]),
            (
                "key:order-0%20state:live,ended",
                vec!["1.0", "2.0", "3.0", "4.0", "5.0", "6.0", "7.0", "8.0", "9.0", "10.0"],
            ),
        ];
        for (filter, expected) in cases {
            let page = site.body(&format!("procedures?filter={filter}")).await?;
            assert_eq!(ids(&page), expected, "{filter}");
            let scanned = page["scanned"].as_u64().unwrap_or_default();
            // Families near each other are read as one range, and none is counted that the index does not name.
            let most = if filter.contains("customer") || filter.contains(":=") {
                1
            } else {
                20
            };
            assert!(scanned <= most, "{filter}: {scanned}");
        }
        let first = site.body("procedures?filter=label:customer=1&limit=3").await?;
        assert_eq!(ids(&first), ["2.0", "4.0", "6.0"]);
        let cursor = text(&first["cursor"]);
        let second = site
            .body(&format!("procedures?filter=label:customer=1&limit=3&cursor={cursor}"))
            .await?;
        assert_eq!(ids(&second), ["10.0", "12.0", "14.0"]);
        Ok(())
    })
}

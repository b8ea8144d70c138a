//! Lists: filters, pages, and what they say of how far they looked.

use serde_json::json;

use crate::kit::{Job, Tested, ids, site};

#[test]
fn a_list_is_of_those_that_have_not_ended() -> Tested {
    site(async |site| {
        site.submit(Job::End, "a").await?;
        site.submit(Job::Wait("go".to_owned()), "b").await?;
        site.submit(Job::Wait("go".to_owned()), "c").await?;
        assert_eq!(ids(&site.body("procedures").await?), ["2.0", "3.0"]);
        assert_eq!(ids(&site.body("procedures?filter=key:c").await?), ["3.0"]);
        assert_eq!(ids(&site.body("procedures?filter=state:ended").await?), ["1.0"]);
        assert_eq!(ids(&site.body("procedures?filter=root:2,3").await?), ["2.0", "3.0"]);
        assert_eq!(
            ids(&site.body("procedures?filter=root:2+key:c").await?),
            Vec::<String>::new()
        );
        Ok(())
    })
}

#[test]
fn pages_follow_each_other_without_gap() -> Tested {
    site(async |site| {
        for key in 0..25 {
            site.submit(Job::Wait("go".to_owned()), &key.to_string()).await?;
        }
        for filter in ["", "&filter=state:live"] {
            let (mut all, mut cursor) = (Vec::new(), String::new());
            loop {
                let page = site
                    .body(&format!("procedures?limit=7{filter}&cursor={cursor}"))
                    .await?;
                all.extend(ids(&page));
                assert_eq!(page["truncated"], false);
                match page["cursor"].as_str() {
                    Some(next) => next.clone_into(&mut cursor),
                    None => break,
                }
            }
            let expected: Vec<String> = (1..=25).map(|family| format!("{family}.0")).collect();
            assert_eq!(all, expected, "{filter}");
        }
        Ok(())
    })
}

#[test]
fn a_wrong_filter_is_refused_with_its_place() -> Tested {
    site(async |site| {
        let reply = site.get("procedures?filter=state:waiting+age:soon").await;
        assert_eq!(reply.status, 400);
        assert_eq!(reply.body["kind"], "filter");
        assert_eq!(reply.body["position"], json!(19));
        assert!(reply.body["remedy"].is_string());
        assert_eq!(reply.header("content-type"), "application/problem+json");
        Ok(())
    })
}

#[test]
fn rules_of_verdicts_can_be_asked_for() -> Tested {
    site(async |site| {
        site.submit(Job::Wait("go".to_owned()), "a").await?;
        let failing = site.submit(Job::Retry("disk full".to_owned()), "b").await?;
        site.pass(std::time::Duration::from_secs(20)).await?;
        assert_eq!(
            ids(&site.body("procedures?filter=rule:S2").await?),
            [failing.to_string()]
        );
        Ok(())
    })
}

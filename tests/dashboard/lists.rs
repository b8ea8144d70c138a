//! Lists: filters, pages, and what they say of how far they looked.

use serde_json::json;

use crate::kit::{Job, Tested, ids, newest, site};

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

#[test]
fn the_newest_families_come_first_and_their_members_in_order() -> Tested {
    site(async |site| {
        for key in 1..=9 {
            let job = match key {
                4 => Job::Parent(5),
                key if key % 3 == 0 => Job::End,
                _ => Job::Wait("go".to_owned()),
            };
            site.submit(job, &format!("{}-{key}", if key < 6 { "old" } else { "new" }))
                .await?;
        }
        let live = [
            "8.0", "7.0", "5.0", "4.0", "4.1", "4.2", "4.3", "4.4", "4.5", "2.0", "1.0",
        ];
        let every = [
            "9.0", "8.0", "7.0", "6.0", "5.0", "4.0", "4.1", "4.2", "4.3", "4.4", "4.5", "3.0", "2.0", "1.0",
        ];
        for limit in [1, 2, 5, 100] {
            assert_eq!(
                newest(site, "procedures", "", limit).await?,
                live,
                "of the model, {limit} a page"
            );
            let found = newest(site, "procedures", "state:live,ended", limit).await?;
            assert_eq!(found, every, "of the store, {limit} a page");
            assert_eq!(newest(site, "procedures", "root:1,4,7", limit).await?.len(), 8);
            assert_eq!(newest(site, "procedures", "root:7,2", limit).await?, ["7.0", "2.0"]);
            let found = newest(site, "procedures", "key:old+state:live,ended", limit).await?;
            assert_eq!(
                found,
                ["5.0", "4.0", "3.0", "2.0", "1.0"],
                "of an index, {limit} a page"
            );
        }
        assert_eq!(
            newest(site, "procedures", "key:none+state:live,ended", 5).await?,
            Vec::<String>::new()
        );
        let reply = site.get("procedures?order=up").await;
        assert_eq!(reply.status, 400);
        assert_eq!(reply.body["detail"], "\"order\" is oldest or newest.");
        Ok(())
    })
}

#[test]
fn newest_first_reaches_through_many_families_and_through_one_that_is_larger_than_a_read() -> Tested {
    site(async |site| {
        for key in 0..300 {
            site.submit(Job::End, &key.to_string()).await?;
        }
        site.submit(Job::Parent(1_100), "large").await?;
        for key in 301..900 {
            site.submit(Job::End, &key.to_string()).await?;
        }
        let found = newest(site, "procedures", "state:live,ended", 500).await?;
        let newer = (302..=900).rev().map(|family| format!("{family}.0"));
        let large = (0..=1_100).map(|member| format!("301.{member}"));
        let older = (1..=300).rev().map(|family| format!("{family}.0"));
        assert_eq!(found, newer.chain(large).chain(older).collect::<Vec<_>>());
        Ok(())
    })
}

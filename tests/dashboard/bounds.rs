//! Over a bound the reply says so.

use std::fmt::Write as _;

use serde_json::json;

use crate::kit::{Job, Tested, site};

#[test]
fn a_filter_has_a_kibibyte_at_most() -> Tested {
    site(async |site| {
        let fits = format!("procedures?filter=key:{}", "x".repeat(1020));
        assert_eq!(site.get(&fits).await.status, 200);
        let reply = site.get(&format!("{fits}x")).await;
        assert_eq!(
            (reply.status.as_u16(), reply.body["kind"].clone()),
            (413, json!("too_large"))
        );
        Ok(())
    })
}

#[test]
fn a_page_has_500_rows_at_most() -> Tested {
    site(async |site| {
        site.submit(Job::Parent(600), "a").await?;
        let page = site.body("procedures?limit=100000").await?;
        assert_eq!(page["items"].as_array().map(Vec::len), Some(500));
        assert!(page["cursor"].is_string());
        assert_eq!(site.get("procedures?limit=0").await.status, 400);
        assert_eq!(site.get("procedures?limit=-3").await.status, 400);
        Ok(())
    })
}

#[test]
fn a_tree_says_when_it_is_cut() -> Tested {
    site(async |site| {
        let id = site.submit(Job::Parent(5_000), "a").await?;
        let tree = site.body(&format!("procedures/{id}/tree")).await?;
        assert_eq!(tree["items"].as_array().map(Vec::len), Some(5_000));
        assert_eq!(tree["truncated"], true);
        Ok(())
    })
}

#[test]
fn a_timeline_is_folded_to_the_bars_asked_for() -> Tested {
    site(async |site| {
        let id = site.submit(Job::Parent(50), "a").await?;
        let timeline = site.body(&format!("procedures/{id}/timeline?bars=10")).await?;
        assert!(timeline["items"].as_array().is_some_and(|items| items.len() <= 10));
        assert_eq!(timeline["folded"], true);
        Ok(())
    })
}

#[test]
fn parameters_that_are_not_known_are_refused() -> Tested {
    site(async |site| {
        for path in [
            "procedures?limits=3",
            "procedures?limit=1&limit=2",
            "engine?x=1",
            "procedures?cursor=1",
        ] {
            assert_eq!(site.get(path).await.status, 400, "{path}");
        }
        let mut long = String::from("procedures?filter=");
        for _ in 0..3_000 {
            write!(long, "%20")?;
        }
        assert_eq!(site.get(&long).await.status, 413);
        Ok(())
    })
}

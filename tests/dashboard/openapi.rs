//! The OpenAPI document says what is served, all of it and nothing else: each path in it
//! answers, each path that answers is in it, and every golden reply is as it says, without a
//! field that it does not name.

use std::collections::BTreeSet;
use std::path::Path;

use actix_web::test::TestRequest;
use procession::testkit::Trouble;
use serde_json::{Value, json};

use crate::act::post;
use crate::kit::{Reply, Site, Tested, at, near, site, text};
use crate::shapes::{ANSWERS, CHARTS, FLOWS, LOGS, REPLIES, SAGA_PLANS, SAGAS};

fn source(path: &str) -> Result<String, Trouble> {
    Ok(std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join(path),
    )?)
}

fn document() -> Result<Value, Trouble> {
    Ok(serde_json::from_str(&source("src/page/openapi.json")?)?)
}

fn paths(document: &Value) -> Vec<(String, Value)> {
    let paths = at(document, "/paths");
    let paths = paths.as_object().cloned().unwrap_or_default();
    paths.into_iter().collect()
}

/// Returns what stands between two texts, each time.
fn between<'a>(text: &'a str, begin: &'a str, end: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(begin).skip(1).filter_map(move |rest| rest.split(end).next())
}

/// Objects have no field that is not named.
fn strict(schema: &mut Value) {
    if let Some(object) = schema.as_object_mut() {
        if object.contains_key("properties") && !object.contains_key("additionalProperties") {
            object.insert("additionalProperties".to_owned(), json!(false));
        }
        object.values_mut().for_each(strict);
    }
    if let Some(items) = schema.as_array_mut() {
        items.iter_mut().for_each(strict);
    }
}

/// Holds a value against a schema of the document.
fn check(document: &Value, schema: &Value, value: &Value, name: &str) -> Tested {
    let mut components = at(document, "/components/schemas");
    strict(&mut components);
    let mut whole = json!({ "components": { "schemas": components } });
    if let (Some(whole), Some(schema)) = (whole.as_object_mut(), schema.as_object()) {
        whole.extend(schema.clone());
    }
    let validator = jsonschema::validator_for(&whole)?;
    let errors: Vec<String> = validator
        .iter_errors(value)
        .map(|error| format!("{} at {}", error, error.instance_path()))
        .collect();
    if errors.is_empty() {
        Ok(())
    } else {
        Err(format!("{name}: {}", errors.join("; ")).into())
    }
}

/// Tells whether a path is one of a template.
fn fits(template: &str, path: &str) -> bool {
    let (template, path): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
    let same = |(part, word): (&&str, &&str)| part.starts_with('{') || part == word;
    template.len() == path.len() && template.iter().zip(&path).all(same)
}

/// Returns the schema of what a request is answered with.
fn schema_of(document: &Value, path: &str, method: &str) -> Result<Value, Trouble> {
    let path = format!("/{}", path.split('?').next().unwrap_or_default());
    let mut found: Vec<(String, Value)> = paths(document);
    found.retain(|(template, item)| fits(template, &path) && item.get(method).is_some());
    // One without a parameter in that place is nearer.
    found.sort_by_key(|(template, _)| template.matches('{').count());
    let (_, item) = found
        .first()
        .ok_or_else(|| format!("{method} {path} is not in the document"))?;
    let place = format!("/{method}/responses/200/content/application~1json/schema");
    item.pointer(&place)
        .cloned()
        .ok_or_else(|| format!("{path} has no schema").into())
}

#[test]
fn golden_replies_are_as_it_says() -> Tested {
    let document = document()?;
    let problem = json!({ "$ref": "#/components/schemas/Problem" });
    let answers = ANSWERS.map(|(name, path, _)| (name, path, "post"));
    let replies = REPLIES.map(|(name, path)| (name, path, "get"));
    let flows = FLOWS.map(|(name, path)| (name, path, "get"));
    let charts = CHARTS.map(|(name, path)| (name, path, "get"));
    let logs = LOGS.map(|(name, path)| (name, path, "get"));
    let bulk = [("bulk", "procedures/6.0/bulk", "get")];
    let sagas = SAGAS.map(|(name, path)| (name, path, "get"));
    let plans = SAGA_PLANS.map(|(name, path, _)| (name, path, "post"));
    let all = replies
        .into_iter()
        .chain(charts)
        .chain(flows)
        .chain(answers)
        .chain(bulk);
    for (name, path, method) in all.chain(sagas).chain(plans).chain(logs) {
        let golden = source(&format!("tests/dashboard/golden/{name}.json"))?;
        // What the machine measured is left out of the golden files.
        let golden = golden.replace(
            "\"pulse\": \"measured\"",
            "\"pulse\": { \"step_ms\": 0, \"commits\": [] }",
        );
        let golden: Value = serde_json::from_str(&golden.replace("\"measured\"", "0"))?;
        let schema = if golden.get("remedy").is_some() {
            problem.clone()
        } else {
            schema_of(&document, path, method)?
        };
        check(&document, &schema, &golden, name)?;
    }
    Ok(())
}

#[test]
fn a_field_that_it_does_not_name_is_found() -> Tested {
    let document = document()?;
    let schema = schema_of(&document, "locks", "get")?;
    let mut golden: Value = serde_json::from_str(&source("tests/dashboard/golden/locks.json")?)?;
    check(&document, &schema, &golden, "locks")?;
    golden["more"] = json!(1);
    assert!(check(&document, &schema, &golden, "locks").is_err());
    Ok(())
}

async fn ask(site: &Site<'_>, template: &str, method: &str) -> Reply {
    let path = template.trim_start_matches('/');
    let path = path
        .replace("{id}", "1.0")
        .replace("{kind}", "job")
        .replace("{key}", "job");
    // A stream would not end: this one does not begin.
    let path = if path == "events" {
        format!("{path}?from=nonsense")
    } else {
        path
    };
    if method == "get" {
        return site.ask(near(TestRequest::get()), &path).await;
    }
    let wish = json!({ "filter": "a", "priority": 1, "name": "go" });
    post(site, &format!("{path}?dry_run=true"), &wish).await
}

#[test]
fn every_path_of_it_is_served() -> Tested {
    let document = document()?;
    site(async |site| {
        for (template, item) in paths(&document) {
            for method in item
                .as_object()
                .into_iter()
                .flatten()
                .map(|(method, _)| method.as_str())
            {
                let reply = ask(site, &template, method).await;
                let is_refused = ["path", "method"].contains(&text(&reply.body["kind"]).as_str());
                assert!(!is_refused, "{method} {template}: {}", reply.body);
                if reply.body.get("remedy").is_some() {
                    let schema = json!({ "$ref": "#/components/schemas/Problem" });
                    check(&document, &schema, &reply.body, &template)?;
                }
            }
        }
        Ok(())
    })
}

#[test]
fn every_path_that_is_served_is_in_it() -> Tested {
    let document = document()?;
    let known: BTreeSet<String> = paths(&document).into_iter().map(|(path, _)| path).collect();
    let routes = source("src/dashboard/routes.rs")?.replace("{key:.+}", "{key}") + &source("src/dashboard/saga.rs")?;
    let reads: Vec<&str> = between(&routes, "(read(\"", "\")").collect();
    let writes: Vec<&str> = between(&routes, "(write(\"", "\")").collect();
    assert!(
        reads.len() > 10 && writes.len() > 3,
        "the table is not read: {reads:?} {writes:?}"
    );
    for path in reads {
        assert!(known.contains(path), "GET {path} is not in the document");
    }
    let verbs: BTreeSet<&str> = procession::operate::VerbName::ALL
        .map(procession::operate::VerbName::as_str)
        .into();
    site(async |site| {
        for path in &writes {
            let all = if path.contains("{verb}") {
                verbs.clone()
            } else {
                BTreeSet::from([""])
            };
            for verb in all {
                let path = path.replace("{verb}", verb);
                let reply = ask(site, &path, "post").await;
                let kind = text(&reply.body["kind"]);
                let one_at_a_time = text(&reply.body["remedy"]).contains("one at a time");
                let is_served = kind != "path" && !one_at_a_time;
                assert_eq!(known.contains(&path), is_served, "POST {path}: {}", reply.body);
            }
        }
        Ok(())
    })
}

#[test]
fn each_path_names_its_right_and_every_sort_of_problem_is_named() -> Tested {
    let document = document()?;
    let rights = procession::dashboard::Right::ALL.map(procession::dashboard::Right::as_str);
    for (path, item) in paths(&document) {
        for (_, operation) in item.as_object().into_iter().flatten() {
            let right = text(&operation["x-right"]);
            assert!(rights.contains(&right.as_str()), "{path}: {right}");
        }
    }
    let named = at(&document, "/components/schemas/Problem/properties/kind/enum");
    let named: BTreeSet<String> = named.as_array().into_iter().flatten().map(text).collect();
    let problems = source("src/dashboard/problem.rs")?;
    let found: BTreeSet<String> = between(&problems, "StatusCode::", ")")
        .filter_map(|rest| rest.split('"').nth(1))
        .map(str::to_owned)
        .collect();
    assert!(
        found.is_subset(&named),
        "not named: {:?}",
        found.difference(&named).collect::<Vec<_>>()
    );
    assert!(found.len() > 10, "{found:?}");
    Ok(())
}

#[test]
fn it_is_served() -> Tested {
    site(async |site| {
        let served = site.body("openapi.json").await?;
        assert_eq!(served, document()?);
        assert_eq!(served["openapi"], "3.1.0");
        Ok(())
    })
}

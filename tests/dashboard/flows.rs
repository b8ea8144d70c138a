//! Sets in lists and as graphs: every figure is the engine's own answer.

use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use procession::Builder;
use procession::StageError;
use procession::dashboard::{Grant, Part, Redact};
use procession::flow::{Node, NodeContext, Processed, Processor, Set, SetHandle, Stream, When};
use procession::operate::OperatorRequest;
use procession::testkit::{Trouble, World};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::kit::{Job, Site, Tested, at, everybody, ids, newest, site, site_in, text};

/// Succeeds, unless it is the node `small` while the disk is full.
#[derive(Serialize, Deserialize)]
pub(crate) struct Draw;

impl Processor for Draw {
    const NAME: &'static str = "draw";
    type Env = Arc<AtomicBool>;
    type Output = u32;

    async fn process(&self, cx: &mut NodeContext<'_>, is_full: &Self::Env) -> Result<Processed<u32>, StageError> {
        if cx.name() == "small" && is_full.load(Ordering::Relaxed) {
            return Err(StageError::fail("the disk is full"));
        }
        if cx.name().starts_with("inv") {
            cx.note(&"sent")?;
        }
        Ok(Processed::Done(1))
    }
}

pub(crate) fn drawing(is_full: bool) -> (Arc<AtomicBool>, impl Fn(Builder) -> Builder) {
    let disk = Arc::new(AtomicBool::new(is_full));
    let env = Arc::clone(&disk);
    (disk, move |builder: Builder| {
        builder.processor::<Draw>(Arc::clone(&env)).streams()
    })
}

/// Two sizes of a picture, the small one fails, and what follows both.
pub(crate) async fn album<'a>(site: &Site<'a>, name: &str) -> Result<SetHandle, Trouble> {
    let mut set = Set::builder(name);
    let fetch = set.add(Node::new("fetch", Draw));
    let small = set.add(Node::new("small", Draw).after([fetch]));
    let large = set.add(Node::new("large", Draw).after([fetch]));
    set.add(Node::new("publish", Draw).after([small, large]).when(When::AtLeast(2)));
    start(site, set.build()?, name).await
}

/// A stream whose first node has ended and whose second fails, with so many behind it.
pub(crate) async fn backlog(site: &Site<'_>, more: u32) -> Result<Stream, Trouble> {
    let stream = site.run.executor.stream("invoices", "customer-17")?;
    let nodes = [Node::new("inv 1", Draw), Node::new("small", Draw)].into_iter();
    let nodes = nodes.chain((0..more).map(|number| Node::new(format!("inv {}", number + 2), Draw)));
    site.run.wait(stream.extend(nodes)).await??;
    site.run.settle().await;
    site.shown().await?;
    Ok(stream)
}

pub(crate) async fn start(site: &Site<'_>, set: Set, key: &str) -> Result<SetHandle, Trouble> {
    let started = site.run.executor.start_set(set).key(key).into_future();
    let handle = site.run.wait(started).await??;
    site.run.settle().await;
    site.shown().await?;
    Ok(handle)
}

/// Compares a set in the list with what the engine says of it.
pub(crate) async fn assert_told(site: &Site<'_>, set: &SetHandle, filter: &str) -> Tested {
    let body = site.body(&format!("flows?filter=root:{}{filter}", set.id())).await?;
    assert_eq!(ids(&body), [set.id().to_string()], "{body}");
    let (shown, status) = (at(&body, "/items/0"), set.status().await?);
    assert_eq!(at(&shown, "/sort"), "set");
    assert_eq!(text(&at(&shown, "/state")), status.state.to_string());
    assert_eq!(at(&shown, "/counts"), json!(status.counts));
    assert_eq!(text(&at(&shown, "/since")), status.since.to_string());
    assert_eq!(at(&shown, "/pending"), json!(status.pending));
    Ok(())
}

/// Compares the graph of a set with what the engine says of its nodes.
pub(crate) async fn assert_drawn(site: &Site<'_>, set: &SetHandle) -> Tested {
    let graph = site.body(&format!("procedures/{}/graph", set.id())).await?;
    let items = at(&graph, "/items");
    let nodes = set.nodes(0, 1_000).await?.items;
    assert_eq!(at(&graph, "/total"), nodes.len());
    for (shown, node) in items.as_array().into_iter().flatten().zip(&nodes) {
        assert_eq!(text(&at(shown, "/id")), node.id.to_string());
        assert_eq!(text(&at(shown, "/name")), node.name);
        assert_eq!(text(&at(shown, "/node")), node.state.to_string(), "{shown}");
        assert_eq!(at(shown, "/why"), json!(node.reason), "{shown}");
    }
    let counts = set.status().await?.counts;
    assert_eq!(
        at(&graph, "/counts")
            .get("PENDING")
            .and_then(Value::as_u64)
            .unwrap_or(0),
        u64::from(counts.pending)
    );
    Ok(())
}

#[test]
fn a_set_is_told_as_the_engine_reads_it_also_after_a_restart_and_at_its_end() -> Tested {
    let (disk, engine) = drawing(true);
    let world = World::new();
    site_in(&world, &engine, everybody, async |site| {
        let set = album(site, "album 7").await?;
        assert_told(site, &set, "").await?;
        assert_drawn(site, &set).await?;
        let body = site.body("flows").await?;
        let shown = &body["items"][0];
        assert_eq!((&shown["name"], &shown["key"]), (&json!("album 7"), &json!("album 7")));
        assert_eq!(
            (&shown["state"], &shown["pending"]),
            (&json!("PENDING"), &json!(["small"]))
        );
        Ok(())
    })?;
    site_in(&world, &engine, everybody, async |site| {
        let found = site.body("flows").await?;
        let id = text(&found["items"][0]["id"]).parse()?;
        let set = site.run.executor.set_handle(id);
        // Nodes that had ended before are read behind the start.
        while site.body("flows").await?["items"][0]["counts"].is_null() {
            site.run.settle().await;
        }
        assert_told(site, &set, "").await?;
        disk.store(false, Ordering::Relaxed);
        set.retry("small", OperatorRequest::new("ann", "room was made")).await?;
        site.run.settle().await;
        site.shown().await?;
        assert_eq!(ids(&site.body("flows").await?), Vec::<String>::new(), "it has ended");
        assert_told(site, &set, "%20state:ended").await?;
        assert_drawn(site, &set).await?;
        assert_eq!(ids(&site.body("flows?filter=state:ended%20name:album").await?).len(), 1);
        assert_eq!(ids(&site.body("flows?filter=state:ended%20name:other").await?).len(), 0);
        Ok(())
    })
}

#[test]
fn a_set_is_counted_while_its_nodes_end() -> Tested {
    let (_, engine) = drawing(false);
    site_in(&World::new(), &engine, everybody, async |site| {
        let by = || OperatorRequest::new("ann", "a look");
        let what = procession::operate::PauseScope::Kind("draw".into());
        site.run.executor.pause(what.clone(), by()).await?;
        let mut sets = Vec::new();
        for name in ["one", "two", "three"] {
            sets.push(album(site, name).await?);
        }
        for set in &sets {
            assert_told(site, set, "").await?;
        }
        assert_eq!(site.body("flows").await?["items"][0]["state"], "INIT");
        let page = site.body("flows?limit=2").await?;
        assert_eq!(ids(&page).len(), 2);
        let rest = site
            .body(&format!("flows?limit=2&cursor={}", text(&page["cursor"])))
            .await?;
        assert_eq!(
            (ids(&rest), &rest["cursor"]),
            (vec![sets[2].id().to_string()], &Value::Null)
        );
        let latest: Vec<String> = sets.iter().rev().map(|set| set.id().to_string()).collect();
        assert_eq!(newest(site, "flows", "", 2).await?, latest, "live ones");
        site.run.executor.resume(what, by()).await?;
        site.run.settle().await;
        site.shown().await?;
        for set in &sets {
            assert_told(site, set, "%20state:live,ended").await?;
        }
        for limit in [1, 2, 500] {
            assert_eq!(
                newest(site, "flows", "state:ended", limit).await?,
                latest,
                "{limit} a page"
            );
        }
        Ok(())
    })
}

#[test]
fn a_graph_of_many_nodes_is_grouped_by_layer_and_state_and_lists_each() -> Tested {
    let (_, engine) = drawing(true);
    site_in(&World::new(), &engine, everybody, async |site| {
        let mut set = Set::builder("many");
        let first = set.add(Node::new("small", Draw));
        let free = set.add(Node::new("free", Draw));
        let behind: Vec<_> = (0..400)
            .map(|number| {
                set.add(Node::new(format!("n{number}"), Draw).after([if number % 2 == 0 { first } else { free }]))
            })
            .collect();
        set.add(Node::new("last", Draw).after(behind));
        let handle = start(site, set.build()?, "many").await?;
        let graph = site.body(&format!("procedures/{}/graph", handle.id())).await?;
        assert_eq!((&graph["total"], &graph["truncated"]), (&json!(403), &json!(false)));
        assert_eq!(ids(&graph).len(), 403, "none is missing");
        let groups: Vec<Value> = graph["groups"].as_array().cloned().unwrap_or_default();
        let told: Vec<(Value, Value, Value, Value)> = groups
            .iter()
            .map(|group| {
                ["layer", "standing", "count", "after"]
                    .map(|name| group[name].clone())
                    .into()
            })
            .collect();
        let group = |layer: u32, standing: &str, count: u32, after: &[u32]| {
            (json!(layer), json!(standing), json!(count), json!(after))
        };
        assert_eq!(
            told,
            [
                group(0, "PENDING", 1, &[]),
                group(0, "SUCCESS", 1, &[]),
                group(1, "PENDING", 200, &[0]),
                group(1, "SUCCESS", 200, &[1]),
                group(2, "PENDING", 1, &[2, 3]),
            ]
        );
        let small = site.body(&format!("procedures/{}/graph?max=500", handle.id())).await?;
        assert_eq!(small.get("groups"), None);
        assert_drawn(site, &handle).await
    })
}

#[test]
fn a_large_set_that_has_ended_is_not_counted_and_the_small_one_behind_it_is() -> Tested {
    let (_, engine) = drawing(false);
    site_in(&World::new(), &engine, everybody, async |site| {
        let mut set = Set::builder("large");
        for number in 0..20_000 {
            set.add(Node::new(format!("n{number}"), Draw));
        }
        let large = start(site, set.build()?, "large").await?;
        let small = album(site, "album 7").await?;
        let items = at(&site.body("flows?filter=state:ended").await?, "/items");
        assert_eq!(
            (&items[0]["id"], &items[0]["state"], &items[0]["counts"]),
            (&json!(large.id().to_string()), &json!("FINISH"), &Value::Null)
        );
        assert_eq!(
            (&items[1]["id"], &items[1]["counts"]["success"]),
            (&json!(small.id().to_string()), &json!(4))
        );
        Ok(())
    })
}

#[test]
fn a_graph_says_that_its_figures_are_of_the_first_members_alone() -> Tested {
    let (_, engine) = drawing(false);
    site_in(&World::new(), &engine, everybody, async |site| {
        let by = OperatorRequest::new("ann", "a look");
        site.run
            .executor
            .pause(procession::operate::PauseScope::All, by)
            .await?;
        let mut set = Set::builder("large");
        for number in 0..10_000 {
            set.add(Node::new(format!("n{number}"), Draw));
        }
        let large = start(site, set.build()?, "large").await?;
        let graph = site.body(&format!("procedures/{}/graph", large.id())).await?;
        assert_eq!((&graph["total"], &graph["of_first"]), (&json!(9_999), &json!(10_000)));
        let small = album(site, "album 7").await?;
        let graph = site.body(&format!("procedures/{}/graph", small.id())).await?;
        assert_eq!((&graph["total"], graph.get("of_first")), (&json!(4), None));
        Ok(())
    })
}

#[test]
fn a_family_with_gates_is_drawn_too_and_its_members_stand_as_procedures() -> Tested {
    site(async |site| {
        let root = site.submit(Job::AskFirst("drop t?".to_owned(), 2), "a").await?;
        let graph = site.body(&format!("procedures/{root}/graph")).await?;
        let items = graph["items"].as_array().cloned().unwrap_or_default();
        let layers: Vec<Value> = items.iter().map(|node| node["layer"].clone()).collect();
        assert_eq!(layers, [0, 1, 2]);
        assert_eq!(
            (&items[0]["node"], &items[0]["question"]),
            (&Value::Null, &json!("drop t?"))
        );
        assert_eq!(graph["counts"], json!({ "asks": 1, "waiting · gate": 2 }));
        assert_eq!(items[1]["opens"], "all_succeeded");
        let lone = site.submit(Job::Wait("go".to_owned()), "b").await?;
        let graph = site.body(&format!("procedures/{lone}/graph")).await?;
        assert_eq!((&graph["items"], &graph["total"]), (&json!([]), &json!(0)));
        for unknown in ["99".to_owned(), format!("{}.99", root.family)] {
            assert_eq!(site.get(&format!("procedures/{unknown}/graph")).await.status, 404);
        }
        Ok(())
    })
}

/// Hides questions and error texts.
struct Hidden;

impl Redact for Hidden {
    fn redact(&self, _: &str, part: Part, value: &mut Value, _: &Grant) {
        if [Part::Question, Part::Error].contains(&part) {
            *value = json!("***");
        } else if part == Part::Note {
            *value = json!("noted");
        }
    }
}

#[test]
fn what_is_hidden_is_hidden_in_lists_and_graphs() -> Tested {
    let (_, engine) = drawing(true);
    let hidden = |dashboard| everybody(dashboard).redact(Hidden);
    site_in(&World::new(), &engine, hidden, async |site| {
        let set = album(site, "album 7").await?;
        let stream = backlog(site, 2).await?.open().await?;
        let queue = format!("procedures/{stream}/queue");
        for path in [
            "flows".to_owned(),
            format!("procedures/{}/graph", set.id()),
            queue.clone(),
        ] {
            let body = site.body(&path).await?;
            assert!(!body.to_string().contains("the disk is full"), "{body}");
        }
        let graph = site.body(&format!("procedures/{}/graph", set.id())).await?;
        assert_eq!(at(&graph, "/items/1/question"), "***");
        let queue = site.body(&queue).await?;
        assert_eq!(at(&queue, "/in_hand/question"), "***");
        assert_eq!(at(&queue, "/records/0/note"), json!("noted"));
        Ok(())
    })
}

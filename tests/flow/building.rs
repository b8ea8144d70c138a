//! What a builder refuses, in which words; how large a set may be; what a key stands for; a procedure as a node.

use std::future::IntoFuture;
use std::thread;

use procession::errors::SubmitError;
use procession::flow::{Node, NodeState, OnError, Problem, Set, SetState, When};
use procession::operate::PauseScope;
use procession::procedure::{Kind, RetryPolicy};
use procession::status::ProcedureState;
use procession::testkit::{FaultPlan, Run, Trouble, World};
use procession::{Children, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use crate::kit::{Bulky, Lab, Tested, Work, by, done, ended, enumerate_in, kinds, live, set, start, state, states};

/// Returns what is wrong with a set of these nodes.
fn wrong(nodes: impl IntoIterator<Item = Node>) -> Vec<String> {
    let mut set = Set::builder("a set");
    for node in nodes {
        set.add(node);
    }
    problems(set)
}

fn problems(set: procession::flow::SetBuilder) -> Vec<String> {
    match set.build() {
        Ok(_) => Vec::new(),
        Err(error) => error.problems.iter().map(ToString::to_string).collect(),
    }
}

#[test]
fn f_041_shapes_that_are_refused() -> Tested {
    assert_eq!(wrong([]), ["the set has no node: add at least one"]);
    let circle = [done("a").after(["c"]), done("b").after(["a"]), done("c").after(["b"])];
    assert_eq!(wrong(circle), ["cycle: a -> b -> c -> a"]);
    assert_eq!(wrong([done("a").after(["a"])]), ["cycle: a -> a"]);
    let beside = [
        done("x"),
        done("y").after(["x"]),
        done("a").after(["b"]),
        done("b").after(["a", "x"]),
    ];
    assert_eq!(wrong(beside), ["cycle: a -> b -> a"]);
    assert_eq!(
        wrong([done("d").after(["x"])]),
        ["node \"d\" follows \"x\", which is not in the set"]
    );
    assert_eq!(
        wrong([done("b"), done("d").after(["b", "b", "b"])]),
        ["node \"d\" follows \"b\" twice"]
    );
    let mut other = Set::builder("another");
    let stranger = other.add(done("s"));
    assert_eq!(
        wrong([done("d").after([stranger])]),
        ["node \"d\" follows a node of another builder"]
    );
    let mut edges = Set::builder("edges");
    edges.add(done("a"));
    edges.edge("a", "z");
    assert_eq!(
        problems(edges),
        ["an edge leads from \"a\" to \"z\", which is not in the set"]
    );
    Ok(())
}

#[test]
fn f_041_first_and_last_nodes() -> Tested {
    let ends = || {
        let mut set = Set::builder("ends");
        let (a, x) = (set.add(done("a")), set.add(done("x")));
        set.add(done("y").after([a, x]));
        set.add(done("z").after([a, x]));
        set
    };
    assert!(ends().build().is_ok());
    let mut single = ends();
    single.single_ended();
    assert_eq!(
        problems(single),
        [
            "the set has 2 first nodes (a, x), and single_ended asks for one",
            "the set has 2 last nodes (y, z), and single_ended asks for one"
        ]
    );
    Ok(())
}

#[test]
fn f_041_names_that_are_refused() -> Tested {
    assert!(wrong([done(&"a".repeat(200))]).is_empty());
    assert!(wrong([done(&"畫".repeat(200))]).is_empty());
    assert_eq!(
        wrong([done(&"a".repeat(201))]),
        ["node name \"aaaaaaaaaa…\" has 201 characters, at most 200"]
    );
    assert_eq!(wrong([done("")]), ["a node name is empty: give it 1 to 200 characters"]);
    assert_eq!(wrong([done("N/A")]), ["node name \"N/A\" is reserved: choose another"]);
    assert_eq!(
        wrong([done("a\nb")]),
        ["node name \"a\\nb\" has a control character: leave it out"]
    );
    assert_eq!(
        wrong([done("a"), done("b"), done("b")]),
        ["node \"b\" is there twice: names are unique in a set"]
    );
    Ok(())
}

#[test]
fn f_041_strategies_and_values_that_are_refused() -> Tested {
    let behind = |when: When| {
        [
            done("b"),
            done("c"),
            done("e"),
            done("d").after(["b", "c", "e"]).when(when),
        ]
    };
    assert_eq!(
        wrong(behind(When::AtLeast(4))),
        ["node \"d\": AtLeast needs 1 to 3, the number of its parents, got 4"]
    );
    assert_eq!(
        wrong(behind(When::AtLeast(0))),
        ["node \"d\": AtLeast needs 1 to 3, the number of its parents, got 0"]
    );
    assert_eq!(
        wrong([
            done("b"),
            done("c"),
            done("d").after(["b", "c"]).when(When::Named(vec!["z".to_owned()]))
        ]),
        ["node \"d\": Named lists \"z\", which is not a parent (parents: b, c)"]
    );
    assert_eq!(
        wrong(behind(When::Named(Vec::new()))),
        ["node \"d\": Named lists no parent"]
    );
    assert_eq!(
        wrong([done("a").when(When::AtLeast(1))]),
        ["node \"a\" has no parent, so AtLeast(1) can never open"]
    );
    let attempts = |attempts| RetryPolicy::default().attempts(attempts);
    assert_eq!(
        wrong([done("b").retry(attempts(1_001))]),
        ["node \"b\": 1001 attempts, at most 1000"]
    );
    assert_eq!(
        wrong([done("b").retry(attempts(0))]),
        ["node \"b\": 0 attempts, at least 1"]
    );
    let slow = RetryPolicy::default().base(std::time::Duration::from_hours(25));
    assert_eq!(
        wrong([done("b").retry(slow)]),
        ["node \"b\": a delay of 90000 s, at most 86400"]
    );
    let procedure = Node::procedure("p", Undone { fails: false }).retry(attempts(2));
    assert_eq!(
        wrong([procedure]),
        ["node \"p\" is a procedure, which has retries of its own: set it there"]
    );
    let large = Node::new("b", Text("x".repeat(1_200_000)));
    let text = wrong([large]);
    assert!(text[0].starts_with("node \"b\": its data is 12000"), "{text:?}");
    assert!(text[0].ends_with(" bytes, at most 1048576"), "{text:?}");
    Ok(())
}

#[test]
fn f_041_many_faults_are_counted() -> Tested {
    let mut set = Set::builder("a set");
    for place in 0..25 {
        set.add(done(&format!("n{place}")).after(["nobody"]));
    }
    let Err(error) = set.build() else {
        return Err("it has faults".into());
    };
    assert_eq!((error.problems.len(), error.more), (20, 5));
    assert!(error.to_string().ends_with("; and 5 more"), "{error}");
    assert!(matches!(&error.problems[0], Problem::UnknownParent { node, .. } if node == "n0"));
    Ok(())
}

#[test]
fn f_041_a_start_that_is_refused_leaves_nothing() -> Tested {
    live(&Lab::default(), async |run| {
        let before = run.store.commits();
        let nodes = [done("a"), Node::new("b", Text("x".to_owned())).after(["a"])];
        let refused = run.wait(run.executor.start_set(set(nodes)?)).await?;
        let text = refused.err().map(|error| error.to_string());
        assert_eq!(
            text.as_deref(),
            Some("no procedure of kind \"text\" is registered; register it with the builder")
        );
        for width in [0, 10_001] {
            let refused = run.wait(run.executor.start_set(set([done("a")])?).width(width)).await?;
            assert!(matches!(refused, Err(SubmitError::BadChildren { .. })), "{width}");
        }
        assert_eq!(run.store.commits(), before);
        Ok(())
    })
}

/// A processor that is registered nowhere.
#[derive(Serialize, Deserialize)]
struct Text(String);

impl procession::flow::Processor for Text {
    const NAME: &'static str = "text";
    type Env = ();
    type Output = ();

    async fn process(
        &self,
        _: &mut procession::flow::NodeContext<'_>,
        (): &(),
    ) -> Result<procession::flow::Processed<()>, StageError> {
        Ok(procession::flow::Processed::Done(()))
    }
}

/// Builds on a stack that recursion would not fit on.
fn on_a_small_stack(build: impl FnOnce() -> Result<Set, String> + Send + 'static) -> Result<Set, Trouble> {
    let thread = thread::Builder::new().stack_size(1 << 20).spawn(build)?;
    Ok(thread.join().map_err(|_| "it panicked")??)
}

fn lattice(diamonds: usize) -> Result<Set, String> {
    let mut set = Set::builder("lattice");
    let mut last = set.add(done("0"));
    for place in 1..=diamonds {
        let left = set.add(done(&format!("l{place}")).after([last]));
        let right = set.add(done(&format!("r{place}")).after([last]));
        last = set.add(done(&place.to_string()).after([left, right]));
    }
    set.build().map_err(|error| error.to_string())
}

#[test]
fn f_042_size_of_validation() -> Tested {
    // 2 to the power of 30 paths.
    assert_eq!(on_a_small_stack(|| lattice(30))?.len(), 91);
    let chain = on_a_small_stack(|| {
        let mut set = Set::builder("chain");
        // The last one first, so that another order has to be found.
        for place in (0..100_000).rev() {
            let node = done(&place.to_string());
            set.add(if place == 0 {
                node
            } else {
                node.after([(place - 1).to_string()])
            });
        }
        set.build().map_err(|error| error.to_string())
    })?;
    assert_eq!(chain.len(), 100_000);
    let fan_in = on_a_small_stack(|| {
        let mut set = Set::builder("fan-in");
        let first: Vec<_> = (0..10_000).map(|place| set.add(done(&place.to_string()))).collect();
        set.add(done("last").after(first));
        set.build().map_err(|error| error.to_string())
    })?;
    assert_eq!(fan_in.len(), 10_001);
    let wide = on_a_small_stack(|| {
        let mut set = Set::builder("wide");
        let first: Vec<_> = (0..3).map(|place| set.add(done(&format!("f{place}")))).collect();
        for place in 3..100_000 {
            set.add(done(&place.to_string()).after(first.clone()));
        }
        set.build().map_err(|error| error.to_string())
    })?;
    assert_eq!(wide.len(), 100_000);
    Ok(())
}

#[test]
fn f_042_a_lattice_and_a_fan_in_run() -> Tested {
    live(&Lab::default(), async |run| {
        let before = run.store.commits();
        let handle = start(run, lattice(30)?).await?;
        assert_eq!(ended(run, &handle).await?, "91 SUCCESS");
        assert_eq!(run.store.commits() - before, 92);
        assert_eq!(state(run, &handle).await?, SetState::Finish);

        let before = run.store.commits();
        let mut set = Set::builder("fan-in");
        let first: Vec<_> = (0..2_000).map(|place| set.add(done(&place.to_string()))).collect();
        set.add(done("last").after(first));
        let handle = run.wait(run.executor.start_set(set.build()?)).await??;
        assert_eq!(ended(run, &handle).await?, "2001 SUCCESS");
        assert_eq!(run.store.commits() - before, 2_002);
        Ok(())
    })
}

#[test]
fn nodes_stand_in_an_order_in_which_parents_come_first() -> Tested {
    live(&Lab::default(), async |run| {
        let mut set = Set::builder("backwards");
        set.add(done("c").after(["b"]));
        set.add(done("b"));
        set.add(done("a"));
        set.edge("a", "b");
        let handle = start(run, set.build()?).await?;
        assert_eq!(ended(run, &handle).await?, "3 SUCCESS");
        let nodes = handle.nodes(0, 10).await?.items;
        let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        Ok(())
    })
}

#[test]
fn f_043_the_key_covers_the_set() -> Tested {
    live(&Lab::default(), async |run| {
        let nodes = |edge: bool| {
            let c = done("c").after(["a"]);
            [done("a"), done("b").after(["a"]), if edge { c.after(["b"]) } else { c }]
        };
        let first = run.wait(run.executor.start_set(set(nodes(false))?).key("k")).await??;
        let again = run.wait(run.executor.start_set(set(nodes(false))?).key("k")).await??;
        assert_eq!(first.id(), again.id());
        let other = run.wait(run.executor.start_set(set(nodes(true))?).key("k")).await?;
        assert!(matches!(other, Err(SubmitError::KeyConflict { id, .. }) if id == first.id()));
        let status = run.executor.status(first.id()).await?;
        assert_eq!(status.name.as_deref(), Some("a set"));
        Ok(())
    })
}

#[test]
fn f_043_a_paused_kind_reads_init() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        run.executor.pause(PauseScope::Kind(Kind::from("work")), by()).await?;
        let handle = start(run, set([done("a"), done("b").after(["a"])])?).await?;
        assert_eq!(state(run, &handle).await?, SetState::Init);
        assert_eq!(states(run, &handle).await?, "a READY, b WAIT");
        assert!(lab.line().is_empty());
        run.executor.resume(PauseScope::Kind(Kind::from("work")), by()).await?;
        assert_eq!(ended(run, &handle).await?, "2 SUCCESS");
        Ok(())
    })
}

/// Two stages: the first spawns two children, the second ends, or fails. Both can be undone.
#[derive(Clone, Serialize, Deserialize)]
struct Undone {
    fails: bool,
}

impl Procedure for Undone {
    const KIND: &'static str = "undone";
    type Stage = u8;
    type Env = Lab;
    type Output = ();

    fn first(&self) -> u8 {
        1
    }

    async fn execute(&mut self, stage: u8, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        if stage == 1 {
            let children = Children::of(&[Leaf, Leaf])?;
            return Ok(Step::Spawn { children, then: 2 });
        }
        if self.fails {
            return Err(StageError::fail("its second stage fails"));
        }
        cx.put("rows", "undone", &true)?;
        Ok(Step::Done(()))
    }

    async fn rollback(&mut self, stage: u8, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        cx.env().note(format!("undone {stage}"));
        Ok(())
    }
}

#[derive(Clone, Serialize, Deserialize)]
struct Leaf;

impl Procedure for Leaf {
    const KIND: &'static str = "leaf";
    const ROLLBACK: bool = false;
    type Stage = ();
    type Env = ();
    type Output = ();

    fn first(&self) {}

    async fn execute(&mut self, (): (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Ok(Step::Done(()))
    }
}

fn with_procedures(lab: &Lab, builder: procession::Builder) -> procession::Builder {
    kinds(lab, builder)
        .register::<Undone>(lab.clone())
        .register::<Leaf>(())
        .register::<Spawning>(())
}

#[test]
fn f_043_a_procedure_as_a_node() -> Tested {
    let nodes = |fails| {
        let p = Node::procedure("p", Undone { fails }).after(["a"]);
        vec![done("a"), p, done("z").after(["p"])]
    };
    let (enumerated, lab) = enumerate_in(
        with_procedures,
        || nodes(false),
        async |_, run, set| {
            assert_eq!(ended(run, set).await?, "3 SUCCESS");
            Ok(())
        },
    )?;
    assert_eq!((enumerated.commits, lab.line().as_str()), (7, "a z"));

    let (enumerated, lab) = enumerate_in(
        with_procedures,
        || nodes(true),
        async |_, run, set| {
            assert_eq!(states(run, set).await?, "a SUCCESS, p ERROR, z PENDING");
            let p = set.node("p").await?;
            assert_eq!(p.cause.as_deref(), Some("its second stage fails"));
            assert_eq!(run.executor.status(p.id).await?.state, ProcedureState::RolledBack);
            Ok(())
        },
    )?;
    assert_eq!((enumerated.commits, lab.line().as_str()), (8, "a"));
    Ok(())
}

#[test]
fn a_set_of_procedures_alone() -> Tested {
    let nodes = || [Node::procedure("p", Leaf), Node::procedure("q", Leaf).after(["p"])];
    let without = |builder: procession::Builder| builder.register::<Leaf>(());
    let refused = async |run: &Run| {
        let refused = run.wait(run.executor.start_set(set(nodes())?)).await?;
        assert!(matches!(refused, Err(SubmitError::UnknownKind { kind }) if kind.as_str() == "procession.set"));
        Ok(())
    };
    World::new().run(FaultPlan::none(), without, refused)?.done()?;
    let with = |builder: procession::Builder| builder.register::<Leaf>(()).sets().sets();
    let runs = async |run: &Run| {
        let handle = start(run, set(nodes())?).await?;
        assert_eq!(ended(run, &handle).await?, "2 SUCCESS");
        Ok(())
    };
    World::new().run(FaultPlan::none(), with, runs)?.done()
}

/// Spawns the graph of a set from a stage of its own, and fails behind it if it is told so.
#[derive(Serialize, Deserialize)]
struct Spawning {
    fails: bool,
}

impl Procedure for Spawning {
    const KIND: &'static str = "spawning";
    type Stage = u8;
    type Env = ();
    type Output = usize;

    fn first(&self) -> u8 {
        1
    }

    async fn execute(&mut self, stage: u8, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        if stage == 1 {
            let mut set = Set::builder("its own");
            let a = set.add(done("a"));
            let p = set.add(Node::procedure("p", Undone { fails: false }).after([a]));
            set.add(done("z").after([p]).on_error(OnError::Continue).when(When::AllFinished));
            let set = set.build().map_err(StageError::fail)?;
            return Ok(Step::Spawn {
                children: set.into_children(),
                then: 2,
            });
        }
        if self.fails {
            return Err(StageError::fail("behind the graph"));
        }
        Ok(Step::Done(
            cx.children().iter().filter(|child| child.succeeded()).count(),
        ))
    }
}

#[test]
fn f_043_a_graph_of_a_stage_of_ones_own() -> Tested {
    for fails in [false, true] {
        let lab = Lab::default();
        let drive = async |run: &Run| {
            let submitted = run
                .wait(run.executor.submit(Spawning { fails }).into_future())
                .await??;
            let outcome = run.wait(submitted.outcome()).await?;
            assert_eq!(outcome.ok(), (!fails).then_some(3));
            Ok(())
        };
        World::new()
            .run(FaultPlan::none(), |builder| with_procedures(&lab, builder), drive)?
            .done()?;
        assert_eq!(lab.line(), "a z");
        let undone: Vec<String> = lab
            .noted()
            .into_iter()
            .filter(|note| note.starts_with("undone"))
            .collect();
        let expected: &[&str] = if fails { &["undone 2", "undone 1"] } else { &[] };
        assert_eq!(undone, expected);
    }
    Ok(())
}

#[test]
fn readings_are_typed() -> Tested {
    live(&Lab::default(), async |run| {
        let handle = start(run, set([done("a")])?).await?;
        assert_eq!(run.wait(handle.output::<Work>("a")).await??, 1);
        let other = run.wait(handle.output::<Bulky>("a")).await?;
        let text = other.err().map(|error| error.to_string());
        assert_eq!(text.as_deref(), Some("node \"a\" is one of \"work\", not of \"bulky\""));
        assert_eq!(handle.node("a").await?.state, NodeState::Success);
        Ok(())
    })
}

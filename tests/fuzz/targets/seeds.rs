//! Seeds: small inputs from real journals, made by engines that were stopped in the
//! middle of this and that. With `PROCESSION_SEEDS=write` the tests write them anew.

use std::future::IntoFuture;
use std::sync::OnceLock;
use std::time::Duration;

use futures::executor::block_on;
use procession::ProcedureId;
use procession::operate::{OperatorRequest, PauseScope};
use procession::provider::{Batch, JournalStore, Space};
use procession::testkit::{FaultPlan, Run, Trouble, World};
use procession_actors::journal::{EmbeddedStore, SyncMode, keys};
use procession_actors::testkit::format;
use procession_kernel::{Record, Seq};

use super::kinds::{self, Plain, Script, Stuck};
use super::recovery::{self, Entry, SOUND};

/// Returns the entries of the sound family, which sleeps, with one stage behind it and one before it.
pub(crate) fn sound() -> Result<Vec<Entry>, Trouble> {
    static MADE: OnceLock<Result<Vec<Entry>, String>> = OnceLock::new();
    let made = MADE.get_or_init(|| make_sound().map_err(|error| error.to_string()));
    Ok(made.clone()?)
}

fn make_sound() -> Result<Vec<Entry>, Trouble> {
    let world = World::new();
    let reserved = format::writes(&[Record::FamiliesReserved(SOUND)])?;
    let reserved = reserved
        .writes()
        .filter_map(|write| Some((write.space.clone(), write.key, write.value?)));
    world.disk.import(Seq::default(), reserved);
    let submit = async |run: &Run| {
        let script = script(&[kinds::NEXT, kinds::SLEEP, kinds::NEXT], Vec::new());
        let id = run.wait(run.executor.submit(Plain(script)).into_future()).await??.id();
        assert_eq!(id, ProcedureId::root(SOUND));
        run.settle().await;
        Ok(())
    };
    world.run(FaultPlan::none(), kinds::register, submit)?.done()?;
    let mut entries = dump(&world);
    entries.retain(|(_, key, _)| key.starts_with(&SOUND.to_be_bytes()));
    Ok(entries)
}

fn script(acts: &[u8], children: Vec<Script>) -> Script {
    Script {
        acts: acts.to_vec(),
        children,
        lock: None,
    }
}

fn dump(world: &World) -> Vec<Entry> {
    let of = |space: Space| {
        let entries = world.disk.dump(&space);
        entries.into_iter().map(move |(key, value)| (space.clone(), key, value))
    };
    Space::ENGINE.into_iter().flat_map(of).collect()
}

/// Worlds in which an engine was stopped, each with its name.
fn worlds() -> Result<Vec<(&'static str, World)>, Trouble> {
    let leaf = |acts: &[u8]| script(acts, Vec::new());
    let locked = Script {
        lock: Some("a/b".to_owned()),
        ..leaf(&[kinds::NEXT, kinds::WAIT])
    };
    let two = || vec![leaf(&[kinds::WAIT]), leaf(&[kinds::NEXT, kinds::SLEEP])];
    let family = || script(&[kinds::WRITE, kinds::SPAWN], two());
    let asking = script(&[kinds::SPAWN_ASKING], two());
    let failing = script(&[kinds::NEXT, kinds::SPAWN, kinds::FAIL], vec![leaf(&[kinds::NEXT])]);
    let plain = [
        leaf(&[kinds::NEXT]),
        locked.clone(),
        family(),
        asking,
        leaf(&[kinds::NEXT, kinds::RETRY]),
    ];
    let mut worlds = Vec::new();
    for (name, plain, stuck) in [
        ("waiting", &plain[..1], vec![]),
        ("locked", &[locked.clone(), locked][..], vec![]),
        ("family", &plain[2..3], vec![]),
        ("asking", &plain[3..4], vec![]),
        ("retrying", &plain[4..5], vec![]),
        ("rolling_back", &[failing.clone()][..], vec![]),
        (
            "stuck",
            &[][..],
            vec![failing.clone(), leaf(&[kinds::SLEEP]), leaf(&[kinds::NEXT])],
        ),
        ("operated", &plain[..3], vec![leaf(&[kinds::WAIT])]),
    ] {
        worlds.push((name, stopped(plain, &stuck, name == "operated")?));
    }
    Ok(worlds)
}

/// Returns the entries of all those worlds.
pub(crate) fn dumps() -> Result<Vec<Vec<Entry>>, Trouble> {
    Ok(worlds()?.iter().map(|(_, world)| dump(world)).collect())
}

/// Runs these for a moment, and stops the engine as it is.
fn stopped(plain: &[Script], stuck: &[Script], operated: bool) -> Result<World, Trouble> {
    let world = World::new();
    let drive = async |run: &Run| {
        let mut ids = Vec::new();
        for (number, script) in plain.iter().enumerate() {
            let submission = run.executor.submit(Plain(script.clone())).key(format!("key {number}"));
            ids.push(run.wait(submission.into_future()).await??.id());
        }
        for script in stuck {
            ids.push(
                run.wait(run.executor.submit(Stuck(script.clone())).into_future())
                    .await??
                    .id(),
            );
        }
        run.settle().await;
        if operated {
            let by = || OperatorRequest::new("ann", "a seed");
            let last = ids.last().copied().ok_or("something was submitted")?;
            run.executor.signal(last, "other", &1).key("s").await?;
            run.executor.pause(PauseScope::Kind("stuck".into()), by()).await?;
            run.executor.set_limit("plain", Some(5), by()).await?;
            run.executor.pause(PauseScope::One(last), by()).await?;
        }
        run.pass(Duration::from_millis(100)).await;
        Ok(())
    };
    world.run(FaultPlan::none(), kinds::register, drive)?.done()?;
    Ok(world)
}

/// Texts of sagas, each with every part of the language that goes with it.
const EXPRESSIONS: [(&str, &str); 9] = [
    (
        "choice",
        "[a] == 1 && !([f] / 2 >= 0.4 or s ne 'text') || -[a] % 3 < 2.5e1",
    ),
    (
        "completion",
        "[nrOfCompletedInstances] == ([collection].size()-4)\n{\"nrOfCompletedInstances\":6.0,\"collection\":[0,1,2,3,4,5,6,7,8,9]}",
    ),
    ("select", "[list].?[#this == #root.a].![#this * 2][0] + list.get(1)"),
    ("status", "#root != null ? #root.size() > 0 : n?.x ?: true"),
    (
        "methods",
        "s.trim().toUpperCase().contains(\"E\") and o.containsKey('a') and list.contains(2) and s.length().equals(4)",
    ),
    ("value", "$.o[a].b"),
    ("braced", "${[a] + 'it''s'}"),
    ("exception", "$Exception{x.Boom}"),
    ("sequence", "$Sequence.BUSINESS_KEY|SIMPLE"),
];

/// A seed: target, name, bytes.
pub(crate) type Seed = (&'static str, String, Vec<u8>);

/// Makes all seeds.
pub(crate) fn all() -> Result<Vec<Seed>, Trouble> {
    let mut seeds = Vec::new();
    for (name, world) in worlds()? {
        let entries = dump(&world);
        seeds.push(("recovery", name.to_owned(), recovery::bytes_of(&entries)));
        seeds.push(("disk", name.to_owned(), world.disk.to_bytes()));
        for (space, key, value) in &entries {
            let is_shown = ["operated", "stuck"].contains(&name);
            if let Some(what) = values_tag(space, key).filter(|_| is_shown) {
                let name = format!("{name}_{}_{}", space.name(), seeds.len());
                seeds.push(("values", name, [&[what], value.as_slice()].concat()));
            }
        }
        if let Some(export) = exported(&world)? {
            seeds.push(("export", name.to_owned(), export.to_bytes()?));
            let text = serde_json::to_vec(&export)?;
            seeds.push(("text", format!("{name}_json"), [&[2][..], &text].concat()));
        }
    }
    for (tag, name, text) in [
        (0, "id", "42.3"),
        (1, "paths", "/ns//table/ ns/table/region"),
        (3, "lines", "a;1\nab;2\na\tb\nb\n\nzz;9"),
        (
            5,
            "filter",
            "state:waiting reason:lock,permit kind:\"a b\" age:>10m attempts:>3 err:timeout root:42 rule:S2 req-",
        ),
        (
            4,
            "record",
            r#"{"format":1,"seed":1,"tables":16,"operations":3000,"fail_rate":0.05,"servers":4,"digest":7}"#,
        ),
    ] {
        seeds.push(("text", name.to_owned(), [&[tag][..], text.as_bytes()].concat()));
    }
    for (name, text) in EXPRESSIONS {
        seeds.push(("expressions", name.to_owned(), text.as_bytes().to_vec()));
    }
    seeds.push((
        "values",
        "key".to_owned(),
        [&[10][..], &7_u64.to_be_bytes(), &[0; 8], b"go"].concat(),
    ));
    let commit = [
        &[12, 1][..],
        &[0, 3, 5, 0, 0, 0],
        b"keyvalue",
        &[4, 2, 255, 255, 255, 255],
        b"no",
    ]
    .concat();
    seeds.push(("values", "commit".to_owned(), commit));
    for world in 0..8 {
        seeds.push((
            "rows",
            format!("world_{world}"),
            vec![world, 1, 2, 3, 4, 5, 6, 7, 230, 250],
        ));
    }
    seeds.push(("log", "made".to_owned(), written_log()?));
    Ok(seeds)
}

/// The log of an embedded store that made its keyspaces and took three batches.
fn written_log() -> Result<Vec<u8>, Trouble> {
    let directory = tempfile::tempdir()?;
    {
        let store = EmbeddedStore::open(directory.path(), SyncMode::Data)?;
        let epoch = block_on(store.acquire())?;
        for number in 1..4_u64 {
            let mut batch = Batch::new(epoch);
            batch.advance_to(Seq(number));
            batch.put(Space::Live, &number.to_be_bytes(), &[]);
            batch.delete(Space::Keys, b"k");
            block_on(store.append(batch))?;
        }
    }
    let files = std::fs::read_dir(directory.path().join("store"))?;
    let paths = files.filter_map(|file| Some(file.ok()?.path()));
    let log = paths
        .into_iter()
        .find(|path| path.extension().is_some_and(|end| end == "jnl"));
    let mut bytes = std::fs::read(log.ok_or("a store has a log")?)?;
    let zeros = bytes.iter().rev().take_while(|byte| **byte == 0).count();
    bytes.truncate(bytes.len() - zeros);
    Ok(bytes)
}

/// As what the target `values` reads the values of a keyspace.
fn values_tag(space: &Space, key: &[u8]) -> Option<u8> {
    match space {
        Space::Procedures if keys::parse_labels(key).is_some() => Some(13),
        Space::Procedures => Some(0),
        Space::History => Some(1),
        Space::Signals => Some(2),
        Space::Keys => Some(3),
        Space::Audit => Some(4),
        Space::Meta => Some(5),
        Space::Payloads | Space::Live | Space::Finished | Space::Archive | Space::User(_) => None,
    }
}

fn exported(world: &World) -> Result<Option<procession::offline::FamilyExport>, Trouble> {
    let fork = world.fork();
    let export = async |run: &Run| Ok(run.executor.export(ProcedureId::root(1)).await.ok());
    fork.run(FaultPlan::none(), kinds::register, export)?.done()
}

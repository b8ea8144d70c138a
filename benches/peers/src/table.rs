//! The table: rates, and how ours compares with each peer's within the run.

use std::collections::BTreeMap;

use crate::workload::{Engine, Load, Rate};

/// What was measured, one for each round.
#[derive(Default)]
pub struct Rates(BTreeMap<(Load, Engine), Vec<Rate>>);

impl Rates {
    pub fn add(&mut self, load: Load, engine: Engine, rate: Rate) {
        self.0.entry((load, engine)).or_default().push(rate);
    }

    fn median(&self, load: Load, engine: Engine, of: fn(&Rate) -> f64) -> Option<f64> {
        let mut values: Vec<f64> = self.0.get(&(load, engine))?.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    }
}

/// Prints it, as Markdown.
pub fn print(loads: &[Load], rates: &Rates, rounds: usize) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!("Median of rounds: {rounds}; cores: {cores}; sync: fdatasync or fsync, see below.");
    println!();
    for (what, of) in [
        ("in a second", (|rate| rate.per_second) as fn(&Rate) -> f64),
        ("us of a processor, each", |rate| rate.processor_us),
    ] {
        print_one(loads, rates, what, of);
        println!();
    }
    println!("| engine | what is durable, and how | how it does the workloads |");
    println!("|---|---|---|");
    for engine in Engine::ALL {
        println!("| {engine} | {} | {} |", engine.durability(), engine.remark());
    }
    print_lacking(loads);
}

/// Prints one number of each rate.
fn print_one(loads: &[Load], rates: &Rates, what: &str, of: fn(&Rate) -> f64) {
    println!(
        "| workload | {what} | procession | with pure stages | steno | memable | ours to the best peer's | pure to it |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for load in loads {
        let median = |engine| rates.median(*load, engine, of);
        let cell = |engine| median(engine).map_or_else(|| "not offered".to_owned(), short);
        let fastest = |engine: &Engine| rates.median(*load, *engine, |rate| rate.per_second);
        let peers = Engine::PEERS.into_iter().filter(|engine| median(*engine).is_some());
        let best = peers.max_by(|one, other| fastest(one).unwrap_or(0.0).total_cmp(&fastest(other).unwrap_or(0.0)));
        let ratio = |engine| {
            let ratio = median(engine)
                .zip(best.and_then(median))
                .map(|(ours, peer)| ours / peer);
            ratio.map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2}"))
        };
        println!(
            "| {load} | {} | {} | {} | {} | {} | {} | {} |",
            load.workload.units(),
            cell(Engine::Ours),
            cell(Engine::Pure),
            cell(Engine::Steno),
            cell(Engine::Memable),
            ratio(Engine::Ours),
            ratio(Engine::Pure)
        );
    }
}

fn print_lacking(loads: &[Load]) {
    for engine in Engine::ALL {
        let lacking = loads
            .iter()
            .filter_map(|load| Some((load.workload, engine.lacks(load.workload)?)));
        for (workload, why) in lacking.collect::<BTreeMap<_, _>>() {
            println!();
            println!("{engine}, {}: not offered; {why}.", workload.name());
        }
    }
}

fn short(number: f64) -> String {
    if number < 100.0 {
        format!("{number:.1}")
    } else {
        format!("{number:.0}")
    }
}

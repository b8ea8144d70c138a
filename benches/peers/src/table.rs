//! The table: rates, and how ours compares with each peer's within the run.

use std::collections::BTreeMap;

use crate::workload::{Engine, Load};

/// Units in a second, one for each round.
#[derive(Default)]
pub struct Rates(BTreeMap<(Load, Engine), Vec<f64>>);

impl Rates {
    pub fn add(&mut self, load: Load, engine: Engine, rate: f64) {
        self.0.entry((load, engine)).or_default().push(rate);
    }

    fn median(&self, load: Load, engine: Engine) -> Option<f64> {
        let mut rates = self.0.get(&(load, engine))?.clone();
        rates.sort_by(f64::total_cmp);
        rates.get(rates.len() / 2).copied()
    }
}

/// Prints it, as Markdown.
pub fn print(loads: &[Load], rates: &Rates, rounds: usize) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!("Median of rounds: {rounds}; cores: {cores}; sync: fdatasync or fsync, see below.");
    println!();
    println!("| workload | in a second | procession | steno | memable | ours to steno's | ours to memable's |");
    println!("|---|---|---|---|---|---|---|");
    for load in loads {
        let median = |engine| rates.median(*load, engine);
        let cell = |engine| median(engine).map_or_else(|| "not offered".to_owned(), whole);
        let ratio = |engine| {
            let ratio = median(Engine::Ours).zip(median(engine)).map(|(ours, peer)| ours / peer);
            ratio.map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.1}"))
        };
        println!(
            "| {load} | {} | {} | {} | {} | {} | {} |",
            load.workload.units(),
            cell(Engine::Ours),
            cell(Engine::Steno),
            cell(Engine::Memable),
            ratio(Engine::Steno),
            ratio(Engine::Memable)
        );
    }
    println!();
    println!("| engine | what is durable, and how | how it does the workloads |");
    println!("|---|---|---|");
    for engine in Engine::ALL {
        println!("| {engine} | {} | {} |", engine.durability(), engine.remark());
    }
    print_lacking(loads);
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

fn whole(rate: f64) -> String {
    format!("{rate:.0}")
}

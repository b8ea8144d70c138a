//! What the check of a saga's definition costs, at the largest that a machine may be: 2,000 states, 200 Forks among them
//! of eight branches each, one behind the other, and half of that.
//!
//! Timed: reading the text, compiling its expressions, all checks, and dropping what was read. The larger one should take
//! 20 ms at most, and twice as long as the smaller one.

#![expect(
    clippy::expect_used,
    reason = "a measurement that cannot be made ends here, and says why"
)]

use std::hint::black_box;

use criterion::Criterion;
use procession::saga::Definitions;

/// Branches of each Fork: with the Fork and its Join they are ten states.
const BRANCHES: usize = 8;

/// A task with what tasks usually have.
fn task(next: &str) -> String {
    format!(
        r##"{{"Type": "ServiceTask", "ServiceName": "stock", "ServiceMethod": "reserve", "Next": "{next}",
        "Input": ["$.[a]", {{"count": "$.[count]"}}], "Output": {{"result": "$.#root"}},
        "Status": {{"#root == true": "SU", "$Exception{{x.Boom}}": "UN"}}}}"##
    )
}

fn definition(forks: usize) -> String {
    let mut states = Vec::with_capacity(forks * (BRANCHES + 2));
    for fork in 0..forks {
        let names: Vec<String> = (0..BRANCHES).map(|branch| format!("b{fork}_{branch}")).collect();
        let list = names.join("\", \"");
        states.push(format!(r#""f{fork}": {{"Type": "Fork", "Branches": ["{list}"]}}"#));
        let join = format!("j{fork}");
        states.extend(names.iter().map(|name| format!("\"{name}\": {}", task(&join))));
        let next = match fork + 1 < forks {
            true => format!(r#", "Next": "f{}""#, fork + 1),
            false => String::new(),
        };
        states.push(format!(r#""{join}": {{"Type": "Join"{next}}}"#));
    }
    format!(
        r#"{{"Name": "m", "StartState": "f0", "States": {{{}}}}}"#,
        states.join(", ")
    )
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    for forks in [100, 200] {
        let text = definition(forks);
        let states = forks * (BRANCHES + 2);
        criterion.bench_function(&format!("check {states} states with {forks} Forks"), |bencher| {
            bencher.iter(|| {
                let checked = Definitions::new().json("m.json", black_box(&text)).check();
                checked.expect("it is a machine")
            });
        });
    }
    criterion.final_summary();
}

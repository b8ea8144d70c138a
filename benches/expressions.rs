//! What an expression of a saga costs, with the context of ten values that the benchmark of sagas has.
//!
//! Timed: reading, and one evaluation of what has been read. Not timed: making the
//! context. `[a] == 1` should be evaluated three million times a second.

#![expect(
    clippy::expect_used,
    reason = "a measurement that cannot be made ends here, and says why"
)]

use std::hint::black_box;

use criterion::Criterion;
use procession_saga_language::expression::{Place, Steps, Text, Visit};
use serde_json::{Value, json};

const EXPRESSIONS: [&str; 3] = [
    "[a] == 1",
    "[completed] / [instances] >= 0.4",
    "[results].?[#this[state] == null].size() == 0 && [a] == 1",
];

fn context() -> Value {
    let results: Vec<Value> = (0..10).map(|number| json!({ "state": number })).collect();
    json!({
        "a": 1, "amount": 12.5, "completed": 6.0, "count": 3, "customer": "4711", "instances": 10.0, "key": "order-42",
        "results": results, "state": "open", "warehouse": { "city": "Hamburg" },
    })
}

/// The visit of a call that went well. None of the expressions asks it.
struct WentWell;

impl Visit for WentWell {
    fn has_fault_of(&self, _: &str) -> bool {
        false
    }

    fn sequence(&self, entity: &str, rule: &str) -> String {
        format!("{entity}|{rule}")
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let context = context();
    for text in EXPRESSIONS {
        let read = || Text::parse(black_box(text), Place::Condition).expect("it is an expression");
        criterion.bench_function(&format!("read {text}"), |bencher| bencher.iter(read));
        let expression = read();
        criterion.bench_function(&format!("evaluate {text}"), |bencher| {
            let test = || expression.test(black_box(&context), &WentWell, &mut Steps::new());
            bencher.iter(|| test().expect("it is a condition"));
        });
    }
    criterion.final_summary();
}

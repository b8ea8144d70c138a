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
use procession::testkit::SagaText;
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

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let context = context();
    for text in EXPRESSIONS {
        let read = || SagaText::condition(black_box(text)).expect("it is an expression");
        criterion.bench_function(&format!("read {text}"), |bencher| bencher.iter(read));
        let expression = read();
        criterion.bench_function(&format!("evaluate {text}"), |bencher| {
            bencher.iter(|| expression.test(black_box(&context), None).expect("it is a condition"));
        });
    }
    criterion.final_summary();
}

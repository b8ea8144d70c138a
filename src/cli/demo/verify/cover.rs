//! Do the tablets of each table cover the key space, each key by one of them?

use super::{Rule, Verdict, World};
use crate::demo::meta::TabletRow;

pub(super) fn cover(world: &World, verdict: &mut Verdict) {
    for table in &world.tables {
        let tablets: Vec<&TabletRow> = world.tablets_of(&table.name).collect();
        covers(&table.name, &tablets, verdict);
        for tablet in tablets.iter().filter(|tablet| tablet.schema != table.schema) {
            verdict.find(
                Rule::Meta,
                format!(
                    "tablet {} has schema {}, and its table {}",
                    tablet.id, tablet.schema, table.schema
                ),
            );
        }
    }
    for tablet in &world.tablets {
        if !world.tables.iter().any(|table| table.name == tablet.table) {
            verdict.find(
                Rule::Meta,
                format!(
                    "tablet {} belongs to table {}, which is not there",
                    tablet.id, tablet.table
                ),
            );
        }
    }
}

/// The tablets come in the order of their starts.
fn covers(table: &str, tablets: &[&TabletRow], verdict: &mut Verdict) {
    let (Some(first), Some(last)) = (tablets.first(), tablets.last()) else {
        verdict.find(Rule::Cover, format!("table {table} has no tablet"));
        return;
    };
    if !first.start.is_empty() {
        verdict.find(
            Rule::Cover,
            format!("table {table} has no tablet before \"{}\"", first.start),
        );
    }
    if let Some(end) = &last.end {
        verdict.find(Rule::Cover, format!("table {table} has no tablet from \"{end}\" on"));
    }
    for (left, right) in tablets.iter().zip(tablets.iter().skip(1)) {
        match left.end.as_deref() {
            Some(end) if end == right.start => {}
            Some(end) if end < right.start.as_str() => {
                verdict.find(
                    Rule::Cover,
                    format!("table {table} has no tablet from \"{end}\" to \"{}\"", right.start),
                );
            }
            Some(_) | None => {
                verdict.find(
                    Rule::Cover,
                    format!("tablets {} and {} of table {table} overlap", left.id, right.id),
                );
            }
        }
    }
}

//! When a schedule is due.

use super::*;
use crate::noop::Noop;

fn plan(zone: &str) -> Plan {
    Plan {
        job: "work".to_owned(),
        timetable: Timetable::Cron {
            expression: "0 6 * * *".to_owned(),
            zone: zone.to_owned(),
        },
        input: Blob::default(),
        catch_up: CatchUp::default(),
        overlap: Overlap::default(),
        until: None,
    }
}

#[test]
fn what_is_unknown_is_the_stage_that_looks_again() {
    let stage = |plan: Plan, jobs: &Jobs| plan.ticks(jobs).err().map(|unusable| unusable.stage);
    let jobs = Jobs::new().job("work", |_| Ok(Noop));
    assert_eq!(stage(plan("UTC"), &jobs), None);
    // As the database of zones of another machine knows it.
    assert_eq!(stage(plan("Mars/Base"), &jobs), Some(ScheduleStage::UnknownTimetable));
    assert_eq!(stage(plan("UTC"), &Jobs::new()), Some(ScheduleStage::UnknownJob));
}

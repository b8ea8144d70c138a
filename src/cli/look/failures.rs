//! `procession failures`: the failures that nobody has acknowledged, in groups of one kind that say the same.

use clap::Args;
use procession::views::{FailureGroupView, FailuresView};

use super::super::exit::{Exit, Failure};
use super::super::place::Place;
use super::super::source::Source;
use super::super::watch::Watch;
use super::super::{moment, print};

#[derive(Debug, Clone, Args)]
pub(crate) struct FailuresArgs {
    #[command(flatten)]
    pub(super) place: Place,
    #[command(flatten)]
    pub(super) watch: Watch,
}

pub(super) async fn run(source: &Source, place: &Place) -> Result<Exit, Failure> {
    let failures = source.failures().await?;
    if !place.prints(&failures)? {
        show(&failures.read()?);
    }
    Ok(Exit::Done)
}

fn show(failures: &FailuresView) {
    print::table(
        ["COUNT", "KIND", "FIRST", "LAST", "NEWEST", "FINGERPRINT", "SAYS"],
        failures.items.iter().map(row),
    );
    let mut text = match failures.count {
        0 => "no failure waits to be acknowledged".to_owned(),
        count => format!(
            "{}; \"ls failure:FINGERPRINT kind:KIND\" lists those of a group; \"run-again\" with the same as its --filter runs \
             them again, and \"acknowledge\" closes them",
            print::counted(count, "failure", "failures")
        ),
    };
    if failures.truncated {
        text.push_str("; there are more, older ones");
    }
    if failures.more_groups > 0 {
        text.push_str(&format!("; {} groups are left out", failures.more_groups));
    }
    print::notice(&text);
}

fn row(group: &FailureGroupView) -> [String; 7] {
    [
        group.count.to_string(),
        group.kind.clone(),
        moment::when(&group.first),
        moment::when(&group.last),
        group.newest.clone(),
        group.fingerprint.clone(),
        group.text.clone(),
    ]
}

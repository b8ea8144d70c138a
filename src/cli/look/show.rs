//! `procession show`: one procedure, complete.

use clap::Args;
use procession_kernel::ProcedureId;

use super::super::exit::{Exit, Failure};
use super::super::print;
use super::{Place, reply, unknown};
use crate::views::{ProcedureView, SignalView};

#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct ShowArgs {
    #[command(flatten)]
    place: Place,
    /// Which procedure, for instance 42.0.
    #[arg(value_name = "ID")]
    id: ProcedureId,
}

pub(super) async fn run(args: ShowArgs) -> Result<Exit, Failure> {
    let journal = args.place.open().await?;
    let status = journal.status(args.id).await?.ok_or_else(|| unknown(args.id))?;
    let status = journal.standing().await?.shown(status);
    let procedure = ProcedureView::from(&status);
    if args.place.json {
        print::json(&reply(&journal, procedure))?;
        return Ok(Exit::Done);
    }
    let explanation = match status.ended {
        None => Some(journal.explain(&journal.standing().await?, args.id).await?.reason),
        Some(_) => None,
    };
    show(&procedure, explanation.as_deref());
    let signals = journal.signals(args.id).await?;
    let signals = signals.iter().filter(|(id, _, _)| *id == args.id);
    let signals = signals.map(|(id, number, entry)| SignalView::new(*id, *number, entry));
    print::table(
        ["SIGNAL", "NAME", "KEY", "CONSUMED"],
        signals.map(|signal| {
            [
                signal.number.to_string(),
                print::plain(&signal.name),
                print::or_dash(signal.key.as_deref()),
                if signal.consumed { "yes" } else { "no" }.to_owned(),
            ]
        }),
    );
    Ok(Exit::Done)
}

fn show(procedure: &ProcedureView, reason: Option<&str>) {
    let field = |name: &str, value: &str| print::line(&format!("{name:<10} {}", print::plain(value)));
    let maybe = |name: &str, value: Option<&str>| {
        if let Some(value) = value {
            field(name, value);
        }
    };
    print::line(&format!(
        "{:<10} {} {} v{}",
        "procedure",
        procedure.id,
        print::plain(&procedure.kind),
        procedure.version
    ));
    print::line(&format!(
        "{:<10} {} since {}",
        "state",
        print::state(&procedure.state),
        procedure.since
    ));
    maybe("reason", reason);
    field("next", &procedure.next);
    maybe("until", procedure.until.as_deref());
    field("stage", &procedure.stage);
    if procedure.attempt > 0 {
        field("attempts", &format!("{} failed", procedure.attempt));
    }
    maybe("parent", procedure.parent.as_deref());
    maybe("key", procedure.key.as_deref());
    if let Some(trace) = &procedure.trace {
        field("trace", trace);
    }
    if procedure.priority != 0 {
        field("priority", &procedure.priority.to_string());
    }
    for lock in &procedure.locks {
        field("holds", &format!("the {} lock {}", lock.mode, lock.path));
    }
    if procedure.holds {
        field("holds", "its permits");
    }
    let past = |stage: &String| format!("its point of no return, with stage {stage}");
    maybe("past", procedure.past.as_ref().map(past).as_deref());
    if let Some(cause) = &procedure.cause {
        field("failed", &format!("{} in {}: {}", cause.kind, cause.origin, cause.text));
    }
    if procedure.not_undone > 0 {
        field("not undone", &print::counted(procedure.not_undone, "stage", "stages"));
    }
    maybe("operator", procedure.mark);
    if procedure.paused {
        field("operator", "paused");
    }
    field("submitted", &procedure.submitted);
    maybe("ended", procedure.ended.as_deref());
}

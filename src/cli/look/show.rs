//! `procession show`: one procedure, complete.

use clap::Args;
use procession::ProcedureId;
use serde::Deserialize;
use serde_json::Value;

use super::super::document::read;
use super::super::exit::{Exit, Failure};
use super::super::named::Named;
use super::super::place::Place;
use super::super::source::Source;
use super::super::watch::Watch;
use super::super::{moment, print};
use super::PausedBy;
use procession::views::{ExplanationView, MailboxView, ProcedureView, SignalView};

#[derive(Debug, Clone, Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(super) place: Place,
    #[command(flatten)]
    pub(super) watch: Watch,
    /// Which procedure: its id, for instance 42.0, or its idempotency key.
    #[arg(value_name = "ID")]
    id: Named,
}

/// Its signals; a dashboard of an earlier release sums nothing up.
#[derive(Deserialize)]
struct Signals {
    items: Vec<SignalView>,
    #[serde(default)]
    mailbox: Option<MailboxView>,
}

/// What a dashboard tells of one beyond its row.
#[derive(Default, Deserialize)]
struct Beyond {
    #[serde(default)]
    paused_by: Vec<PausedBy>,
    #[serde(default)]
    failing: Option<Failing>,
}

/// How far its rollback is, and what it failed with last.
#[derive(Deserialize)]
struct Failing {
    undone: Option<usize>,
    of: Option<usize>,
    last: Option<LastFailure>,
}

#[derive(Deserialize)]
struct LastFailure {
    id: String,
    stage: String,
    /// No text where the host does not let it be seen.
    error: Value,
}

pub(super) async fn run(source: &Source, args: &ShowArgs) -> Result<Exit, Failure> {
    let id = source.resolve(&args.id).await?;
    let document = source.one(id).await?;
    if args.place.prints(&document)? {
        return Ok(Exit::Done);
    }
    let procedure: ProcedureView = read(document.get("procedure"))?;
    let reason = match procedure.ended {
        None => Some(reason(source, id, &procedure).await?),
        Some(_) => None,
    };
    show(&procedure, reason.as_deref());
    show_beyond(&document.read()?);
    let Signals {
        items: signals,
        mailbox,
    } = source.signals(id).await?.read()?;
    show_mailbox(&mailbox.unwrap_or_default());
    print::table(
        ["SIGNAL", "NAME", "KEY", "SIZE", "CONSUMED"],
        signals.into_iter().map(|signal| {
            [
                signal.number.to_string(),
                print::plain(&signal.name),
                print::or_dash(signal.key.as_deref()),
                print::or_dash(signal.size().map(moment::bytes).as_deref()),
                if signal.consumed { "yes" } else { "no" }.to_owned(),
            ]
        }),
    );
    Ok(Exit::Done)
}

/// Says why it stands where it stands. A dashboard explains but a few in a second: the row says nearly the same.
async fn reason(source: &Source, id: ProcedureId, procedure: &ProcedureView) -> Result<String, Failure> {
    match source.waits(id).await {
        Ok(explanation) => Ok(explanation.read::<ExplanationView>()?.reason),
        Err(failure) => procedure.waits.clone().ok_or(failure),
    }
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
        "{:<10} {}{}",
        "state",
        print::standing(procedure),
        moment::since(&procedure.since)
    ));
    maybe("name", procedure.name.as_deref());
    maybe("reason", reason);
    maybe("asks", procedure.question.as_deref());
    field("next", &procedure.next);
    maybe("until", procedure.until.as_deref());
    field("stage", &procedure.stage);
    if procedure.attempt > 0 {
        field("attempts", &format!("{} failed", procedure.attempt));
    }
    maybe("parent", procedure.parent.as_deref());
    maybe("key", procedure.key.as_deref());
    for label in &procedure.labels {
        field("label", &label.to_string());
    }
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
    maybe("past", procedure.past_no_return.as_ref().map(past).as_deref());
    if let Some(cause) = &procedure.cause {
        field("failed", &format!("{} in {}: {}", cause.kind, cause.origin, cause.text));
    }
    if procedure.not_undone > 0 {
        field("not undone", &print::counted(procedure.not_undone, "stage", "stages"));
    }
    maybe("operator", procedure.mark.as_deref());
    if procedure.paused {
        field("operator", "paused");
    }
    field("submitted", &moment::when(&procedure.submitted));
    maybe("ended", procedure.ended.as_deref().map(moment::when).as_deref());
}

/// Sums up the signals that wait for it, and names the events that are closed to it.
fn show_mailbox(mailbox: &MailboxView) {
    let field = |name: &str, value: &str| print::line(&format!("{name:<10} {}", print::plain(value)));
    if mailbox.waiting > 0 {
        let names = mailbox.names.iter().map(|of| format!("{} {}", of.waiting, of.name));
        let names: Vec<String> = names.chain(mailbox.more.then(|| "others".to_owned())).collect();
        let signals = usize::try_from(mailbox.waiting).unwrap_or(usize::MAX);
        let waits = print::counted(signals, "signal waits", "signals wait");
        field("queue", &format!("{waits}: {}", names.join(", ")));
    }
    if let Some(oldest) = &mailbox.oldest {
        field("oldest", &format!("sent {}", moment::when(oldest)));
    }
    if !mailbox.closed.is_empty() {
        field("closed", &mailbox.closed.join(", "));
    }
}

fn show_beyond(beyond: &Beyond) {
    let field = |name: &str, value: &str| print::line(&format!("{name:<10} {}", print::plain(value)));
    for paused in &beyond.paused_by {
        field("paused", &paused.to_string());
    }
    let Some(failing) = &beyond.failing else { return };
    if let (Some(undone), Some(of)) = (failing.undone, failing.of) {
        field(
            "undone",
            &format!("{undone} of {}", print::counted(of, "stage", "stages")),
        );
    }
    if let Some(LastFailure { id, stage, error }) = &failing.last {
        field(
            "last error",
            &format!("{id} stage {stage}: {}", error.as_str().unwrap_or("(redacted)")),
        );
    }
}

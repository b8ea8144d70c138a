//! The verbs of operators, through a dashboard: the plan first, then the question whether that is
//! meant, then the act. What was planned is what is done: if anything came between, it is refused.

pub(super) mod ask;
mod bulk;
mod limits;
mod outcome;
mod submit;
pub(super) mod target;
pub(super) mod value;

use std::time::Duration;

use clap::{Args, Subcommand};
use procession::operate::VerbName;
use procession::views::state_words;
use serde_json::{Map, Value, json};

use super::document::Document;
use super::exit::{Exit, Failure};
use super::kinds;
use super::named::Named;
use super::place::Remote;
use super::print;
use super::site::{Problem, Site, Unanswered};
use bulk::BulkWish;
pub(super) use outcome::Outcome;
pub(super) use target::Target;

/// How often an act is sent whose answer got lost: with its key it takes effect once.
const SENT: u32 = 3;

/// Kind of the schedules, `procession::schedule::Schedule::KIND`. The program is built without them.
const SCHEDULE: &str = "procession.schedule";
/// The event that asks one for a run, if it carries nothing: `procession::schedule::Schedule::EVENT`.
const RUN_NOW: &str = "request";

#[derive(Subcommand)]
pub(super) enum Act {
    /// Pause a procedure, a kind, or everything.
    Pause(ManyArgs),
    /// Resume a procedure, a kind, or everything.
    Resume(ManyArgs),
    /// Try again now what backs off, or rests as poison or with a rollback that failed; attempts
    /// stay counted.
    Retry(SomeArgs),
    /// Stop a procedure between stages, and roll it back. Exit code 5 if that is too late.
    Abort(SomeArgs),
    /// Say that a result was taken note of: a failure is not listed any more, and a success may go sooner.
    Acknowledge(SomeArgs),
    /// Submit a root that failed once more, with the value that it was submitted with, and acknowledge the failure.
    RunAgain(SomeArgs),
    /// Answer the question that a procedure asks.
    Decide(DecideArgs),
    /// Let a schedule submit a run now, beside its timetable.
    RunNow(OneArgs),
    /// Send a procedure a signal: the event that it waits for, or will.
    Signal(SignalArgs),
    /// Submit a procedure of a registered kind, its value as JSON.
    Submit(submit::SubmitArgs),
    /// Change the priority of a procedure, and its place in the queues.
    Priority(PriorityArgs),
    /// Set what a limit allows: permits at once, a rate, both, or anything.
    Limit(LimitArgs),
    /// Try the undo again at which a rollback failed, from its first attempt on.
    RetryUndo(SomeArgs),
    /// Count the undo at which a rollback failed as done. What its stage did stays.
    SkipUndo(SomeArgs),
    /// Replace the output of a procedure that succeeded, or end one that lives with an output, without its code.
    OverrideResult(OverrideArgs),
    /// Put a quarantined family into the archive, and free what it holds.
    Discharge(OneArgs),
    /// Stop the engine in order: start no more stages, and stop when none runs.
    Drain(DrainArgs),
    /// Print the value and the output of a procedure as JSON. The audit log has who looked, and why.
    Reveal(OneArgs),
    /// End a procedure as it stands, without rollback: the last resort.
    Bypass(BypassArgs),
}

/// How an act is made.
#[derive(Debug, Clone, Args)]
pub(super) struct How {
    #[command(flatten)]
    remote: Remote,
    /// Print the plan, and do nothing.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Do not ask for confirmation.
    #[arg(long, short)]
    yes: bool,
    /// Why; recorded in the audit log.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Print JSON, one document a line.
    #[arg(long)]
    pub(super) json: bool,
}

impl How {
    /// Returns the dashboard that must be named.
    pub(super) fn site(&self) -> Result<Site, Failure> {
        self.remote.must_be_named()
    }

    /// Refuses what could not be carried out, before anything is asked. Returns the reason.
    pub(super) fn must_make_sense(&self, needs_reason: bool) -> Result<String, Failure> {
        let reason = self.reason(needs_reason)?;
        if self.dry_run {
            return Ok(reason);
        }
        if !self.yes && (self.json || !ask::is_possible()) {
            let text = "there is no terminal to ask on: look at the plan with --dry-run, and give --yes";
            return Err(Failure::usage(text));
        }
        Ok(reason)
    }

    /// Returns the reason, which only a plan may lack where it is needed.
    fn reason(&self, is_needed: bool) -> Result<String, Failure> {
        let reason = self.reason.clone().unwrap_or_default();
        if is_needed && !self.dry_run && reason.trim().is_empty() {
            let text = "say why with --reason: the audit keeps it; or look at the plan with --dry-run";
            return Err(Failure::usage(text));
        }
        Ok(reason)
    }

    /// Asks whether it is meant, unless that was said already. A no is a failure: what follows counts on the act.
    pub(super) fn must_be_meant(&self, verb: &str, target: &Target) -> Result<(), Failure> {
        match self.yes {
            true => Ok(()),
            false => ask::must_be_meant(verb, target),
        }
    }
}

#[derive(Debug, Clone, Args)]
pub(super) struct OneArgs {
    #[command(flatten)]
    how: How,
    /// Which procedure: its id, for instance 42.0, or its idempotency key.
    #[arg(value_name = "ID")]
    id: Named,
}

#[derive(Debug, Clone, Args)]
#[group(id = "which", required = true, multiple = false, args = ["id", "filter"])]
pub(super) struct SomeArgs {
    #[command(flatten)]
    how: How,
    /// Which procedure: its id, for instance 42.0, or its idempotency key.
    #[arg(value_name = "ID")]
    id: Option<Named>,
    /// All that a filter admits, for instance 'failure:any kind:order'. See "procession ls --help".
    #[arg(long, value_name = "FILTER", value_parser = bulk::filter_of)]
    filter: Option<String>,
}

#[derive(Debug, Clone, Args)]
#[group(id = "which", required = true, multiple = false, args = ["id", "kind", "all", "filter"])]
pub(super) struct ManyArgs {
    #[command(flatten)]
    how: How,
    /// Which procedure, and all below it: its id, or its idempotency key.
    #[arg(value_name = "ID")]
    id: Option<Named>,
    /// All of a kind, those that are still to come, too.
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// All of the engine.
    #[arg(long)]
    all: bool,
    /// All that a filter admits, as of now.
    #[arg(long, value_name = "FILTER", value_parser = bulk::filter_of)]
    filter: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub(super) struct BypassArgs {
    #[command(flatten)]
    how: How,
    /// Which procedure: its id, for instance 42.0, or its idempotency key.
    #[arg(value_name = "ID")]
    id: Named,
    /// All below it, too.
    #[arg(long)]
    recursive: bool,
    /// It ends as failed, and not as a success without output.
    #[arg(long)]
    failed: bool,
}

#[derive(Debug, Clone, Args)]
pub(super) struct DecideArgs {
    #[command(flatten)]
    how: How,
    /// Which procedure: its id, for instance 42.0, or its idempotency key.
    #[arg(value_name = "ID")]
    id: Named,
    /// The answer as JSON: true, 7, '"yes"'; @FILE reads a file, - standard input. What its code expects is said in the
    /// question.
    #[arg(value_name = "JSON", value_parser = value::json)]
    answer: Value,
}

#[derive(Debug, Clone, Args)]
pub(super) struct SignalArgs {
    #[command(flatten)]
    how: How,
    /// Which procedure: its id, for instance 42.0, or its idempotency key.
    #[arg(value_name = "ID")]
    id: Named,
    /// Name of the event.
    #[arg(value_name = "EVENT")]
    event: String,
    /// What is sent, as JSON; @FILE reads a file, - standard input.
    #[arg(value_name = "JSON", value_parser = value::json, default_value = "null")]
    payload: Value,
}

#[derive(Debug, Clone, Args)]
pub(super) struct PriorityArgs {
    #[command(flatten)]
    how: How,
    /// Which procedure: its id, for instance 42.0, or its idempotency key.
    #[arg(value_name = "ID")]
    id: Named,
    /// From -32768 to 32767; whoever has more is served first.
    #[arg(value_name = "N", allow_negative_numbers = true)]
    priority: i16,
}

#[derive(Debug, Clone, Args)]
#[group(id = "allowed", required = true, multiple = true, args = ["at_once", "rate", "unlimited"])]
pub(super) struct LimitArgs {
    #[command(flatten)]
    how: How,
    /// Which limit, as "procession limits" lists them.
    #[arg(value_name = "LIMIT")]
    key: String,
    /// Permits at once.
    #[arg(value_name = "N")]
    at_once: Option<u32>,
    /// How many may begin in which time, for instance 10/1s.
    #[arg(long, value_name = "N/TIME", value_parser = value::rate)]
    rate: Option<value::Rate>,
    /// Allow anything.
    #[arg(long, conflicts_with_all = ["at_once", "rate"])]
    unlimited: bool,
    /// Make a limit of a name that no limit has yet.
    #[arg(long)]
    new: bool,
}

#[derive(Debug, Clone, Args)]
pub(super) struct OverrideArgs {
    #[command(flatten)]
    how: How,
    /// Which procedure: its id, for instance 42.0, or its idempotency key.
    #[arg(value_name = "ID")]
    id: Named,
    /// The output as JSON, of the kind's own type; @FILE reads a file, - standard input.
    #[arg(value_name = "JSON", value_parser = value::json)]
    output: Value,
}

#[derive(Debug, Clone, Args)]
pub(super) struct DrainArgs {
    #[command(flatten)]
    how: How,
    /// How long running stages may take, for instance 90s; at most an hour.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = value::time)]
    deadline: Duration,
}

/// One act that was asked for. Its target is first the name that was given, then the id.
struct Wish<T = Target> {
    how: How,
    verb: VerbName,
    target: T,
    /// What the verb takes, as the API has it.
    operands: Map<String, Value>,
    /// What is said of the target once it is done, if that is not what the verb says.
    done: Option<&'static str>,
    /// A limit that is not there is made. Without that word it is a mistake in the name.
    makes_new: bool,
}

impl Act {
    pub(super) async fn run(self) -> Result<Exit, Failure> {
        match self {
            Self::Submit(args) => args.run().await,
            Self::Reveal(args) => reveal(args).await,
            Self::RunNow(args) => run_now(args).await,
            Self::Pause(args) => args.with(VerbName::Pause).run().await,
            Self::Resume(args) => args.with(VerbName::Resume).run().await,
            Self::Retry(args) => args.with(VerbName::RetryNow).run().await,
            Self::Abort(args) => args.with(VerbName::Abort).run().await,
            Self::Acknowledge(args) => args.with(VerbName::Acknowledge).run().await,
            Self::RunAgain(args) => args.with(VerbName::RunAgain).run().await,
            Self::RetryUndo(args) => args.with(VerbName::RetryUndo).run().await,
            Self::SkipUndo(args) => args.with(VerbName::SkipUndo).run().await,
            Self::Discharge(args) => args.with(VerbName::Discharge).run().await,
            Self::Decide(args) => {
                let target = Target::One(args.id);
                let wish = Wish::new(VerbName::Decide, target, args.how);
                wish.operand("answer", args.answer).run().await
            }
            Self::Signal(args) => {
                let wish = Wish::new(VerbName::Signal, Target::One(args.id), args.how);
                let wish = wish.operand("name", args.event);
                wish.operand("payload", args.payload).run().await
            }
            Self::Priority(args) => {
                let wish = Wish::new(VerbName::SetPriority, Target::One(args.id), args.how);
                wish.operand("priority", args.priority).run().await
            }
            Self::OverrideResult(args) => {
                let wish = Wish::new(VerbName::OverrideResult, Target::One(args.id), args.how);
                wish.operand("output", args.output).run().await
            }
            Self::Bypass(args) => args.wish().run().await,
            Self::Limit(args) => args.wish().run().await,
            Self::Drain(args) => {
                let deadline = u64::try_from(args.deadline.as_millis()).unwrap_or(u64::MAX);
                let wish = Wish::new(VerbName::Drain, Target::All, args.how);
                wish.operand("deadline_ms", deadline).run().await
            }
        }
    }
}

impl OneArgs {
    fn with(self, verb: VerbName) -> Wish<Target<Named>> {
        Wish::new(verb, Target::One(self.id), self.how)
    }
}

impl SomeArgs {
    fn with(self, verb: VerbName) -> Wish<Target<Named>> {
        Wish::new(verb, Target::of(self.id, None, self.filter), self.how)
    }
}

impl ManyArgs {
    fn with(self, verb: VerbName) -> Wish<Target<Named>> {
        Wish::new(verb, Target::of(self.id, self.kind, self.filter), self.how)
    }
}

impl BypassArgs {
    fn wish(self) -> Wish<Target<Named>> {
        let mut wish = Wish::new(VerbName::Bypass, Target::One(self.id), self.how);
        if self.recursive {
            wish = wish.operand("recursive", true);
        }
        if self.failed {
            wish = wish.operand("as", "failed");
        }
        wish
    }
}

impl LimitArgs {
    fn wish(self) -> Wish<Target<Named>> {
        let mut wish = Wish::new(VerbName::SetLimit, Target::Limit(self.key), self.how);
        wish.makes_new = self.new;
        if self.unlimited {
            wish = wish.operand("unlimited", true);
        }
        if let Some(at_once) = self.at_once {
            wish = wish.operand("limit", at_once);
        }
        if let Some(rate) = self.rate {
            wish = wish.operand("begins", rate.begins).operand("per_ms", rate.per_ms);
        }
        wish
    }
}

/// Asks a schedule for a run. Another procedure would keep the signal, and never take it.
async fn run_now(args: OneArgs) -> Result<Exit, Failure> {
    let site = args.how.site()?;
    args.how.must_make_sense(false)?;
    let id = site.resolve(&args.id).await?;
    let shown = site.get(&format!("procedures/{id}"), &[]).await?;
    let kind = shown.get("procedure").get("kind").and_then(Value::as_str);
    if let Some(kind) = kind.filter(|kind| *kind != SCHEDULE) {
        let kind = print::plain(kind);
        let text = format!("{id} is of the kind {kind}, and no schedule; see \"procession ls kind:{SCHEDULE}\"");
        return Err(Failure::usage(text));
    }
    let mut wish = Wish::new(VerbName::Signal, Target::One(Named::Id(id)), args.how);
    wish.done = Some("is asked for a run");
    wish.operand("name", RUN_NOW).run().await
}

/// Prints the value and the output of a procedure.
async fn reveal(args: OneArgs) -> Result<Exit, Failure> {
    let site = args.how.site()?;
    let reason = args.how.reason(true)?;
    let id = site.resolve(&args.id).await?;
    let path = format!("procedures/{id}/{}", VerbName::Reveal);
    let document = site.post(&path, &json!({ "reason": reason }), args.how.dry_run).await?;
    document.print()?;
    Ok(Exit::Done)
}

impl<I> Wish<Target<I>> {
    fn new(verb: VerbName, target: Target<I>, how: How) -> Self {
        Self {
            how,
            verb,
            target,
            operands: Map::new(),
            done: None,
            makes_new: false,
        }
    }

    fn operand(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.operands.insert(name.to_owned(), value.into());
        self
    }
}

impl Wish<Target<Named>> {
    async fn run(self) -> Result<Exit, Failure> {
        let site = self.how.site()?;
        // An answer and a signal are what the code waits for, and nothing changes for what has ended: whoever gives
        // them needs no reason.
        let needs_reason = !matches!(self.verb, VerbName::Decide | VerbName::Signal | VerbName::Acknowledge);
        let reason = self.how.must_make_sense(needs_reason)?;
        if let Target::Filter(filter) = &self.target {
            let (how, verb) = (&self.how, self.verb);
            return BulkWish { how, verb, filter }.make(&site, &reason).await;
        }
        if let Target::Kind(kind) = &self.target {
            kinds::must_be_known(&site, kind).await?;
        }
        let wish = Wish {
            target: self.target.resolve(&site).await?,
            how: self.how,
            verb: self.verb,
            operands: self.operands,
            done: self.done,
            makes_new: self.makes_new,
        };
        wish.make(&site, &reason).await
    }
}

impl Wish {
    async fn make(self, site: &Site, reason: &str) -> Result<Exit, Failure> {
        let body = Value::Object(self.operands.clone());
        let plan = site.post(&self.path(), &body, true).await?;
        let planned: Outcome = plan.read()?;
        if let (Target::Limit(key), true, false) = (&self.target, planned.new, self.makes_new) {
            return Err(limits::unknown(site, key).await);
        }
        if self.how.dry_run {
            self.show(&plan, &planned)?;
            return Ok(Exit::Done);
        }
        if !self.how.json {
            planned.show();
        }
        if let Some(why) = planned.too_late() {
            return Err(Failure {
                exit: Exit::Refused,
                text: format!("it is too late to abort {}: {why}", self.target),
            });
        }
        self.how.must_be_meant(self.verb.as_str(), &self.target)?;
        let expected = planned.revision.as_deref().filter(|_| self.is_held_to_its_plan());
        let done = self.apply(site, reason, expected).await?;
        let outcome: Outcome = done.read()?;
        if self.how.json {
            done.print()?;
        } else {
            for text in outcome.beyond(&planned) {
                print::notice(&text);
            }
            print::line(&match self.done {
                Some(done) => outcome.told(&self.target, done),
                None => outcome.sentence(self.verb, &self.target),
            });
        }
        Ok(Exit::Done)
    }

    /// Returns `false` for what is done to a procedure wherever it is by then: held to its revision, one that moves would
    /// slip away.
    fn is_held_to_its_plan(&self) -> bool {
        !matches!(
            self.verb,
            VerbName::Pause | VerbName::Resume | VerbName::Signal | VerbName::SetPriority
        )
    }

    fn path(&self) -> String {
        match &self.target {
            // A limit is set by its own path.
            Target::Limit(_) => self.target.path(),
            Target::One(_) | Target::Kind(_) | Target::All | Target::Filter(_) => {
                format!("{}/{}", self.target.path(), self.verb)
            }
        }
    }

    fn show(&self, plan: &Document, planned: &Outcome) -> Result<(), Failure> {
        if self.how.json {
            return plan.print();
        }
        planned.show();
        Ok(())
    }

    /// Sends the act with what it needs.
    async fn apply(&self, site: &Site, reason: &str, expected: Option<&str>) -> Result<Document, Failure> {
        let mut fields = self.operands.clone();
        fields.insert("reason".to_owned(), reason.into());
        fields.extend(expected.map(|revision| ("expected".to_owned(), revision.into())));
        if let Target::One(id) = &self.target
            && ask::cannot_be_undone(self.verb.as_str())
        {
            fields.insert("confirm".to_owned(), id.to_string().into());
        }
        send(
            site,
            &self.path(),
            &Value::Object(fields),
            self.verb.as_str(),
            &self.target,
        )
        .await
    }
}

/// Sends an act until it is answered: whether one was heard whose answer got lost is not known, and its key makes a repeat
/// harmless.
pub(super) async fn send(
    site: &Site,
    path: &str,
    body: &Value,
    verb: &str,
    target: &Target,
) -> Result<Document, Failure> {
    let mut body = body.clone();
    if let Some(fields) = body.as_object_mut() {
        fields.insert("key".to_owned(), ask::new_key().into());
    }
    for _ in 1..SENT {
        match site.post(path, &body, false).await {
            Err(Unanswered::Unreached(why)) => print::notice(&format!("{why}; sending it again")),
            told => return told.map_err(|why| refused(target, why)),
        }
    }
    let told = site.post(path, &body, false).await;
    told.map_err(|why| match why {
        Unanswered::Unreached(why) => Failure::new(format!(
            "{why} Whether {verb} was done to {target} is not known: see \"procession show\""
        )),
        other @ (Unanswered::Problem(_) | Unanswered::Other(_)) => refused(target, other),
    })
}

fn refused(target: &Target, why: Unanswered) -> Failure {
    match &why {
        Unanswered::Problem(problem) if problem.kind == "revised" => Failure {
            exit: Exit::Refused,
            text: format!(
                "{target} has changed since the plan was made{}, and nothing was done; run the command again, and look at \
                 the new plan",
                stands(problem, target)
            ),
        },
        Unanswered::Unreached(_) | Unanswered::Problem(_) | Unanswered::Other(_) => why.into(),
    }
}

/// Says how a changed procedure stands by now, as far as the dashboard says it.
fn stands(problem: &Problem, target: &Target) -> String {
    if let (Target::Filter(_), Some(count)) = (target, problem.count) {
        let since = match (problem.came, problem.went) {
            (Some(came), Some(went)) => format!(": {came} came and {went} went"),
            (Some(_), None) | (None, _) => String::new(),
        };
        return format!(" ({count} procedures by now{since})");
    }
    match (&problem.state, &problem.revision) {
        (Some(state), Some(revision)) => {
            format!(" (it is {} by now, at revision {revision})", state_words(state))
        }
        (None, Some(revision)) => format!(" (it has revision {revision} by now)"),
        (_, None) => String::new(),
    }
}

//! The verbs of operators, through a dashboard: the plan first, then the question whether that is
//! meant, then the act. What was planned is what is done: if anything came between, it is refused.

pub(super) mod ask;
mod bulk;
mod outcome;
pub(super) mod target;

use clap::{Args, Subcommand};
use procession::operate::VerbName;
use procession::views::state_words;
use serde_json::{Value, json};

use super::document::Document;
use super::exit::{Exit, Failure};
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
        let reason = self.reason.clone().unwrap_or_default();
        if self.dry_run {
            return Ok(reason);
        }
        if reason.trim().is_empty() && needs_reason {
            let text = "say why with --reason: the audit keeps it; or look at the plan with --dry-run";
            return Err(Failure::usage(text));
        }
        if !self.yes && (self.json || !ask::is_possible()) {
            let text = "there is no terminal to ask on: look at the plan with --dry-run, and give --yes";
            return Err(Failure::usage(text));
        }
        Ok(reason)
    }

    /// Asks whether it is meant, unless that was said already.
    pub(super) fn is_meant(&self, verb: &str, target: &Target) -> Result<bool, Failure> {
        let is_meant = self.yes || ask::is_meant(verb, target)?;
        if !is_meant {
            print::notice("nothing was done");
        }
        Ok(is_meant)
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
    /// The answer as JSON: true, 7, '"yes"'. What its code expects is said in the question.
    #[arg(value_name = "JSON", value_parser = json_of)]
    answer: Value,
}

fn json_of(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("it is no JSON: {error}; a text has quotes: '\"yes\"'"))
}

/// One act that was asked for. Its target is first the name that was given, then the id.
struct Wish<T = Target> {
    how: How,
    verb: VerbName,
    target: T,
    recursive: bool,
    failed: bool,
    answer: Option<Value>,
}

impl Act {
    pub(super) async fn run(self) -> Result<Exit, Failure> {
        self.wish().run().await
    }

    fn wish(self) -> Wish<Target<Named>> {
        let one = |verb, how, id| Wish {
            how,
            verb,
            target: Target::One(id),
            recursive: false,
            failed: false,
            answer: None,
        };
        let many = |verb, args: ManyArgs| Wish {
            how: args.how,
            verb,
            target: Target::of(args.id, args.kind, args.filter),
            recursive: false,
            failed: false,
            answer: None,
        };
        let some = |verb, args: SomeArgs| Wish {
            how: args.how,
            verb,
            target: Target::of(args.id, None, args.filter),
            recursive: false,
            failed: false,
            answer: None,
        };
        match self {
            Self::Pause(args) => many(VerbName::Pause, args),
            Self::Resume(args) => many(VerbName::Resume, args),
            Self::Retry(args) => some(VerbName::RetryNow, args),
            Self::Abort(args) => some(VerbName::Abort, args),
            Self::Acknowledge(args) => some(VerbName::Acknowledge, args),
            Self::RunAgain(args) => some(VerbName::RunAgain, args),
            Self::Decide(args) => Wish {
                answer: Some(args.answer),
                ..one(VerbName::Decide, args.how, args.id)
            },
            Self::RunNow(args) => one(VerbName::Signal, args.how, args.id),
            Self::Bypass(args) => Wish {
                recursive: args.recursive,
                failed: args.failed,
                ..one(VerbName::Bypass, args.how, args.id)
            },
        }
    }
}

impl Wish<Target<Named>> {
    async fn run(self) -> Result<Exit, Failure> {
        let site = self.how.site()?;
        // An answer and a request are what the code waits for, and nothing changes for what has ended: whoever gives
        // them needs no reason.
        let needs_reason = !matches!(self.verb, VerbName::Decide | VerbName::Signal | VerbName::Acknowledge);
        let reason = self.how.must_make_sense(needs_reason)?;
        if let Target::Filter(filter) = &self.target {
            let (how, verb) = (&self.how, self.verb);
            return BulkWish { how, verb, filter }.make(&site, &reason).await;
        }
        let wish = Wish {
            target: self.target.resolve(&site).await?,
            how: self.how,
            verb: self.verb,
            recursive: self.recursive,
            failed: self.failed,
            answer: self.answer,
        };
        wish.make(&site, &reason).await
    }
}

impl Wish {
    async fn make(self, site: &Site, reason: &str) -> Result<Exit, Failure> {
        self.must_be_a_schedule(site).await?;
        let plan = site.post(&self.path(), &self.body(), true).await?;
        let planned: Outcome = plan.read()?;
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
        if !self.how.is_meant(self.verb.as_str(), &self.target)? {
            return Ok(Exit::Done);
        }
        // What moves is paused wherever it is by then: held to its revision, it would slip away. So would a schedule,
        // which moves with each of its runs.
        let expected = planned
            .revision
            .as_deref()
            .filter(|_| !matches!(self.verb, VerbName::Pause | VerbName::Resume | VerbName::Signal));
        let done = self.apply(site, reason, expected).await?;
        let outcome: Outcome = done.read()?;
        if self.how.json {
            done.print()?;
        } else {
            print::line(&outcome.sentence(self.verb, &self.target));
        }
        Ok(Exit::Done)
    }

    /// Refuses to ask another procedure for a run: it would keep the signal, and never take it.
    async fn must_be_a_schedule(&self, site: &Site) -> Result<(), Failure> {
        let (VerbName::Signal, Target::One(id)) = (self.verb, &self.target) else {
            return Ok(());
        };
        let shown = site.get(&format!("procedures/{id}"), &[]).await?;
        let kind = shown.get("procedure").get("kind").and_then(Value::as_str);
        match kind.filter(|kind| *kind != SCHEDULE) {
            Some(kind) => {
                let kind = print::plain(kind);
                let text =
                    format!("{id} is of the kind {kind}, and no schedule; see \"procession ls kind:{SCHEDULE}\"");
                Err(Failure::usage(&text))
            }
            None => Ok(()),
        }
    }

    fn path(&self) -> String {
        format!("{}/{}", self.target.path(), self.verb)
    }

    fn body(&self) -> Value {
        if let Some(answer) = &self.answer {
            json!({ "answer": answer })
        } else if self.verb == VerbName::Signal {
            json!({ "name": RUN_NOW })
        } else {
            let mut body = serde_json::Map::new();
            body.extend(self.recursive.then(|| ("recursive".to_owned(), json!(true))));
            body.extend(self.failed.then(|| ("as".to_owned(), json!("failed"))));
            Value::Object(body)
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
        let mut body = self.body();
        if let Some(fields) = body.as_object_mut() {
            fields.insert("reason".to_owned(), reason.into());
            fields.extend(expected.map(|revision| ("expected".to_owned(), revision.into())));
            if let (Target::One(id), VerbName::Bypass) = (&self.target, self.verb) {
                fields.insert("confirm".to_owned(), id.to_string().into());
            }
        }
        send(site, &self.path(), &body, self.verb.as_str(), &self.target).await
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
                stands(problem)
            ),
        },
        Unanswered::Unreached(_) | Unanswered::Problem(_) | Unanswered::Other(_) => why.into(),
    }
}

/// Says how a changed procedure stands by now, as far as the dashboard says it.
fn stands(problem: &Problem) -> String {
    match (&problem.state, &problem.revision) {
        (Some(state), Some(revision)) => {
            format!(" (it is {} by now, at revision {revision})", state_words(state))
        }
        (None, Some(revision)) => format!(" (it has revision {revision} by now)"),
        (_, None) => String::new(),
    }
}

//! A decision about a saga that rests, made as other acts are: the plan, the question whether that is meant, the act.

use serde::Deserialize;
use serde_json::Value;

use super::super::act::{How, Outcome, Target, send};
use super::super::document::Document;
use super::super::exit::{Exit, Failure};
use super::super::named::Named;
use super::super::print;

/// One decision, in the words of the API.
pub(super) struct Decision {
    pub(super) verb: &'static str,
    /// What the saga does once the decision is taken.
    pub(super) done: &'static str,
    pub(super) body: Value,
}

/// The members that go on.
#[derive(Deserialize)]
struct Members {
    #[serde(default)]
    members: Vec<Member>,
}

#[derive(Deserialize)]
struct Member {
    id: String,
    state: String,
}

impl Decision {
    pub(super) async fn make(self, how: &How, id: &Named) -> Result<Exit, Failure> {
        let site = how.site()?;
        let reason = how.must_make_sense(true)?;
        let id = site.resolve(id).await?;
        let (target, path) = (Target::One(id), format!("procedures/{id}/{}", self.verb));
        let plan = site.post(&path, &self.body, true).await?;
        let planned: Outcome = plan.read()?;
        if how.dry_run {
            if how.json {
                plan.print()?;
            } else {
                show(&plan, &planned)?;
            }
            return Ok(Exit::Done);
        }
        if !how.json {
            show(&plan, &planned)?;
        }
        how.must_be_meant(self.verb, &target)?;
        let body = with_reason(self.body, &reason, planned.revision.as_deref());
        let done = send(&site, &path, &body, self.verb, &target).await?;
        if how.json {
            done.print()?;
        } else {
            let outcome: Outcome = done.read()?;
            print::line(&outcome.told(&target, self.done));
        }
        Ok(Exit::Done)
    }
}

fn show(plan: &Document, planned: &Outcome) -> Result<(), Failure> {
    let members: Members = plan.read()?;
    let rests = members.members.into_iter().map(|member| [member.id, member.state]);
    print::table(["ID", "RESTS AT"], rests);
    planned.show();
    Ok(())
}

fn with_reason(mut body: Value, reason: &str, expected: Option<&str>) -> Value {
    if let Some(fields) = body.as_object_mut() {
        fields.insert("reason".to_owned(), reason.into());
        fields.extend(expected.map(|revision| ("expected".to_owned(), revision.into())));
    }
    body
}

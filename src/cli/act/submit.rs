//! `procession submit`: a procedure of a registered kind, its value as JSON.

use clap::Args;
use procession::operate::VerbName;
use serde_json::{Map, Value, json};

use super::super::exit::{Exit, Failure};
use super::super::{kinds, print};
use super::{How, Outcome, Target, send, value};

#[derive(Debug, Clone, Args)]
pub(crate) struct SubmitArgs {
    #[command(flatten)]
    how: How,
    /// Its kind, as "procession kinds" lists them.
    #[arg(value_name = "KIND")]
    kind: String,
    /// Its value as JSON, of a kind saga.NAME the params of the saga; @FILE reads a file, - standard input.
    #[arg(value_name = "JSON", value_parser = value::json, default_value = "null")]
    value: Value,
    /// Its idempotency key: the same key and value submit nothing more.
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// The name that people see.
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// A label by which people find it. May be given several times.
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
    /// Its priority, in place of the kind's own.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i16>,
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        Some(_) | None => Err("a label is NAME=VALUE, for instance customer=4711".to_owned()),
    }
}

impl SubmitArgs {
    /// Submits it. Nothing is asked before: it changes no procedure, and what it started can be aborted.
    pub(super) async fn run(self) -> Result<Exit, Failure> {
        let site = self.how.site()?;
        kinds::must_be_known(&site, &self.kind).await?;
        let body = Value::Object(self.body());
        let target = Target::Kind(self.kind);
        let path = format!("{}/{}", target.path(), VerbName::Submit);
        let told = if self.how.dry_run {
            site.post(&path, &body, true).await?
        } else {
            send(&site, &path, &body, VerbName::Submit.as_str(), &target).await?
        };
        if self.how.json {
            told.print()?;
        } else if self.how.dry_run {
            print::notice("it can be submitted; nothing was done");
        } else {
            let outcome: Outcome = told.read()?;
            print::line(&outcome.sentence(VerbName::Submit, &target));
        }
        Ok(Exit::Done)
    }

    fn body(&self) -> Map<String, Value> {
        let mut body = Map::new();
        body.insert("value".to_owned(), self.value.clone());
        let labels: Map<String, Value> = self
            .labels
            .iter()
            .cloned()
            .map(|(name, value)| (name, value.into()))
            .collect();
        body.insert("labels".to_owned(), labels.into());
        body.extend(
            self.how
                .reason
                .iter()
                .map(|reason| ("reason".to_owned(), json!(reason))),
        );
        body.extend(self.key.iter().map(|key| ("idempotency_key".to_owned(), json!(key))));
        body.extend(self.name.iter().map(|name| ("name".to_owned(), json!(name))));
        body.extend(self.priority.map(|priority| ("priority".to_owned(), json!(priority))));
        body
    }
}

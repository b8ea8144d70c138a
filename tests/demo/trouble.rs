//! A shop in which everything is the matter: each kind of trouble is there, whoever is on this machine may act, and what
//! was done about it stays done.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::Outcome;
use crate::command::{Running, shop};
use crate::watched::{address_of, ask};

/// What the dashboard judges.
const RULES: [&str; 10] = [
    "deadlock",
    "no_progress",
    "overrun",
    "poison",
    "quarantined",
    "retry_storm",
    "rollback_failed",
    "size",
    "unacknowledged_failures",
    "undecided",
];
/// What merely waits, and is no verdict: key and reason.
const WAITS: [(&str, &str); 4] = [
    ("order-3", "event"),
    ("order-4", "lock"),
    ("newsletter-1", "paused"),
    ("pick-3", "permit"),
];

/// A dashboard that is asked from this machine.
struct Page(String);

impl Page {
    fn get(&self, path: &str) -> Outcome<Value> {
        let request = format!("GET /api/v1/{path}");
        let (status, body) = ask(&self.0, &request, &format!("host: {}\r\n", self.0), "")?;
        assert_eq!(status, 200, "{path}: {body}");
        Ok(serde_json::from_str(&body)?)
    }

    /// Acts as an operator does: with the plan that a dry run made.
    fn act(&self, path: &str) -> Outcome {
        let plan = self.post(&format!("{path}?dry_run=true"), &json!({ "reason": "a test" }))?;
        self.post(path, &json!({ "reason": "a test", "expected": plan.get("revision") }))?;
        Ok(())
    }

    fn post(&self, path: &str, asked: &Value) -> Outcome<Value> {
        let marked = "x-procession: 1\r\ncontent-type: application/json\r\n";
        let headers = format!("host: {}\r\n{marked}", self.0);
        let (status, body) = ask(&self.0, &format!("POST /api/v1/{path}"), &headers, &asked.to_string())?;
        assert_eq!(status, 200, "{path}: {body}");
        Ok(serde_json::from_str(&body)?)
    }

    fn verdicts(&self) -> Outcome<Vec<Value>> {
        let attention = self.get("attention")?;
        let verdicts = attention.get("verdicts").and_then(Value::as_array);
        Ok(verdicts.ok_or("no verdicts")?.clone())
    }

    fn rules(&self) -> Outcome<BTreeSet<String>> {
        let verdicts = self.verdicts()?;
        Ok(verdicts
            .iter()
            .filter_map(|one| one["rule"].as_str())
            .map(str::to_owned)
            .collect())
    }

    /// Asks until the rules are as they are to be.
    fn until(&self, wanted: impl Fn(&BTreeSet<String>) -> bool) -> Outcome {
        while !wanted(&self.rules()?) {
            std::thread::yield_now();
        }
        Ok(())
    }
}

#[test]
fn every_kind_of_trouble_is_there_and_the_deadlock_can_be_broken_for_good() -> Outcome {
    let directory = tempfile::tempdir()?;
    let start = || Running::start(shop(directory.path(), "--trouble --port 0"));
    let mut running = start()?;
    let page = Page(address_of(&mut running)?);
    let line = running.until("first: ")?.ok_or("it did not say what to try first")?;
    page.until(|rules| RULES.iter().all(|rule| rules.contains(*rule)))?;
    for (key, reason) in WAITS {
        let list = page.get(&format!("procedures?filter=key:{key}"))?;
        let wait = &list["items"][0]["reason"];
        assert_eq!(wait, reason, "{key}: {list}");
    }

    let verdicts = page.verdicts()?;
    let deadlock = verdicts.iter().find(|one| one["rule"] == "deadlock");
    let victim = deadlock.and_then(|one| one["procedure"].as_str()).ok_or("no victim")?;
    assert!(line.contains(victim), "{line}");
    page.act(&format!("procedures/{victim}/abort"))?;
    page.until(|rules| !rules.contains("deadlock"))?;
    let (status, said) = running.interrupt()?;
    assert!(status.success() && said.contains("go on with"), "{said}");

    // What was done about it stays done, and the rest is still the matter.
    let mut again = start()?;
    let page = Page(address_of(&mut again)?);
    again.until("the deadlock was broken")?.ok_or("it is locked again")?;
    page.until(|rules| rules.contains("poison") && rules.contains("rollback_failed"))?;
    assert!(!page.rules()?.contains("deadlock"));
    let (status, said) = again.interrupt()?;
    assert!(status.success(), "{said}");
    Ok(())
}

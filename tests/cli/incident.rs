//! The incident of `docs/how-to/handle-an-incident.md`, handled with the commands that stand there and nothing else.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use procession::procedure::RetryPolicy;
use procession::status::ListFilter;
use procession::{Builder, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use crate::Outcome;
use crate::run::{Said, procession_in};
use crate::site::{Site, Time, all};

/// Whether the payment service answers. One incident is handled in this process.
static ANSWERS: AtomicBool = AtomicBool::new(false);

const ORDERS: usize = 12;
/// How often the engine is asked for what it finds, at most.
const LOOKS: usize = 200;
const REFUSES: &str = "the payment service refuses the connection";

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Order {
    cents: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Stage {
    Reserve,
    Pay,
}

impl Procedure for Order {
    const KIND: &'static str = "order";
    type Stage = Stage;
    type Env = ();
    type Output = u32;

    fn first(&self) -> Stage {
        Stage::Reserve
    }

    fn retry() -> RetryPolicy {
        RetryPolicy::default().attempts(2).base(Duration::from_millis(1))
    }

    async fn execute(&mut self, stage: Stage, _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        match stage {
            Stage::Reserve => Ok(Step::Next(Stage::Pay)),
            Stage::Pay if ANSWERS.load(Ordering::SeqCst) => Ok(Step::Done(self.cents)),
            Stage::Pay => Err(StageError::retry(REFUSES)),
        }
    }

    async fn rollback(&mut self, _: Stage, _: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        Ok(())
    }
}

fn set_up(builder: Builder) -> Outcome<Builder> {
    Ok(builder.register::<Order>(()))
}

/// Returns the lines of the page's commands, of the section with this heading.
fn commands(heading: &str) -> Outcome<Vec<String>> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/how-to/handle-an-incident.md");
    let page = std::fs::read_to_string(page)?;
    let section = page.split(heading).nth(1).ok_or("no such section")?;
    let block = section.split("```sh\n").nth(1).ok_or("no commands")?;
    let block = block.split("```").next().unwrap_or_default();
    Ok(block.lines().map(str::to_owned).collect())
}

/// Splits a line as a shell does that knows single quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (place, part) in line.split('\'').enumerate() {
        match place % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

/// Waits until all that was submitted has ended; how it ended is what the commands tell.
fn ended(site: &Site) -> Outcome {
    futures::executor::block_on(async {
        let page = site.executor().list(ListFilter::default(), None, 100).await?;
        for status in page.items.iter().filter(|status| status.ended.is_none()) {
            drop(site.executor().outcome(status.id).await?);
        }
        Ok(())
    })
}

#[test]
fn a_payment_service_fails_and_the_command_line_is_enough() -> Outcome {
    let root = tempfile::tempdir()?;
    let site = Site::open_with(root.path(), Time::Real, all, set_up)?;
    futures::executor::block_on(async {
        for number in 1..=ORDERS {
            let order = site.executor().submit(Order { cents: 1_999 });
            order.key(format!("order-{number}")).await?;
        }
        Ok::<_, procession::errors::SubmitError>(())
    })?;
    ended(&site)?;
    let settings = [("PROCESSION_URL", site.url())];
    let mut said: Vec<(String, Said)> = Vec::new();
    for line in commands("## With the command line")? {
        if line.starts_with('#') {
            ANSWERS.store(true, Ordering::SeqCst);
            continue;
        }
        if said.iter().any(|(before, _)| before.contains("--yes")) {
            ended(&site)?;
        }
        let words = words(&line);
        let (program, arguments) = words.split_first().ok_or("an empty line")?;
        assert_eq!(program, "procession");
        let mut answer = procession_in(&settings, arguments.iter().map(String::as_str))?;
        // What the engine finds is counted now and then: somebody who is on call looks once more, too.
        let is_settled = |answer: &Said| match said.is_empty() {
            true => answer.out.contains("12 failures"),
            false => line != "procession doctor" || answer.code == Some(0),
        };
        for _ in 0..LOOKS {
            if is_settled(&answer) {
                break;
            }
            answer = procession_in(&settings, arguments.iter().map(String::as_str))?;
        }
        said.push((line, answer));
    }
    let mut said = said.into_iter();
    let mut next = |verb: &str, code: i32| -> Outcome<String> {
        let (line, said) = said.next().ok_or("there are more commands")?;
        assert!(line.starts_with(&format!("procession {verb}")), "{line}");
        assert_eq!(said.code, Some(code), "{line}: {}{}", said.out, said.err);
        Ok(said.out + &said.err)
    };
    let doctor = next("doctor", 3)?;
    assert!(doctor.contains("12 failures are not acknowledged"), "{doctor}");
    let failures = next("failures", 0)?;
    assert!(
        failures.contains("12     order") && failures.contains(REFUSES),
        "{failures}"
    );
    let listed = next("ls failure:any", 0)?;
    assert!(
        listed.contains("order-12") && listed.contains("12 procedures"),
        "{listed}"
    );
    let history = next("history", 0)?;
    assert!(
        history.matches(REFUSES).count() >= 2 && history.contains("Pay"),
        "{history}"
    );
    let plan = next("run-again", 0)?;
    assert!(plan.contains("12 procedures"), "{plan}");
    let again = next("run-again", 0)?;
    assert!(again.contains("12 done, 0 refused, 0 left"), "{again}");
    let failures = next("failures", 0)?;
    assert!(failures.contains("no failure waits to be acknowledged"), "{failures}");
    let audit = next("audit", 0)?;
    assert!(
        audit.contains("12 entries") && audit.contains("the payment service is back"),
        "{audit}"
    );
    let doctor = next("doctor", 0)?;
    assert!(doctor.contains("nothing needs you"), "{doctor}");
    Ok(())
}

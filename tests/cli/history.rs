//! What `history` tells of one entry: the value behind it, what differs from another, and what attempts logged.

use std::path::Path;

use procession::{Executor, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use crate::Outcome;
use crate::golden::made;
use crate::run::look;
use crate::site::{Site, Time, all};

/// Counts what it is given, with a name for each.
#[derive(Serialize, Deserialize)]
struct Tally {
    names: Vec<String>,
    sum: u32,
}

impl Procedure for Tally {
    const KIND: &'static str = "tally";
    const KEEP_VALUES: usize = 1_000;
    type Stage = u32;
    type Env = ();
    type Output = ();

    fn first(&self) -> u32 {
        1
    }

    async fn execute(&mut self, stage: u32, _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        self.names.push(format!("n{stage}"));
        self.sum += stage;
        Ok(if stage < 3 {
            Step::Next(stage + 1)
        } else {
            Step::Done(())
        })
    }
}

fn counted(place: &Path) -> Outcome {
    actix_rt::System::new().block_on(async {
        let executor = Executor::builder(place).register::<Tally>(()).start().await?;
        let names = vec!["n0".to_owned()];
        executor.submit(Tally { names, sum: 0 }).await?.await?;
        executor.shutdown().await;
        Ok(())
    })
}

#[test]
fn a_closed_journal_tells_values_and_what_differs() -> Outcome {
    let place = made(counted)?;
    let said = look("history 1.0 --value 2", &place.journal)?;
    let value: serde_json::Value = serde_json::from_str(&said.out)?;
    assert_eq!(value, serde_json::json!({ "names": ["n0", "n1", "n2"], "sum": 3 }));
    let said = look("history 1.0 --diff 1 3", &place.journal)?;
    let lines: Vec<&str> = said.out.lines().collect();
    assert_eq!(lines, ["+ /names/2: \"n2\"", "+ /names/3: \"n3\"", "~ /sum: 1 -> 6"]);
    assert!(said.err.contains("3 changes"), "{}", said.err);
    let said = look("history 1.0 --value 9", &place.journal)?;
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("has no entry 9"), "{}", said.err);
    Ok(())
}

#[test]
fn logs_and_values_are_asked_of_a_dashboard_and_its_host_decides() -> Outcome {
    let place = made(counted)?;
    let said = look("history 1.0 --logs", &place.journal)?;
    assert_eq!(said.code, Some(2));
    assert!(said.err.contains("a closed journal has no logs"), "{}", said.err);
    let site = Site::open_with(&place.journal, Time::Still, all, |builder| {
        Ok(builder.register::<Tally>(()))
    })?;
    let said = site.run("history 1.0 --logs")?;
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.err.contains("its host keeps no logs"), "{}", said.err);
    let said = site.run("history 1.0 --diff 0 2")?;
    assert_eq!(said.code, Some(1));
    assert!(
        said.err.contains("the dashboard's host shows no values"),
        "{}",
        said.err
    );
    let said = site.run("history 1.0 --value 2 --json")?;
    let reply: serde_json::Value = serde_json::from_str(&said.out)?;
    assert_eq!(reply["to"]["left_by"], 2);
    Ok(())
}

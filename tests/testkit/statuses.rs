//! A procedure that keeps a status row when it is rolled back: its keyspace is exempted, and nothing else.

use procession::testkit::Check;
use procession::{Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use crate::Tested;

/// What users see of an order, also after it was cancelled.
#[derive(Serialize, Deserialize)]
struct Status {
    customer: String,
    state: String,
}

#[derive(Clone, Serialize, Deserialize)]
struct Order {
    number: u32,
    /// The undo restores the stock, as it should.
    restores: bool,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Stage {
    Reserve,
    Ship,
}

impl Order {
    fn say(&self, cx: &mut StageContext<'_, Self>, state: &str) -> Result<(), StageError> {
        let status = Status {
            customer: "kim".to_owned(),
            state: state.to_owned(),
        };
        cx.put("orders", format!("o-{}", self.number), &status)?;
        Ok(())
    }
}

impl Procedure for Order {
    const KIND: &'static str = "order";
    type Stage = Stage;
    type Env = ();
    type Output = ();

    fn first(&self) -> Stage {
        Stage::Reserve
    }

    async fn execute(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        match stage {
            Stage::Reserve => {
                cx.put("stock", self.number.to_be_bytes(), &true)?;
                self.say(cx, "reserved")?;
                Ok(Step::Next(Stage::Ship))
            }
            Stage::Ship => {
                self.say(cx, "shipped")?;
                Ok(Step::Done(()))
            }
        }
    }

    async fn rollback(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        if let Stage::Reserve = stage {
            if self.restores {
                cx.delete("stock", self.number.to_be_bytes());
            }
            self.say(cx, "cancelled")?;
        }
        Ok(())
    }
}

fn order(restores: bool) -> Check<()> {
    Check::new(
        |builder| builder.register::<Order>(()),
        move || Order { number: 7, restores },
    )
}

#[test]
fn a_status_that_is_kept_is_a_fault_unless_its_keyspace_is_exempted() -> Tested {
    let Err(finding) = order(true).fail_each_stage() else {
        return Err("nothing was found".into());
    };
    let row = r#"+ orders/o-7: {"customer":"kim","state":"cancelled"}"#;
    assert!(finding.what.contains(row), "{finding}");
    order(true).keeps("orders").everything()?;
    Ok(())
}

#[test]
fn other_keyspaces_must_be_restored_all_the_same() -> Tested {
    let Err(finding) = order(false).keeps("orders").fail_each_stage() else {
        return Err("nothing was found".into());
    };
    assert!(finding.what.contains("+ stock/0x00000007: true"), "{finding}");
    assert!(!finding.what.contains("cancelled"), "{finding}");
    Ok(())
}

/// A crash must not change what is kept.
#[test]
fn what_is_kept_is_compared_after_a_crash() -> Tested {
    let checked = order(true).keeps("orders").crash_at_every_commit()?;
    assert!(checked.crashes > 0, "{checked:?}");
    // The number of its runs is no state of the order.
    let counts = Check::new(|builder| builder.register::<Counts>(()), || Counts);
    let Err(finding) = counts.keeps("runs").run_stages_twice() else {
        return Err("nothing was found".into());
    };
    assert!(finding.what.contains("user data differ"), "{finding}");
    Ok(())
}

/// Writes down in which of the engine's lives it ran, which no procedure should.
#[derive(Serialize, Deserialize)]
struct Counts;

impl Procedure for Counts {
    const KIND: &'static str = "counts";
    type Stage = ();
    type Env = ();
    type Output = ();

    fn first(&self) {}

    async fn execute(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let life = cx.fence().epoch.0;
        cx.put("runs", "newest", &life)?;
        Ok(Step::Done(()))
    }
}

//! One seed gives one run; another changes the order of what could run at once.

use std::sync::{Arc, Mutex, PoisonError};

use procession::testkit::Check;
use procession::{Children, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use crate::Tested;
use crate::outside::Outside;

/// A parent of eight, or one of them.
#[derive(Clone, Serialize, Deserialize)]
struct Sibling(u32);

impl Procedure for Sibling {
    const KIND: &'static str = "sibling";
    type Stage = bool;
    type Env = Outside;
    type Output = ();

    fn first(&self) -> bool {
        false
    }

    async fn execute(&mut self, then: bool, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        if self.0 == 0 && !then {
            let siblings: Vec<Self> = (1..=8).map(Self).collect();
            return Ok(Step::Spawn {
                children: Children::of(&siblings)?,
                then: true,
            });
        }
        cx.env().log(self.0.to_string());
        Ok(Step::Done(()))
    }
}

/// The order in which the siblings ran.
fn order(seed: u64) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let notes = Arc::clone(&seen);
    Check::with(
        Outside::new,
        |outside, builder| builder.register::<Sibling>(outside.clone()),
        |_| Sibling(0),
    )
    .seed(seed)
    .afterwards(async move |outside: &Outside, _, _| {
        *notes.lock().unwrap_or_else(PoisonError::into_inner) = outside.logged();
        Ok(())
    })
    .succeeds()?;
    Ok(seen.lock().unwrap_or_else(PoisonError::into_inner).clone())
}

#[test]
fn without_a_seed_first_come_first_served() -> Tested {
    assert_eq!(order(0)?.concat(), "123456780");
    Ok(())
}

#[test]
fn one_seed_gives_one_order_and_others_give_others() -> Tested {
    assert_eq!(order(7)?, order(7)?);
    let orders: std::collections::BTreeSet<Vec<String>> = (1..=8).map(order).collect::<Result<_, _>>()?;
    assert!(orders.len() > 4, "{orders:?}");
    Ok(())
}

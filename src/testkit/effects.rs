//! `Effects`: the outside world of a test, where effects are to happen once.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use procession_actors::Token;

/// What stages did outside, as a callee sees it that deduplicates by token. It
/// survives crashes; give it to stages in their environment, and to
/// [`Check::effects`](super::Check::effects).
///
/// A call that is repeated with the same token has happened once. The same effect
/// under two tokens has happened twice: two stages did it, or one stage that did not
/// hand on its token.
///
/// ```
/// use procession::testkit::{Check, Effects};
/// # use procession::{Procedure, StageContext, StageError, Step};
/// # use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Charge { card: String }
///
/// impl Procedure for Charge {
///     const KIND: &'static str = "charge";
///     type Stage = ();
///     type Env = Effects;
///     type Output = ();
/// #   fn first(&self) {}
///
///     async fn execute(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
///         cx.env().happens(cx.token(), format!("{} is charged", self.card));
///         Ok(Step::Done(()))
///     }
///
///     async fn rollback(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
///         cx.env().is_taken_back(format!("{} is charged", self.card));
///         Ok(())
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let check = Check::with(
///     || Ok(Effects::new()),
///     |effects, builder| builder.register::<Charge>(effects.clone()),
///     |_| Charge { card: "1234".into() },
/// );
/// check.effects(Effects::clone).run_stages_twice()?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Effects(Arc<Mutex<Notes>>);

#[derive(Debug, Default)]
struct Notes {
    /// What has happened and was not taken back, with the token of the call.
    standing: BTreeMap<String, Token>,
    faults: Vec<String>,
}

impl Effects {
    /// Starts with nothing done.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes an effect. With the token that it has already, it is a repetition, and
    /// nothing happens.
    pub fn happens(&self, token: Token, effect: impl Display) {
        let effect = effect.to_string();
        let mut notes = self.notes();
        match notes.standing.get(&effect).copied() {
            Some(before) if before != token => notes.faults.push(format!(
                "\"{effect}\" happened twice: visit {} of {} did it, and visit {} of {} again",
                before.visit, before.procedure, token.visit, token.procedure
            )),
            Some(_) => {}
            None => {
                notes.standing.insert(effect, token);
            }
        }
    }

    /// Takes an effect back. One that has not happened, or was taken back before, is no fault.
    pub fn is_taken_back(&self, effect: impl Display) {
        self.notes().standing.remove(&effect.to_string());
    }

    /// Returns the effects that have happened and were not taken back.
    #[must_use]
    pub fn standing(&self) -> Vec<String> {
        self.notes().standing.keys().cloned().collect()
    }

    /// Returns a sentence for each effect that has happened twice.
    #[must_use]
    pub fn twice(&self) -> Vec<String> {
        self.notes().faults.clone()
    }
}

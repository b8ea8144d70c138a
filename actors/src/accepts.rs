//! Which signals a kind takes: asked of each signal before it is kept.

use std::collections::BTreeMap;
use std::fmt;

use std::sync::Arc;

use procession_kernel::{Kind, ProcedureId, SentSignal};
use serde::de::DeserializeOwned;

use crate::error::{AskError, CodecError};
use crate::guard::guarded;
use crate::journal::{Reader, codec};
use crate::signal::SendSignal;

type Rule = Box<dyn Fn(&SignalOffer<'_>) -> Result<(), String> + Send + Sync>;

/// A signal that asks whether the receiver's kind takes it.
#[derive(Clone, Copy)]
pub struct SignalOffer<'a> {
    signal: &'a SentSignal,
}

impl SignalOffer<'_> {
    /// Returns the name of the event.
    #[must_use]
    pub fn name(&self) -> &str {
        self.signal.name.as_str()
    }

    /// Returns `true` if its sender declares it the last of its name.
    #[must_use]
    pub fn is_last(&self) -> bool {
        self.signal.last
    }

    /// Returns the size of the payload in bytes, as it is stored.
    #[must_use]
    pub fn size(&self) -> usize {
        self.signal.payload.len()
    }

    /// Returns the payload that the sender attached.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if it is not of this type.
    pub fn payload<T: DeserializeOwned>(&self) -> Result<T, CodecError> {
        codec::decode_user(self.signal.payload.as_slice())
    }
}

impl fmt::Debug for SignalOffer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignalOffer")
            .field("name", &self.name())
            .field("is_last", &self.is_last())
            .finish_non_exhaustive()
    }
}

/// Which signals a kind takes: the answer of [`Procedure::accepts`](crate::Procedure::accepts).
///
/// ```
/// # use procession_actors::{Accepts, Procedure, StageContext, StageError, Step};
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)]
/// # struct Order;
/// #[derive(Serialize, Deserialize)]
/// struct Approval { by: String, amount: u32 }
///
/// impl Procedure for Order {
/// #   const KIND: &'static str = "order";
/// #   type Stage = ();
/// #   type Env = ();
/// #   type Output = ();
/// #   fn first(&self) {}
/// #   async fn execute(&mut self, _: (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
/// #       Ok(Step::Done(()))
/// #   }
///     fn accepts(_: &()) -> Accepts {
///         Accepts::only()
///             .event_if("approved", |approval: &Approval| match approval.by.as_str() {
///                 "" => Err("the name of who approves is missing".to_owned()),
///                 _ => Ok(()),
///             })
///             .event::<()>("cancel")
///     }
/// }
/// ```
pub struct Accepts {
    events: BTreeMap<String, Rule>,
    /// What is asked of signals of all other names; `None` takes them.
    others: Option<Rule>,
}

impl Accepts {
    /// Takes signals of every name and payload, but for events that are listed behind it.
    #[must_use]
    pub fn anything() -> Self {
        Self {
            events: BTreeMap::new(),
            others: None,
        }
    }

    /// Takes signals of those events alone that are listed behind it.
    #[must_use]
    pub fn only() -> Self {
        Self::by(|_| Err("its kind waits for no event of this name".to_owned()))
    }

    /// Takes the signals that this function takes, for names that are made at run time. Events that are listed behind it
    /// have rules of their own.
    ///
    /// The function must decide by the signal alone, and at once. The sender receives its text.
    #[must_use]
    pub fn by(rule: impl Fn(&SignalOffer<'_>) -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self {
            others: Some(Box::new(rule)),
            ..Self::anything()
        }
    }

    /// Takes signals of this event whose payload is of this type.
    #[must_use]
    pub fn event<T: DeserializeOwned + 'static>(self, name: impl Into<String>) -> Self {
        self.event_if(name, |_: &T| Ok(()))
    }

    /// Takes signals of this event whose payload is of this type and passes this function. The sender receives its text.
    #[must_use]
    pub fn event_if<T: DeserializeOwned + 'static>(
        mut self,
        name: impl Into<String>,
        rule: impl Fn(&T) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        let rule: Rule = Box::new(move |offer| {
            let payload = offer.payload::<T>().map_err(|error| error.why)?;
            rule(&payload)
        });
        self.events.insert(name.into(), rule);
        self
    }

    fn takes_anything(&self) -> bool {
        self.events.is_empty() && self.others.is_none()
    }

    fn admit(&self, signal: &SentSignal) -> Result<(), AskError> {
        let rule = self.events.get(signal.name.as_str()).or(self.others.as_ref());
        let Some(rule) = rule else { return Ok(()) };
        let taken = guarded("accepts", || rule(&SignalOffer { signal })).flatten();
        taken.map_err(|why| AskError::NotAccepted {
            id: signal.to,
            name: signal.name.to_string(),
            why,
        })
    }
}

impl Default for Accepts {
    fn default() -> Self {
        Self::anything()
    }
}

impl fmt::Debug for Accepts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Accepts")
            .field("events", &self.events.keys())
            .field("others", &self.others.is_none())
            .finish()
    }
}

/// The rules of all kinds that have any.
#[derive(Clone, Debug, Default)]
pub(crate) struct SignalRules(BTreeMap<Kind, Arc<Accepts>>);

impl SignalRules {
    pub(crate) fn new<'a>(kinds: impl Iterator<Item = (&'a Kind, &'a Arc<Accepts>)>) -> Self {
        let ruled = kinds.filter(|(_, accepts)| !accepts.takes_anything());
        Self(
            ruled
                .map(|(kind, accepts)| (kind.clone(), Arc::clone(accepts)))
                .collect(),
        )
    }

    /// Asks one kind whether it takes these signals. Nothing is read.
    pub(crate) fn admit_of(&self, kind: &Kind, signals: &[SendSignal]) -> Result<(), AskError> {
        let Some(accepts) = self.0.get(kind) else {
            return Ok(());
        };
        signals.iter().try_for_each(|SendSignal(signal)| accepts.admit(signal))
    }

    /// Asks the kinds of the receivers whether they take these signals. A receiver that has ended or is not known is left
    /// to the engine, which says so.
    ///
    /// The kind is read from disk: it never changes, and nobody knows the id of a procedure that is not there yet. If no
    /// kind has rules nothing is read.
    pub(crate) async fn admit(&self, reader: &Reader, signals: &[&SentSignal]) -> Result<(), AskError> {
        if self.0.is_empty() {
            return Ok(());
        }
        let mut rules: BTreeMap<ProcedureId, Option<&Accepts>> = BTreeMap::new();
        for signal in signals {
            let accepts = match rules.get(&signal.to) {
                Some(known) => *known,
                None => {
                    let row = reader.row(signal.to).await?;
                    let live = row.filter(|row| !row.is_ended());
                    let found = live.and_then(|row| self.0.get(&row.kind)).map(|accepts| &**accepts);
                    rules.insert(signal.to, found);
                    found
                }
            };
            let Some(accepts) = accepts else { continue };
            accepts.admit(signal)?;
        }
        Ok(())
    }
}

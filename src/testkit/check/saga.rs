//! `Check::saga`: the same properties of a saga. What rests goes forward.

use procession_actors::AskError;
use procession_kernel::{OperatorRequest, ProcedureId};
use serde::Serialize;

use super::{Check, KEY, rest};
use crate::saga::{DecideError, Sagas, Standing};
use crate::testkit::world::{Run, Trouble};

/// The keyspace of definitions.
const SPACE: &str = "saga.definitions";
/// How often what rests goes forward before it is compensated.
const FORWARDS: u32 = 4;

impl Check<((), Sagas)> {
    /// Checks a definition whose services change nothing outside: [`saga_with`](Check::saga_with) is for the others.
    ///
    /// ```
    /// use procession::saga::{Call, Sagas};
    /// use procession::testkit::Check;
    /// use serde_json::json;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let definition = r#"{ "Name": "greet", "StartState": "Greet", "States": {
    ///     "Greet": { "Type": "ServiceTask", "ServiceName": "greeter", "ServiceMethod": "greet", "Input": ["$.[name]"] } } }"#;
    /// let sagas = Sagas::builder()
    ///     .json("greet.json", definition)
    ///     .method("greeter", "greet", async |_: Call, (name,): (String,)| Ok(format!("hello, {name}")))
    ///     .build()?;
    /// Check::saga(&sagas, "greet", &json!({ "name": "ann" })).everything()?;
    /// # Ok(()) }
    /// ```
    pub fn saga<T: Serialize + ?Sized>(sagas: &Sagas, machine: &str, params: &T) -> Self {
        let sagas = sagas.clone();
        Self::saga_with(move || Ok(((), sagas.clone())), machine, params)
    }
}

impl<S: 'static> Check<(S, Sagas)> {
    /// Checks a definition together with its services. `fresh` returns what they change outside, made anew for each run, and the
    /// [`Sagas`] whose services change it.
    ///
    /// [`everything`](Check::everything) crashes the saga at every commit, makes each call twice, and fails each call and each
    /// compensator in turn. What [`Check::picture`] shows must then be as without a crash, or as before if the saga was rolled back.
    /// Members that rest go forward, and a saga that rests again and again is compensated.
    ///
    /// ```
    /// use std::collections::BTreeSet;
    /// use std::sync::{Arc, Mutex};
    ///
    /// use procession::saga::{Call, Sagas};
    /// use procession::testkit::Check;
    /// use serde_json::json;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let definition = r#"{ "Name": "order", "StartState": "Reserve", "States": {
    ///     "Reserve": { "Type": "ServiceTask", "ServiceName": "stock", "ServiceMethod": "reserve", "Input": ["$.[article]"],
    ///                  "CompensateState": "Release" },
    ///     "Release": { "Type": "ServiceTask", "ServiceName": "stock", "ServiceMethod": "release", "Input": ["$.[article]"] } } }"#;
    /// let check = Check::saga_with(
    ///     move || {
    ///         let reserved: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    ///         let (add, remove) = (Arc::clone(&reserved), Arc::clone(&reserved));
    ///         let sagas = Sagas::builder()
    ///             .json("order.json", definition)
    ///             .method("stock", "reserve", async move |_: Call, (article,): (String,)| {
    ///                 Ok(add.lock().map(|mut all| all.insert(article)).unwrap_or_default())
    ///             })
    ///             // Without this the check says what is left.
    ///             .method("stock", "release", async move |_: Call, (article,): (String,)| {
    ///                 Ok(remove.lock().map(|mut all| all.remove(&article)).unwrap_or_default())
    ///             })
    ///             .build()?;
    ///         Ok((reserved, sagas))
    ///     },
    ///     "order",
    ///     &json!({ "article": "tea" }),
    /// );
    /// check.picture(|(reserved, _)| Ok(reserved.lock().map(|all| all.clone()).unwrap_or_default())).everything()?;
    /// # Ok(()) }
    /// ```
    pub fn saga_with<T: Serialize + ?Sized>(
        fresh: impl Fn() -> Result<(S, Sagas), Trouble> + 'static,
        machine: &str,
        params: &T,
    ) -> Self {
        let (machine, params) = (machine.to_owned(), serde_json::to_value(params));
        let submit = async move |(_, sagas): &(S, Sagas), run: &Run| -> Result<ProcedureId, Trouble> {
            let params = params.as_ref().map_err(ToString::to_string)?;
            let machine = sagas.machine(&machine)?.params(params)?;
            Ok(run.executor.submit(machine).key(KEY).await?.id())
        };
        let check = Self::submitting(fresh, |(_, sagas), builder| builder.sagas(sagas.clone()), submit);
        // The definitions are stored by the first start, before the life that is crashed.
        let check = check.given(async |_, _| Ok(())).keeps(SPACE);
        check.client(async |_, run, id| decide(run, id).await)
    }
}

/// Lets go forward what rests, until the saga has ended.
async fn decide(run: &Run, id: ProcedureId) -> Result<(), Trouble> {
    let by = || OperatorRequest::new("the test kit", "it waits for a decision");
    let saga = run.executor.saga(id);
    let (mut seen, mut forwards) = (None, 0);
    loop {
        rest::after_a_commit(run, &mut seen).await;
        let decided = match saga.instance().await?.standing {
            Standing::Ended => return Ok(()),
            Standing::Rests if forwards < FORWARDS => {
                forwards += 1;
                saga.forward(&(), by()).await.map(drop)
            }
            Standing::Rests => saga.compensate(by()).await.map(drop).map_err(DecideError::from),
            Standing::Running | Standing::Compensating | Standing::CompensationRests => Ok(()),
        };
        match decided {
            // It may have moved meanwhile.
            Ok(()) | Err(DecideError::NotResting { .. } | DecideError::Superseded) => {}
            Err(DecideError::Ask(AskError::NotNow { .. } | AskError::Finished { .. })) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

//! `Check`: properties that every procedure is to have, one line each.

mod case;
mod compare;
mod families;
mod finding;
mod hooks;
mod life;
mod lines;
mod properties;
mod property;
mod rest;
#[cfg(feature = "saga")]
mod saga;
#[cfg(feature = "flow")]
mod set;
mod shown;
#[cfg(feature = "flow")]
mod stream;

pub(in crate::testkit) use case::Case;
pub use finding::Finding;
pub use properties::Checked;
#[cfg(feature = "flow")]
pub use set::SetLeft;
#[cfg(feature = "flow")]
pub use stream::StreamLeft;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::future::IntoFuture;

use procession_actors::view::Outcome;
use procession_actors::{FamilyExport, Procedure};
use procession_kernel::ProcedureId;

use super::effects::Effects;
use super::world::{Run, Trouble, World};
use crate::executor::Builder;
use hooks::{Act, ActOn};

/// The key under which the procedure is submitted, in every life the same.
const KEY: &str = "the procedure under test";

/// The seed, unless another is set: one under which nothing is put out of order.
const SEED: u64 = 0;

type Register<S> = Box<dyn Fn(&S, Builder) -> Builder>;
type Picture<S> = Box<dyn Fn(&S) -> Result<String, Trouble>>;
type Copied<S> = Box<dyn Fn(&S) -> Result<S, Trouble>>;
type Noted<S> = Box<dyn Fn(&S) -> Effects>;

/// A scenario around one procedure, and the properties that are checked of it.
///
/// Say how the kind is registered and which procedure is submitted; each method below
/// is then one property, and runs the procedure as often as that needs, each time in a
/// new world: a store in memory, a clock that stands still until nothing can run, all
/// on one thread. Nothing of the procedure is changed for it.
///
/// ```
/// use procession::testkit::Check;
/// # use procession::{Procedure, StageContext, StageError, Step};
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)]
/// # struct Greet(String);
/// # impl Procedure for Greet {
/// #     const KIND: &'static str = "greet";
/// #     type Stage = ();
/// #     type Env = ();
/// #     type Output = String;
/// #     fn first(&self) {}
/// #     async fn execute(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
/// #         cx.put("guests", &self.0, &true)?;
/// #         Ok(Step::Done(format!("hello, {}", self.0)))
/// #     }
/// # }
/// # fn main() -> Result<(), procession::testkit::Finding> {
/// let check = Check::new(|builder| builder.register::<Greet>(()), || Greet("ann".into()));
/// check.everything()?;
/// # Ok(()) }
/// ```
///
/// **What is compared.** Without any word more: states, causes and outputs of all
/// procedures, all user data, and that no lock, permit, actor or live row is left; a
/// run that is rolled back must leave the user data as it was before, unless it has a
/// child whose result is kept, or leaves a family of its own behind;
/// [`keeps`](Self::keeps) exempts a keyspace. What is outside
/// the engine only you can see: [`picture`](Self::picture) says how it looks,
/// [`effects`](Self::effects) what was called, [`afterwards`](Self::afterwards) is any
/// check of your own.
///
/// **What works in here.** All runs on the current thread. Work in
/// [`CallContext::blocking`](crate::procedure::CallContext::blocking) is done there as well, so
/// that files are read and written in the same order each time. A stage that awaits
/// tokio's input and output works, too: time stands still until it has its answer, but
/// the order of what happens meanwhile is the machine's. A stage that sleeps by itself
/// sleeps in truth: let it return [`Step::Sleep`](crate::Step::Sleep). What a stage
/// spawns and does not await lives on after a crash here, as it would not elsewhere.
///
/// **What your functions await.** The functions given to [`submitting`](Self::submitting),
/// [`given`](Self::given), [`client`](Self::client) and [`afterwards`](Self::afterwards)
/// await the engine directly. The kit moves the clock to the next deadline whenever
/// nothing else can run, tries failed undos again, and fails a function that nothing can
/// end. [`Run::wait`] is not needed there, and does less: it moves the clock even while
/// user code waits for something outside, and it tries no undo again. [`Run::pass`] and
/// [`Run::settle`] work as everywhere.
pub struct Check<S> {
    fresh: Box<dyn Fn() -> Result<(World, S), Trouble>>,
    register: Register<S>,
    submit: Box<dyn Act<S, ProcedureId>>,
    given: Option<Box<dyn Act<S, ()>>>,
    copied: Option<Copied<S>>,
    /// The scene that was set, if each run begins with a copy of it.
    scene: RefCell<Option<(World, S)>>,
    client: Option<Box<dyn ActOn<S, ProcedureId>>>,
    afterwards: Option<Box<dyn ActOn<S, Outcome>>>,
    picture: Option<Picture<S>>,
    effects: Option<Noted<S>>,
    /// Keyspaces that need not be as before after a rollback.
    kept: BTreeSet<String>,
    /// A rollback must restore what was there before.
    undoes: bool,
    seed: u64,
    only: Option<String>,
}

impl Check<()> {
    /// Checks a procedure that needs nothing of the host: how its kinds are registered,
    /// and which is submitted.
    ///
    /// ```
    /// # use procession::procedure::Noop;
    /// # use procession::testkit::{Check, Finding};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// Check::new(|builder| builder.register::<Noop>(()), || Noop).succeeds()?;
    /// # Ok(()) }
    /// ```
    pub fn new<P: Procedure>(
        register: impl Fn(Builder) -> Builder + 'static,
        procedure: impl Fn() -> P + 'static,
    ) -> Self {
        Self::with(|| Ok(()), move |(), builder| register(builder), move |()| procedure())
    }
}

impl<S: 'static> Check<S> {
    /// Checks a procedure that works on something outside the engine. `fresh` makes
    /// that anew for each run; it outlives the run's crashes.
    ///
    /// ```
    /// # use procession::testkit::Check;
    /// # use procession::{Procedure, StageContext, StageError, Step};
    /// # use serde::{Deserialize, Serialize};
    /// # use std::path::PathBuf;
    /// # #[derive(Serialize, Deserialize)]
    /// # struct MakeFile;
    /// # impl Procedure for MakeFile {
    /// #     const KIND: &'static str = "make_file";
    /// #     type Stage = ();
    /// #     type Env = PathBuf;
    /// #     type Output = ();
    /// #     fn first(&self) {}
    /// #     async fn execute(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
    /// #         std::fs::write(cx.env().join("file"), "text")?;
    /// #         Ok(Step::Done(()))
    /// #     }
    /// #     async fn rollback(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
    /// #         match std::fs::remove_file(cx.env().join("file")) {
    /// #             Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
    /// #             Ok(()) | Err(_) => Ok(()),
    /// #         }
    /// #     }
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// Check::with(
    ///     || Ok(tempfile::tempdir()?),
    ///     |directory, builder| builder.register::<MakeFile>(directory.path().to_owned()),
    ///     |_| MakeFile,
    /// )
    /// .picture(|directory| {
    ///     let names = std::fs::read_dir(directory.path())?.map(|file| Ok(file?.file_name()));
    ///     Ok(names.collect::<Result<Vec<_>, std::io::Error>>()?)
    /// })
    /// .everything()?;
    /// # Ok(()) }
    /// ```
    pub fn with<P: Procedure>(
        fresh: impl Fn() -> Result<S, Trouble> + 'static,
        register: impl Fn(&S, Builder) -> Builder + 'static,
        procedure: impl Fn(&S) -> P + 'static,
    ) -> Self {
        Self::submitting(fresh, register, async move |state: &S, run: &Run| {
            let handle = run.executor.submit(procedure(state)).key(KEY).into_future().await?;
            Ok(handle.id())
        })
    }

    /// Checks what `submit` submits. It is called again after a crash that it did not
    /// survive, so it submits with a key.
    ///
    /// ```
    /// # use procession::procedure::Noop;
    /// # use procession::testkit::{Check, Finding};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let check = Check::submitting(
    ///     || Ok(()),
    ///     |(), builder| builder.register::<Noop>(()),
    ///     async |(), run| Ok(run.executor.submit(Noop).key("once").priority(1).await?.id()),
    /// );
    /// check.crash_at_every_commit()?;
    /// # Ok(()) }
    /// ```
    pub fn submitting(
        fresh: impl Fn() -> Result<S, Trouble> + 'static,
        register: impl Fn(&S, Builder) -> Builder + 'static,
        submit: impl AsyncFn(&S, &Run) -> Result<ProcedureId, Trouble> + 'static,
    ) -> Self {
        Self {
            fresh: Box::new(move || Ok((World::new(), fresh()?))),
            register: Box::new(register),
            submit: Box::new(submit),
            given: None,
            copied: None,
            scene: RefCell::new(None),
            client: None,
            afterwards: None,
            picture: None,
            effects: None,
            kept: BTreeSet::new(),
            undoes: true,
            seed: SEED,
            only: std::env::var(finding::ONLY).ok(),
        }
    }

    /// Checks how an exported family goes on from where it stood: an incident as a test.
    ///
    /// # Errors
    ///
    /// As [`World::of_export`].
    pub fn replaying(
        export: &FamilyExport,
        fresh: impl Fn() -> Result<S, Trouble> + 'static,
        register: impl Fn(&S, Builder) -> Builder + 'static,
    ) -> Result<Self, Trouble> {
        // Refused here, and not by the first property.
        World::of_export(export)?;
        let (export, root) = (export.clone(), ProcedureId::root(export.family));
        let check = Self::submitting(
            || Err("it is not called".into()),
            register,
            async move |_: &S, _: &Run| Ok(root),
        );
        Ok(Self {
            fresh: Box::new(move || Ok((World::of_export(&export)?, fresh()?))),
            ..check
        })
    }

    /// Sets a scene first, undisturbed, in a life of its own: other procedures that must
    /// have run, user data that must be there.
    ///
    /// ```
    /// # use procession::procedure::Noop;
    /// # use procession::testkit::{Check, Finding};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let check = Check::new(|builder| builder.register::<Noop>(()), || Noop);
    /// let check = check.given(async |(), run| {
    ///     run.executor.submit(Noop).await?.await?;
    ///     Ok(())
    /// });
    /// check.crash_at_every_commit()?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn given(mut self, given: impl AsyncFn(&S, &Run) -> Result<(), Trouble> + 'static) -> Self {
        self.given = Some(Box::new(given));
        self
    }

    /// Sets the scene once, and begins each run with a copy of it: of the journal, which
    /// the kit copies, and of what is outside, which this does. Worth it where the scene
    /// takes longer than the procedure.
    ///
    /// ```
    /// # use procession::procedure::Noop;
    /// # use procession::testkit::{Check, Finding};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let check = Check::new(|builder| builder.register::<Noop>(()), || Noop);
    /// let check = check.given(async |(), run| {
    ///     for _ in 0..100 {
    ///         run.executor.submit(Noop).await?.await?;
    ///     }
    ///     Ok(())
    /// });
    /// check.copied_by(|()| Ok(())).everything()?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn copied_by(mut self, copy: impl Fn(&S) -> Result<S, Trouble> + 'static) -> Self {
        self.copied = Some(Box::new(copy));
        self
    }

    /// Acts while the procedure runs: sends the signals that it waits for, aborts it.
    /// It is called in every life once the procedure is submitted, and until its outcome
    /// is known; so it sends with keys, and does not mind that the procedure has ended.
    /// It awaits the engine directly. To wait for a state, it asks for the status again and again, with
    /// `tokio::task::yield_now` between; [`Run::settle`], [`Run::pass`] and [`Run::wait`] would wait for the
    /// client itself.
    ///
    /// ```
    /// # use procession::procedure::Noop;
    /// # use procession::testkit::{Check, Finding};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let check = Check::new(|builder| builder.register::<Noop>(()), || Noop);
    /// let check = check.client(async |(), run, id| {
    ///     // It is too late or not; both are well.
    ///     run.executor.abort(id, procession::operate::OperatorRequest::new("ann", "a mistake")).await.ok();
    ///     Ok(())
    /// });
    /// check.crash_at_every_commit()?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn client(mut self, client: impl AsyncFn(&S, &Run, ProcedureId) -> Result<(), Trouble> + 'static) -> Self {
        self.client = Some(Box::new(client));
        self
    }

    /// Looks at the world after each run, when nothing is under way any more, however
    /// the procedure ended. What it begins itself it awaits directly.
    ///
    /// ```
    /// # use procession::procedure::Noop;
    /// # use procession::testkit::{Check, Finding};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let check = Check::new(|builder| builder.register::<Noop>(()), || Noop);
    /// let check = check.afterwards(async |(), run, outcome| {
    ///     let family = run.executor.tree(outcome.id).await?;
    ///     if family.len() == 1 { Ok(()) } else { Err("it has children".into()) }
    /// });
    /// check.fail_each_stage()?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn afterwards(mut self, check: impl AsyncFn(&S, &Run, Outcome) -> Result<(), Trouble> + 'static) -> Self {
        self.afterwards = Some(Box::new(check));
        self
    }

    /// Says what can be seen of the outside. It must be the same after a run that is
    /// rolled back as before it, and the same after every crash as without one.
    #[must_use]
    pub fn picture<T: Debug>(mut self, picture: impl Fn(&S) -> Result<T, Trouble> + 'static) -> Self {
        self.picture = Some(Box::new(move |state| Ok(format!("{:#?}", picture(state)?))));
        self
    }

    /// Says where effects are noted: none may happen twice, a run that is rolled back
    /// takes all of them back, and after a crash there are those that there are without.
    #[must_use]
    pub fn effects(mut self, effects: impl Fn(&S) -> Effects + 'static) -> Self {
        self.effects = Some(Box::new(effects));
        self
    }

    /// Exempts a keyspace of user data from the comparison with before, after a rollback: rows that a procedure keeps
    /// on purpose, such as the status of an order that was cancelled. All other keyspaces must be restored, and after
    /// a crash this one must be as without one, too. May be called for several keyspaces.
    ///
    /// ```
    /// use procession::testkit::Check;
    /// # use procession::{Procedure, StageContext, StageError, Step};
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize)]
    /// # struct Order { number: String }
    /// # impl Procedure for Order {
    /// #     const KIND: &'static str = "order";
    /// #     type Stage = ();
    /// #     type Env = ();
    /// #     type Output = ();
    /// #     fn first(&self) {}
    /// #     async fn execute(&mut self, _: (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
    /// #         cx.put("orders", &self.number, &"done")?;
    /// #         Ok(Step::Done(()))
    /// #     }
    ///     async fn rollback(&mut self, _: (), cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
    ///         cx.put("orders", &self.number, &"cancelled")?;
    ///         Ok(())
    ///     }
    /// # }
    /// # fn main() -> Result<(), procession::testkit::Finding> {
    /// # let order = || Order { number: "7".into() };
    /// # assert!(Check::new(|builder| builder.register::<Order>(()), order).everything().is_err());
    /// let check = Check::new(|builder| builder.register::<Order>(()), || Order { number: "7".into() });
    /// check.keeps("orders").everything()?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn keeps(mut self, space: impl Into<String>) -> Self {
        self.kept.insert(space.into());
        self
    }

    /// Draws from this number what is left to chance: the jitter of backoffs, and in
    /// which order those run that could run at once. Default 0, which is first come,
    /// first served. One seed gives one run.
    ///
    /// ```
    /// # use procession::procedure::Noop;
    /// # use procession::testkit::{Check, Finding};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// for seed in 1..=3 {
    ///     let check = Check::new(|builder| builder.register::<Noop>(()), || Noop);
    ///     check.seed(seed).run_stages_twice()?;
    /// }
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Runs one case alone, named as a [`Finding`] names it; all others are taken to
    /// hold. Default: the environment variable `PROCESSION_CASE`, if it is set.
    ///
    /// ```
    /// # use procession::procedure::Noop;
    /// # use procession::testkit::{Check, Finding};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let check = Check::new(|builder| builder.register::<Noop>(()), || Noop);
    /// let checked = check.only("a crash after commit 1").crash_at_every_commit()?;
    /// assert_eq!(checked.crashes, 1);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn only(mut self, case: impl Into<String>) -> Self {
        self.only = Some(case.into());
        self
    }
}

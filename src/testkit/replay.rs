//! A world made of an exported family: what happened elsewhere goes on here.

use procession_actors::FamilyExport;
use procession_actors::journal::{Space, codec};
use procession_actors::testkit::format;
use procession_actors::view::Outcome;
use procession_kernel::{Key, NUMBER_MAX, Record, Seq};
use serde::Serialize;

use super::check::Check;
use super::world::{Trouble, World};
use crate::executor::Builder;

/// Lets an exported family go on to its end in a world of its own, without any fault,
/// and gives the outcome of its root: an incident as a test. With
/// [`Check::replaying`](super::Check::replaying) all properties can be asked of it, and
/// [`World::of_export`] gives the world, to look at where the family stands.
///
/// ```
/// use procession::testkit::{self, FaultPlan, Run, World};
/// # use procession::{Procedure, ProcedureId, StageContext, StageError, Step};
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize)]
/// # struct Greet(String);
/// # impl Procedure for Greet {
/// #     const KIND: &'static str = "greet";
/// #     type Stage = bool;
/// #     type Env = ();
/// #     type Output = String;
/// #     fn first(&self) -> bool { false }
/// #     async fn execute(&mut self, late: bool, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
/// #         if late { return Ok(Step::Done(format!("hello, {}", self.0))); }
/// #         Ok(Step::Sleep { until: cx.now().after(std::time::Duration::from_secs(60)), then: true })
/// #     }
/// # }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Elsewhere, where it happened: executor.export(id).await?.to_bytes()?
/// # let elsewhere = World::new();
/// # let export = elsewhere.run(FaultPlan::none(), |builder| builder.register::<Greet>(()), async |run: &Run| {
/// #     let handle = run.executor.submit(Greet("ann".into())).await?;
/// #     run.settle().await;
/// #     Ok(run.executor.export(handle.id()).await?.to_bytes()?)
/// # })?.done()?;
/// let export = procession::offline::FamilyExport::from_bytes(&export)?;
/// let outcome = testkit::replay(&export, |builder| builder.register::<Greet>(()))?;
/// assert_eq!(outcome.output::<String>()?.as_deref(), Some("hello, ann"));
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// [`Finding`](super::Finding), if the family cannot go on by itself: it waits for a
/// signal or an operator, or the engine does not know its kinds.
pub fn replay(export: &FamilyExport, register: impl Fn(Builder) -> Builder + 'static) -> Result<Outcome, Trouble> {
    let check = Check::replaying(export, || Ok(()), move |(), builder| register(builder))?;
    Ok(check.outcome()?)
}

impl World {
    /// Makes a world that holds one exported family, as it stood, at the time at which
    /// it last moved. User data and what is outside the engine are no part of an export:
    /// [`put`](Self::put) them.
    ///
    /// A family that was quarantined because its code was missing goes on here if the
    /// engine knows its kinds; one that is damaged is quarantined here, too.
    ///
    /// # Errors
    ///
    /// A sentence, if the export names a keyspace that no journal has, or a family of a
    /// number that no engine assigns.
    pub fn of_export(export: &FamilyExport) -> Result<Self, Trouble> {
        if export.family >= NUMBER_MAX {
            return Err(format!("no engine assigns a family the number {}", export.family).into());
        }
        let world = Self::new();
        let mut entries = Vec::new();
        for entry in &export.entries {
            let space = Space::ENGINE.into_iter().find(|space| space.name() == entry.space);
            let space = space.ok_or_else(|| format!("no journal has the keyspace {}", entry.space))?;
            entries.push((space, entry.key.as_slice(), entry.value.as_slice()));
        }
        let statuses = export.statuses();
        let newest = statuses.iter().map(|status| status.revision).max();
        let moved = statuses.iter().map(|status| status.since);
        let ended = export.history().into_iter().map(|entry| entry.ended);
        let now = moved.chain(ended).max().unwrap_or_default();
        // A family that is born here gets another number.
        let reserved = format::writes(&[Record::FamiliesReserved(export.family + 1)])?;
        let reserved = reserved
            .writes()
            .filter_map(|write| Some((write.space.clone(), write.key, write.value?)));
        entries.extend(reserved);
        world.disk.import(newest.unwrap_or_default(), entries);
        world.clock.advance_to(now);
        Ok(world)
    }

    /// Puts a value of user data into a world whose engine does not run.
    ///
    /// # Errors
    ///
    /// [`CodecError`](crate::errors::CodecError) if it cannot be encoded.
    pub fn put<T: Serialize>(&self, space: &str, key: impl AsRef<[u8]>, value: &T) -> Result<(), Trouble> {
        let value = codec::encode_user(value)?;
        let entry = (Space::User(Key::from(space)), key.as_ref(), value.as_slice());
        self.disk.import(Seq::default(), [entry]);
        Ok(())
    }
}

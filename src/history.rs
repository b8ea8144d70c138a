//! Stages of a history, as the types that wrote them.

use procession_actors::CodecError;
use procession_actors::journal::codec;
use procession_kernel::HistoryEntry;
use serde::de::DeserializeOwned;

/// Returns what the code of a stage or an undo noted with [`CallContext::note`](crate::procedure::CallContext::note), or `None`
/// if it noted nothing.
///
/// ```
/// use procession::{Executor, Procedure, StageContext, StageError, Step};
/// # use serde::{Deserialize, Serialize};
///
/// # #[derive(Serialize, Deserialize)]
/// # struct Count;
/// # impl Procedure for Count {
/// #     const KIND: &'static str = "count";
/// #     type Stage = ();
/// #     type Env = ();
/// #     type Output = ();
/// #     fn first(&self) {}
/// async fn execute(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
///     cx.note(&"7 rows")?;
///     Ok(Step::Done(()))
/// }
/// # }
/// # #[actix_rt::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let executor = Executor::builder(directory.path().join("j")).register::<Count>(()).start().await?;
/// let handle = executor.submit(Count).await?;
/// let id = handle.id();
/// handle.await?;
/// let page = executor.history_page(id, None, 10).await?;
/// let noted: Option<String> = procession::status::note(&page.entries[0])?;
/// assert_eq!(noted.as_deref(), Some("7 rows"));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`CodecError`] if the note is of another type.
pub fn note<T: DeserializeOwned>(entry: &HistoryEntry) -> Result<Option<T>, CodecError> {
    let note = entry.note.as_ref();
    note.map(|note| codec::decode_user(note.as_slice())).transpose()
}

/// Returns the value that a stage or an undo left, or `None` if it left the value as it was, or its kind
/// [keeps none](crate::Procedure::KEEP_VALUES) or none so large.
///
/// ```
/// use procession::{Executor, Procedure, StageContext, StageError, Step};
/// # use serde::{Deserialize, Serialize};
///
/// # #[derive(Serialize, Deserialize)]
/// struct Count(u32);
///
/// impl Procedure for Count {
///     const KIND: &'static str = "count";
///     const KEEP_VALUES: usize = 4_096;
/// #     type Stage = ();
/// #     type Env = ();
/// #     type Output = ();
/// #     fn first(&self) {}
/// #     async fn execute(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
/// #         self.0 += 1;
/// #         Ok(Step::Done(()))
/// #     }
///     // ...
/// }
/// # #[actix_rt::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let executor = Executor::builder(directory.path().join("j")).register::<Count>(()).start().await?;
/// let handle = executor.submit(Count(1)).await?;
/// let id = handle.id();
/// handle.await?;
/// let page = executor.history_page(id, None, 10).await?;
/// let left: Option<Count> = procession::status::left_value(&page.entries[0])?;
/// assert_eq!(left.map(|count| count.0), Some(2));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`CodecError`] if the value is of another type.
pub fn left_value<T: DeserializeOwned>(entry: &HistoryEntry) -> Result<Option<T>, CodecError> {
    let bytes = entry.value.as_ref().and_then(|left| left.bytes.as_ref());
    bytes.map(|bytes| codec::decode_user(bytes.as_slice())).transpose()
}

/// Decodes the stage of a history entry, which is kept as it was encoded.
///
/// ```
/// use procession::procedure::Noop;
/// use procession::status::DecodeStage;
/// use procession::{Executor, Procedure};
///
/// # #[actix_rt::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let executor = Executor::builder(directory.path().join("j")).register::<Noop>(()).start().await?;
/// let handle = executor.submit(Noop).await?;
/// let id = handle.id();
/// handle.await?;
/// for entry in executor.history(id).await? {
///     let stage: <Noop as Procedure>::Stage = entry.stage_as()?;
///     println!("stage {stage:?} ended with {:?}", entry.ending);
///     assert!(entry.stage_as::<String>().is_err(), "it is no text");
///     assert_eq!(entry.stage_text(), "()", "as the type of the stage is");
/// }
/// # assert_eq!(executor.history(id).await?.len(), 1);
/// # Ok(())
/// # }
/// ```
pub trait DecodeStage {
    /// Returns the stage. Its type is the [`Stage`](crate::Procedure::Stage) of the member's kind.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if it is of another type.
    fn stage_as<T: DeserializeOwned>(&self) -> Result<T, CodecError>;

    /// Returns the stage as text, whatever its type: the name of its variant, its number, or `()`. This is what
    /// [`Status::stage`](crate::status::Status::stage) and the dashboard show.
    fn stage_text(&self) -> String;
}

impl DecodeStage for HistoryEntry {
    fn stage_as<T: DeserializeOwned>(&self) -> Result<T, CodecError> {
        codec::decode_user(self.stage.as_slice())
    }

    fn stage_text(&self) -> String {
        codec::describe(self.stage.as_slice())
    }
}

//! Signals that wait are read page by page, with their payloads; and a kind may refuse a signal for its size.

use procession::errors::AskError;
use procession::procedure::Accepts;
use procession::{Executor, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use crate::support::Tested;

/// Waits for what nobody sends.
#[derive(Serialize, Deserialize)]
struct Waits;

impl Procedure for Waits {
    const KIND: &'static str = "waits";
    type Stage = ();
    type Env = ();
    type Output = ();

    fn first(&self) {}

    async fn execute(&mut self, (): (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Ok(Step::Wait {
            event: "never".to_owned(),
            timeout: None,
            then: (),
        })
    }

    fn accepts((): &()) -> Accepts {
        Accepts::by(|signal| match signal.size() {
            size if size > 100 => Err(format!("it has {size} bytes")),
            _ => Ok(()),
        })
    }
}

#[test]
fn waiting_signals_are_read_page_by_page() -> Tested {
    let place = tempfile::tempdir()?;
    let place = place.path().join("journal");
    actix_rt::System::new().block_on(async {
        let executor = Executor::builder(&place).register::<Waits>(()).start().await?;
        let id = executor.submit(Waits).await?.id();
        for number in 1..=7_u32 {
            assert_eq!(executor.signal(id, "kept", &number).await?, number);
        }
        let large = executor.signal(id, "kept", &"x".repeat(100)).await;
        assert!(
            matches!(&large, Err(AskError::NotAccepted { why, .. }) if why == "it has 102 bytes"),
            "{large:?}"
        );
        executor.drain(std::time::Duration::from_secs(10)).await?;
        drop(executor);

        let journal = Executor::builder(&place).offline().await?;
        let (mut from, mut numbers) = (0, Vec::new());
        loop {
            let page = journal.committed().signals_from(id, from, 3).await?;
            let Some((last, _)) = page.last() else { break };
            from = last.number + 1;
            assert!(page.len() <= 3);
            for (signal, payload) in page {
                assert_eq!((signal.id, signal.size), (id, payload.len()));
                numbers.push(signal.number);
            }
        }
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7]);
        Ok(())
    })
}

//! Rules of rows on disk: what a box has is in the row's own map, and a row without any of it has no box.

use std::time::Duration;

use procession_kernel::{
    Blob, Cause, CauseKind, EndSignal, FailureStreak, GraphNode, Kind, Mark, NotUndone, OnTimeout, PayloadSizeNote,
    ProcedureId, Rare, Row, Timestamp,
};

use super::{decode, encode_into};

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

const ID: ProcedureId = ProcedureId::root(7);

fn plain() -> Row {
    Row::new(ID, Kind::from("kind"), 1, Blob::from(&b"\xa1s"[..]), Timestamp(5))
}

/// Every field is listed, so that a new one is tested, too.
fn full() -> Outcome<Rare> {
    Ok(Rare {
        attempts_kept: vec![1, 2].into(),
        past_no_return: Some("WriteMeta".into()),
        on_timeout: OnTimeout::Execute,
        paused: true,
        mark: Some(Mark::Overridden),
        output: Some(Blob::from(&b"\x01\x02"[..])),
        cleaning: true,
        cause: Some(Box::new(Cause::new(CauseKind::StageTimedOut, "late", ID))),
        undo_attempts: 70_000,
        not_undone: vec![NotUndone::new(3, Blob::default())].into(),
        closed: vec!["go".into()].into(),
        trace: Some(Box::new(
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".parse()?,
        )),
        graph: Some(Box::new(GraphNode {
            name: Some("build".to_owned()),
            ..GraphNode::default()
        })),
        payload_size: Some(Box::new(PayloadSizeNote {
            bytes: 1 << 20,
            stage: Some(Blob::from(&b"\xa1s"[..])),
        })),
        failure_streak: Some(Box::new(FailureStreak {
            print: u64::MAX,
            times: 3,
            text: "timeout".to_owned(),
            first: Some(Timestamp(4)),
        })),
        retry_after: Some(Duration::from_millis(7_500)),
        end_signal: Some(Box::new(EndSignal {
            to: ID,
            name: "ended".into(),
            payload: Blob::default(),
        })),
    })
}

fn written(row: &Row) -> Outcome<Vec<u8>> {
    let mut bytes = Vec::new();
    encode_into(&mut bytes, row)?;
    Ok(bytes)
}

fn read_again(row: &Row) -> Outcome<Row> {
    let read: Row = decode(&written(row)?)?;
    Ok(Row { id: row.id, ..read })
}

#[test]
fn a_row_with_all_that_few_have_is_read_as_it_was() -> Outcome {
    let mut row = plain();
    row.rare = full()?.boxed();
    assert_eq!(read_again(&row)?, row);
    Ok(())
}

#[test]
fn a_row_without_any_of_it_has_no_box() -> Outcome {
    assert_eq!(read_again(&plain())?, plain());
    let mut emptied = plain();
    emptied.rare_mut().paused = false;
    assert!(emptied.rare.is_some());
    assert_eq!(written(&emptied)?, written(&plain())?, "an empty box is not written");
    assert_eq!(read_again(&emptied)?.rare, None);
    Ok(())
}

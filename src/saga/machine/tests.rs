//! What is on disk of a saga stays readable: values, stages, notes, and lists of definitions, as this release writes them.

use std::fmt::Debug;

use procession_actors::journal::codec;
use procession_kernel::{ProcedureId, Timestamp};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::instance::Instance;
use super::note::{Note, UndoNote};
use super::part::{Element, Left, Part, Window};
use super::rest::{Decision, Rest};
use super::stage::{Mode, SagaStage};
use super::tally::Tally;
use super::*;
use crate::saga::bundle::Listing;

type Tested = Result<(), Box<dyn std::error::Error>>;

/// The bytes that a value had are the bytes that it has, and it is read from them.
fn stays<T: Serialize + DeserializeOwned + Debug>(name: &str, value: &T, golden: &str) -> Tested {
    let bytes = codec::encode_user(value)?;
    let hex: String = bytes.as_slice().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, golden, "{name} is written otherwise");
    let read: T = codec::decode_user(bytes.as_slice())?;
    assert_eq!(format!("{read:?}"), format!("{value:?}"), "{name} is read otherwise");
    Ok(())
}

fn error() -> SagaError {
    SagaError {
        code: Some("E".to_owned()),
        message: Some("m".to_owned()),
        class: Some("x.Boom".to_owned()),
        fault: Some("boom".to_owned()),
        state: Some("S".to_owned()),
    }
}

/// What its birth needs is not on disk.
fn unborn() -> Machine {
    Machine {
        birth: OnceLock::new(),
        ..Machine::new("order", Birth::default())
    }
}

fn tally() -> Tally {
    let mut instance = Instance::new(1, true);
    instance.tried(SagaStatus::Unknown, true);
    Tally::default().with(Some(&instance))
}

/// A machine with a value in each of its fields.
fn machine() -> Machine {
    let mut instance = Instance::new(3, true);
    instance.tried(SagaStatus::Unknown, true);
    instance.tries = 2;
    instance.partly = true;
    let mut retries = Retries::default();
    retries.count(1);
    Machine {
        version: Some("0.0.1".to_owned()),
        pinned: Some(Digest::of(b"bundle")),
        context: json!({ "a": 1, "b": ["x", 2.5, true] })
            .as_object()
            .cloned()
            .unwrap_or_default()
            .into(),
        saga: Some(ProcedureId::new(7, 1)),
        part: Some(Part::Branch {
            fork: 4,
            written: vec!["a".to_owned()],
        }),
        instance: Some(instance),
        tally: tally(),
        last: 2,
        retries,
        rest: Some(Rest {
            error: error(),
            is_at_end: true,
            is_behind: false,
            can_skip: true,
            forwards: 1,
            is_overdue: false,
        }),
        windows: vec![Window {
            fork: "F".to_owned(),
            length_ms: 2_000,
            until: Timestamp(5),
        }],
        joining: Some(4),
        results: Some(vec![None, Some(Map::new())]),
        forwards: 1,
        visits_from: 6,
        error: Some(error()),
        status: Some(SagaStatus::Unknown),
        undone: Some(3),
        above: 2,
        ..unborn()
    }
}

#[test]
fn values_stay_readable() -> Tested {
    let params = json!({ "count": 10 });
    stays(
        "a machine that has not begun",
        &unborn().params(&params)?,
        "82a16da56f72646572a16381a5636f756e740a",
    )?;
    stays(
        "a machine",
        &machine(),
        "de0014a16da56f72646572a176a5302e302e31a164c4201e6ed65d77d6364eeaed5a745ba5c4985ae2b700dd85d7cf7f027bdf294a33fca16382a16101a16293a178cb4004000000000000c3a16782a16607a16d01a17081a16282a16604a17791a161a16986a16203a173a2554ea175c3a174c3a170c3a16e02a17482a16619a16e01a16c02a16e920001a17284a16585a163a145a16da16da16ba6782e426f6f6da166a4626f6f6da173a153a16ec3a173c3a16601a16f9183a166a146a16ccd07d0a17505a16a04a16192c080a16601a17706a16585a163a145a16da16da16ba6782e426f6f6da166a4626f6f6da173a153a173a2554ea17503a16802",
    )?;
    let element = Element {
        index: 3,
        value: json!("e"),
    };
    let parts = vec![
        Part::Sub,
        Part::Element {
            element,
            parent: 1,
            arguments: vec![json!(null), json!(1)],
            ids_of: None,
        },
        Part::Call {
            state: "S".to_owned(),
            arguments: vec![json!("x")],
        },
    ];
    stays(
        "parts",
        &parts,
        "93a17381a16583a16582a16903a176a165a17001a16192c00181a16382a173a153a16191a178",
    )
}

#[test]
fn stages_notes_and_outputs_stay_readable() -> Tested {
    let modes = [Mode::Start, Mode::Run, Mode::Route, Mode::Back, Mode::Keep];
    stays(
        "stages",
        &modes.map(|mode| SagaStage::new("S", mode)).to_vec(),
        "9581a153a5737461727481a153a372756e81a153a5726f75746581a153a46261636b81a153a46b656570",
    )?;
    stages_join()?;
    let note = Note {
        task: Some("T".to_owned()),
        status: Some(SagaStatus::Success),
        began: Some(2),
        again: false,
        routed: vec!["C".to_owned()],
        fault: Some(("x.Boom".to_owned(), "boom".to_owned())),
        twice: vec!["x".to_owned()],
    };
    stays(
        "a note",
        &note,
        "86a174a154a173a25355a16202a17291a143a16692a6782e426f6f6da4626f6f6da17691a178",
    )?;
    let followed = Note { again: true, ..note };
    stays(
        "a note of a try after which another one may come",
        &followed,
        "87a174a154a173a25355a16202a161c3a17291a143a16692a6782e426f6f6da4626f6f6da17691a178",
    )?;
    let undo = UndoNote {
        compensator: Some("S'".to_owned()),
        ..UndoNote::default()
    };
    stays("a note of an undo", &undo, "81a163a25327")?;
    stays(
        "a note of an undo that is passed over",
        &UndoNote::passed_over(),
        "81a170c3",
    )?;
    let left = Left {
        tally: tally(),
        next: Some(3),
        error: Some(error()),
        windows: machine().windows,
        removed: vec!["z".to_owned()],
    };
    let context = Map::new();
    stays(
        "an output",
        &SagaOutput {
            status: SagaStatus::Skipped,
            context,
            left,
        },
        "83a173a2534ba16380a16c85a17482a16619a16e01a16e03a16585a163a145a16da16da16ba6782e426f6f6da166a4626f6f6da173a153a1779183a166a146a16ccd07d0a17505a16491a17a",
    )
}

/// A stage before which branches end names their Fork. One of an earlier release does not, because the value did.
fn stages_join() -> Tested {
    let joins = SagaStage::new("S", Mode::Route).joining(300);
    stays("a stage behind a Fork", &joins, "81a15392a5726f757465cd012c")?;
    let read: SagaStage = codec::decode_user(&[0x81, 0xa1, b'S', 0xa3, b'r', b'u', b'n'])?;
    assert_eq!((read.mode(), read.joins()), (Mode::Run, None));
    for wrong in [
        &[0x81, 0xa1, b'S', 0x90][..],
        &[0x81, 0xa1, b'S', 0xa1, b'x'],
        &[0x81, 0xa1, b'S', 0x01],
    ] {
        assert!(
            codec::decode_user::<SagaStage>(wrong).is_err(),
            "{wrong:02x?} is no stage"
        );
    }
    Ok(())
}

#[test]
fn decisions_and_definitions_stay_readable() -> Tested {
    let decisions = vec![Decision::Forward(Map::new()), Decision::Skip(Map::new())];
    stays("decisions", &decisions, "9281a7666f72776172648081a4736b697080")?;
    let files = [("order".to_owned(), Digest::of(b"file"))].into();
    stays(
        "a bundle",
        &Listing {
            machine: "order".to_owned(),
            files,
        },
        "82a16da56f72646572a16681a56f72646572c4203b9c358f36f0a31b6ad3e14f309c7cf198ac9246e8316f9ce543d5b19ac02b80",
    )
}

/// What a rest, an element or a script says only if it has to is not written otherwise, and read if it is.
#[test]
fn what_is_seldom_said_stays_readable() -> Tested {
    let rest = Rest {
        error: SagaError::default(),
        is_at_end: false,
        is_behind: true,
        can_skip: true,
        forwards: 0,
        is_overdue: false,
    };
    stays("a rest behind its state", &rest, "83a16580a162c3a173c3")?;
    let element = Element {
        index: 3,
        value: json!("e"),
    };
    let part = Part::Element {
        element,
        parent: 1,
        arguments: vec![json!("id")],
        ids_of: Some(2),
    };
    stays(
        "an element whose Input has ids",
        &part,
        "81a16584a16582a16903a176a165a17001a16191a26964a17102",
    )?;
    let script = Machine {
        script_began: Some(2),
        ..unborn()
    };
    stays(
        "a machine at a script whose Input has ids",
        &script,
        "82a16da56f72646572a17102",
    )
}

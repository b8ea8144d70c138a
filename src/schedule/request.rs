//! What a schedule is sent, and how it is encoded.

use procession_actors::CodecError;
use procession_actors::journal::codec;
use procession_kernel::Blob;
use serde::ser::Error;
use serde::{Deserialize, Serialize, Serializer};

use super::plan::Plan;

/// What a signal asks of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Option<Message>")]
pub(super) enum Request {
    /// A run now. Encoded as nothing, so that every client can send it: without a payload, `null` or `()`.
    Run,
    /// To look at a run that has ended.
    Ended,
    /// To go by this plan from now on.
    Change(Plan),
}

/// A request that is encoded as more than nothing.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Message {
    Ended,
    /// The plan, encoded as bytes. JSON has no bytes, so that clients of the dashboard, who may ask for runs, cannot
    /// spell a change: timetable and input belong to the program.
    Change(Blob),
}

impl Serialize for Request {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let message = match self {
            Self::Run => None,
            Self::Ended => Some(Message::Ended),
            Self::Change(plan) => Some(Message::Change(codec::encode_user(plan).map_err(S::Error::custom)?)),
        };
        message.serialize(serializer)
    }
}

impl TryFrom<Option<Message>> for Request {
    type Error = CodecError;

    fn try_from(message: Option<Message>) -> Result<Self, CodecError> {
        Ok(match message {
            None => Self::Run,
            Some(Message::Ended) => Self::Ended,
            Some(Message::Change(plan)) => Self::Change(codec::decode_user(plan.as_slice())?),
        })
    }
}

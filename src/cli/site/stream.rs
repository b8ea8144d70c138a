//! A stream of events, read on a thread of its own: reading waits, and who shows what was read
//! must not.

use std::io::{BufRead, BufReader, Read};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;
use ureq::http::StatusCode;

use super::problem::Unanswered;
use super::{REPLY, REPLY_MAX, Site};

/// How long nothing may come: a dashboard says every ten seconds that it lives.
const SILENCE: Duration = Duration::from_secs(30);
/// Bytes of one event at most: it tells of a thousand rows.
const EVENT_MAX: u64 = 16 << 20;
/// Events that wait to be shown.
const QUEUE: usize = 16;

/// One event.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) id: Option<String>,
    pub(crate) data: Value,
}

/// What comes of a stream: events, and at the end why there are no more.
pub(crate) enum Heard {
    Event(Event),
    Cut(Unanswered),
}

/// What a stream is asked for.
#[derive(Debug, Clone)]
pub(crate) struct Listening {
    pub(crate) filter: String,
    /// The `as_of` of what was read.
    pub(crate) from: String,
    /// The last event, of a stream that goes on.
    pub(crate) last: Option<String>,
}

impl Site {
    /// Opens a stream. Its thread ends with the stream, or when nobody listens.
    pub(crate) fn listen(&self, asked: Listening) -> mpsc::Receiver<Heard> {
        let (tell, heard) = mpsc::channel(QUEUE);
        let site = self.clone();
        std::thread::spawn(move || {
            let cut = site.follow(&asked, &tell);
            // Nobody may listen any more.
            tell.blocking_send(Heard::Cut(cut)).ok();
        });
        heard
    }

    /// Hands events over until there are no more; gives why.
    fn follow(&self, asked: &Listening, tell: &mpsc::Sender<Heard>) -> Unanswered {
        let query = [("from", asked.from.as_str()), ("filter", asked.filter.as_str())];
        let request = self.with_headers(self.agent.get(self.address.of("events", &query)));
        let request = match &asked.last {
            Some(last) => request.header("last-event-id", last),
            None => request,
        };
        let request = request.header("accept", "text/event-stream").config();
        let request = request
            .timeout_per_call(None)
            .timeout_recv_response(Some(REPLY))
            .timeout_per_read(Some(SILENCE));
        let mut reply = match request.build().call() {
            Ok(reply) => reply,
            Err(error) => return self.address.unreached(&error),
        };
        if reply.status() != StatusCode::OK {
            let read = reply.body_mut().with_config().limit(REPLY_MAX).read_to_vec();
            return match self.told(&reply, &read.unwrap_or_default()) {
                Ok(_) => Unanswered::Unreached("the dashboard sends no stream".to_owned()),
                Err(why) => why,
            };
        }
        let mut events = Events::new(reply.into_body().into_with_config().limit(u64::MAX).reader());
        loop {
            match events.next() {
                Ok(Some(event)) => {
                    if tell.blocking_send(Heard::Event(event)).is_err() {
                        return Unanswered::Unreached("nobody listens".to_owned());
                    }
                }
                Ok(None) => return Unanswered::Unreached("the stream was cut".to_owned()),
                Err(error) => return Unanswered::Unreached(format!("the stream was cut: {error}")),
            }
        }
    }
}

/// Server-sent events, read line by line.
struct Events<R> {
    lines: BufReader<R>,
}

impl<R: Read> Events<R> {
    fn new(from: R) -> Self {
        Self {
            lines: BufReader::new(from),
        }
    }

    /// Reads the next event that has something to say; none at the end.
    fn next(&mut self) -> std::io::Result<Option<Event>> {
        let (mut event, mut data) = (Event::default(), String::new());
        let mut left = EVENT_MAX;
        loop {
            let mut line = Vec::new();
            let read = self.lines.by_ref().take(left).read_until(b'\n', &mut line)?;
            left -= u64::try_from(read).unwrap_or(left).min(left);
            if line.pop() != Some(b'\n') {
                return match left {
                    0 => Err(std::io::Error::other("an event is too large")),
                    _ => Ok(None),
                };
            }
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end_matches('\r');
            if line.is_empty() {
                if data.is_empty() {
                    left = EVENT_MAX;
                    continue;
                }
                event.data = serde_json::from_str(&data).unwrap_or_default();
                return Ok(Some(event));
            }
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match name {
                "event" => value.clone_into(&mut event.name),
                "id" => event.id = Some(value.to_owned()),
                "data" => data.push_str(value),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Event, Events};

    #[test]
    fn events_are_read_as_they_were_sent() {
        let sent =
            "event: ping\ndata: {}\n\n: a comment\n\nevent: change\r\nid: 1-7\r\ndata: {\"a\":1}\r\n\r\nevent: cut";
        let mut events = Events::new(sent.as_bytes());
        let event = |name: &str, id: Option<&str>, data| Event {
            name: name.to_owned(),
            id: id.map(str::to_owned),
            data,
        };
        assert_eq!(events.next().unwrap(), Some(event("ping", None, json!({}))));
        assert_eq!(
            events.next().unwrap(),
            Some(event("change", Some("1-7"), json!({ "a": 1 })))
        );
        assert_eq!(events.next().unwrap(), None);
    }

    #[test]
    fn an_event_without_end_is_not_held() {
        let mut events = Events::new(std::io::repeat(b'x'));
        assert!(events.next().is_err());
    }
}

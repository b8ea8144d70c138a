//! What becomes of a fault once its call has ended: class, message and network.

use std::error::Error;
use std::io::{self, ErrorKind};

use serde_json::json;

use super::super::classes::Classes;
use super::super::record::FaultRecord;
use super::{Layer, OutOfFunds, OutOfStock};
use crate::saga::{Fault, Network};

fn classes() -> Classes {
    let mut classes = Classes::default();
    assert_eq!(
        classes.register::<OutOfFunds>("com.acme.OutOfFunds", "java.lang.Exception"),
        Ok(())
    );
    classes
}

/// As the `?` of a service does.
fn fault_of(error: impl Into<Fault>) -> Fault {
    error.into()
}

fn refused() -> io::Error {
    io::Error::from(ErrorKind::ConnectionRefused)
}

fn timed_out() -> io::Error {
    io::Error::new(ErrorKind::TimedOut, "no answer")
}

/// Errors below each other, `depth` above the innermost.
fn nested(depth: usize, innermost: Box<dyn Error>) -> Box<dyn Error> {
    #[derive(Debug)]
    struct Above(Box<dyn Error>);
    impl std::fmt::Display for Above {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("above")
        }
    }
    impl Error for Above {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&*self.0)
        }
    }
    (0..depth).fold(innermost, |error, _| Box::new(Above(error)))
}

#[test]
fn the_class_of_an_error_is_looked_for_in_its_chain() {
    const CONNECT: &str = "java.net.ConnectException";
    const TIMEOUT: &str = "java.net.SocketTimeoutException";
    let (own, stock) = ("com.acme.OutOfFunds", std::any::type_name::<OutOfStock>());
    let layer = std::any::type_name::<Layer<OutOfStock>>();
    let held = |kind, error: Layer<OutOfFunds>| io::Error::new(kind, error);
    let any = "alloc::boxed::Box<dyn core::error::Error>";
    let (is_refused, no_answer) = (Some(Network::Refused), Some(Network::ReadTimeout));
    let rows = [
        (fault_of(OutOfFunds), own, "out of funds", None),
        (fault_of(OutOfStock), stock, "out of stock", None),
        (fault_of(Layer("above", OutOfFunds)), own, "above", None),
        (fault_of(Layer("above", OutOfStock)), layer, "above", None),
        (fault_of(refused()), CONNECT, "connection refused", is_refused),
        (fault_of(timed_out()), TIMEOUT, "no answer", no_answer),
        (fault_of(Layer("above", refused())), CONNECT, "above", is_refused),
        (fault_of(io::Error::other("odd")), "std::io::error::Error", "odd", None),
        (
            fault_of(io::Error::other(refused())),
            CONNECT,
            "connection refused",
            is_refused,
        ),
        // What was registered counts, wherever it is. The network is what it is.
        (
            fault_of(held(ErrorKind::TimedOut, Layer("held", OutOfFunds))),
            own,
            "held",
            no_answer,
        ),
        // Types that hold any error.
        (fault_of(nested(0, Box::new(OutOfFunds))), own, "out of funds", None),
        (fault_of(nested(20, Box::new(OutOfFunds))), own, "above", None),
        (fault_of(nested(21, Box::new(OutOfFunds))), any, "above", None),
        (fault_of(nested(20, Box::new(refused()))), CONNECT, "above", is_refused),
        (fault_of(nested(21, Box::new(refused()))), any, "above", None),
        (
            fault_of(anyhow::Error::new(OutOfFunds).context("paying")),
            own,
            "paying: out of funds",
            None,
        ),
        (fault_of("a text"), "&str", "a text", None),
        // Faults that name their class.
        (Fault::new("x.Boom", "boom"), "x.Boom", "boom", None),
        (
            Fault::new("x.Boom", "boom").network(Network::ConnectTimeout),
            "x.Boom",
            "boom",
            Some(Network::ConnectTimeout),
        ),
        (
            Fault::new("x.Boom", "boom").cause(fault_of(refused())),
            "x.Boom",
            "boom",
            is_refused,
        ),
        (
            Fault::new("x.Boom", "boom")
                .network(Network::Refused)
                .cause(fault_of(timed_out())),
            "x.Boom",
            "boom",
            is_refused,
        ),
    ];
    let classes = classes();
    for (fault, class, message, network) in rows {
        let expected = FaultRecord {
            class: class.to_owned(),
            message: message.to_owned(),
            network,
        };
        assert_eq!(fault.network_failure(), network, "{fault}");
        assert_eq!(classes.record(fault), expected);
    }
}

/// The class of the network counts if it says more than the one that is registered.
#[test]
fn a_registered_io_error_keeps_its_network() {
    let rows = [
        (
            "java.io.IOException",
            "java.lang.Exception",
            "java.net.ConnectException",
        ),
        (
            "java.lang.Exception",
            "java.lang.Throwable",
            "java.net.ConnectException",
        ),
        ("x.Io", "java.io.IOException", "x.Io"),
    ];
    for (class, parent, expected) in rows {
        let mut classes = Classes::default();
        assert_eq!(classes.register::<io::Error>(class, parent), Ok(()));
        let record = classes.record(fault_of(refused()));
        assert_eq!(
            (record.class.as_str(), record.network),
            (expected, Some(Network::Refused))
        );
        assert_eq!(classes.record(fault_of(io::Error::other("odd"))).class, class);
    }
}

#[test]
fn a_fault_has_up_to_20_causes() {
    let pile = |depth: usize| {
        (0..depth).fold(fault_of(refused()), |cause, _| {
            Fault::new("x.Boom", "boom").cause(cause)
        })
    };
    assert_eq!(pile(20).network_failure(), Some(Network::Refused));
    assert_eq!(pile(21).network_failure(), None);
    // However many are given, none is deep: this one is dropped on the stack of a test.
    let high = pile(100_000);
    assert_eq!(high.causes().count(), 20);
    assert!(high.causes().all(|cause| cause.class() == "x.Boom"));
    // The last cause that is given stays.
    let told = Fault::new("x.Boom", "boom")
        .cause(fault_of(refused()))
        .cause(fault_of(timed_out()));
    assert_eq!(told.network_failure(), Some(Network::ReadTimeout));
}

#[test]
fn a_message_has_2048_bytes_at_most() {
    struct Endless;
    impl std::fmt::Display for Endless {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            loop {
                f.write_str("ab€")?;
            }
        }
    }
    impl std::fmt::Debug for Endless {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("Endless")
        }
    }
    impl Error for Endless {}
    let classes = classes();
    // 2,048 is 5 × 409 + 3: the last three bytes would cut a character.
    let cut = format!("{}ab", "ab€".repeat(409));
    assert_eq!(classes.record(fault_of(Endless)).message, cut);
    assert_eq!(classes.record(Fault::new("x.Boom", "ab€".repeat(1_000))).message, cut);
    let whole = "x".repeat(2_048);
    assert_eq!(classes.record(Fault::new("x.Boom", whole.clone())).message, whole);
    let long = classes.record(Fault::new("€".repeat(1_000), "boom"));
    assert_eq!(long.class, "€".repeat(170));
}

/// Errors are users' code too.
#[test]
fn an_error_that_panics_is_a_panic() {
    #[derive(Debug)]
    struct Mad;
    impl std::fmt::Display for Mad {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("mad")
        }
    }
    impl Error for Mad {}
    impl Drop for Mad {
        fn drop(&mut self) {
            panic!("no way out");
        }
    }
    let record = classes().record(fault_of(Mad));
    assert_eq!(record.class, "procession.Panic");
    assert_eq!(record.message, "its error panicked: no way out");
}

#[test]
fn a_fault_is_kept_by_names_that_do_not_change() {
    let rows = [
        (
            Some(Network::Refused),
            json!({ "c": "x.Boom", "m": "boom", "n": "refused" }),
        ),
        (
            Some(Network::ConnectTimeout),
            json!({ "c": "x.Boom", "m": "boom", "n": "connect_timeout" }),
        ),
        (
            Some(Network::ReadTimeout),
            json!({ "c": "x.Boom", "m": "boom", "n": "read_timeout" }),
        ),
        (None, json!({ "c": "x.Boom", "m": "boom" })),
    ];
    for (network, stored) in rows {
        let record = FaultRecord::new("x.Boom", "boom", network);
        assert_eq!(serde_json::to_value(&record).ok(), Some(stored.clone()));
        assert_eq!(serde_json::from_value::<FaultRecord>(stored).ok(), Some(record));
    }
}

#[test]
fn a_fault_shows_all_that_it_is() {
    let fault = Fault::new("x.Boom", "boom").cause(fault_of(refused()));
    assert_eq!(fault.to_string(), "x.Boom: boom");
    assert_eq!(
        format!("{fault:?}"),
        "Fault { class: \"x.Boom\", message: \"boom\", network: None, causes: [Fault { class: \"std::io::error::Error\", \
         message: \"connection refused\", network: Some(Refused), causes: [] }] }"
    );
}

//! The client: a connection for each call, and what its failures mean.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use actix_service::ServiceExt;
use actix_tls::connect::{Connection, Connector as TcpConnector};
use awc::error::{ConnectError, SendRequestError};
use awc::{Client, ClientRequest, Connector};

use super::super::{Fault, Network};
use super::watched::Watched;

const CONNECT: &str = "java.net.ConnectException";
const TIMEOUT: &str = "java.net.SocketTimeoutException";
const BROKEN: &str = "java.io.IOException";

thread_local! {
    /// A client belongs to its thread. There is one for each time to connect, as endpoints have them.
    static CLIENTS: RefCell<BTreeMap<Duration, Client>> = const { RefCell::new(BTreeMap::new()) };
}

/// Begins a request on a connection of its own. On one that was kept, a server that closes it at that moment would leave
/// the call in doubt, and every such call would need a person.
pub(super) fn post(url: &str, time_to_connect: Duration) -> ClientRequest {
    CLIENTS.with_borrow_mut(|clients| {
        let client = clients
            .entry(time_to_connect)
            .or_insert_with(|| new_client(time_to_connect));
        client.post(url).force_close()
    })
}

fn new_client(time_to_connect: Duration) -> Client {
    let connections = TcpConnector::default().service().map(|connection: Connection<_, _>| {
        let (stream, request) = connection.replace_io(());
        request.replace_io(Watched(stream)).1
    });
    let connector = Connector::new().connector(connections).timeout(time_to_connect);
    // The caller limits the whole call.
    Client::builder()
        .connector(connector)
        .disable_timeout()
        .disable_redirects()
        .finish()
}

/// Returns the fault of a call that got no answer in time.
pub(super) fn silent(time: Duration) -> Fault {
    Fault::new(TIMEOUT, format!("no answer within {} ms", time.as_millis())).network(Network::ReadTimeout)
}

/// Returns the fault of a request that got no answer. What happened before a connection stood had no effect.
pub(super) fn fault_of(error: &SendRequestError) -> Fault {
    if let SendRequestError::Connect(ConnectError::Timeout) = error {
        return Fault::new(TIMEOUT, "nobody answers the attempt to connect").network(Network::ConnectTimeout);
    }
    let is_late = matches!(
        error,
        SendRequestError::Connect(ConnectError::Disconnected | ConnectError::H2(_))
    );
    let before = !is_late && matches!(error, SendRequestError::Url(_) | SendRequestError::Connect(_));
    match before {
        true => Fault::new(CONNECT, format!("no connection: {error}")).network(Network::Refused),
        false => Fault::new(BROKEN, format!("the connection broke: {error}")),
    }
}

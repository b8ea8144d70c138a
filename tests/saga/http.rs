//! Services over HTTP: what is sent, and what an answer or its absence means.

use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use procession::Executor;
use procession::saga::{Endpoint, Sagas, Settled, StateInstance};
use serde_json::{Value, json};

use crate::Tested;
use crate::server::{Answer, Request, serve};

/// What a call came to: status, class and message of its fault, and the context behind it.
type Came = (String, Option<(String, String)>, Value);

/// Calls a method over HTTP once, as a task that has a compensator.
fn call(endpoint: Endpoint) -> Result<Came, Box<dyn std::error::Error>> {
    let task = r#""Type": "ServiceTask", "ServiceName": "stock", "ServiceMethod": "reduce all",
        "Input": ["tea", { "count": 3 }], "Output": { "left": "$.#root" }, "CompensateState": "Undo""#;
    let undo = r#""Type": "ServiceTask", "ServiceName": "stock", "ServiceMethod": "undo""#;
    let states = format!(r#"{{ "Café 1": {{ {task} }}, "Undo": {{ {undo} }} }}"#);
    let definition = format!(r#"{{ "Name": "m", "StartState": "Café 1", "States": {states} }}"#);
    let sagas = Sagas::builder()
        .json("m.json", definition)
        .http("stock", endpoint)
        .build()?;
    let directory = tempfile::tempdir()?;
    actix_rt::System::new().block_on(async {
        let executor = Executor::builder(directory.path().join("j"))
            .sagas(sagas.clone())
            .start()
            .await?;
        let id = executor.submit(sagas.machine("m")?).await?.id();
        let saga = executor.saga(id);
        let settled = saga.settled().await?;
        let instance = saga.instance().await?;
        let StateInstance { status, fault, .. } = instance.states.first().ok_or("it was called")?.clone();
        assert_eq!(matches!(settled, Settled::Ended(_)), fault.is_none());
        executor.drain(Duration::from_secs(10)).await?;
        Ok((status.to_string(), fault, instance.context.into()))
    })
}

fn answered(status: u16, body: &str) -> Result<Came, Box<dyn std::error::Error>> {
    let body = body.to_owned();
    let address = serve(move |_| Answer::Status(status, body.clone()))?;
    let endpoint = Endpoint::new(format!("http://{address}/")).fault("http.409", "com.acme.Conflict");
    call(endpoint.timeout(Duration::from_secs(30)))
}

#[test]
fn a_call_says_what_it_is_and_its_answer_is_the_result() -> Tested {
    let asked = Arc::new(Mutex::new(Vec::<Request>::new()));
    let seen = Arc::clone(&asked);
    let address = serve(move |request| {
        seen.lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .push(request.clone());
        Answer::Status(200, r#"{"left": 4}"#.to_owned())
    })?;
    let endpoint = Endpoint::new(format!("http://{address}/stock/{{method}}")).header("authorization", "Bearer 1");
    let (status, fault, context) = call(endpoint)?;
    assert_eq!((status.as_str(), fault), ("SU", None));
    assert_eq!(context, json!({ "left": { "left": 4 } }));
    let asked = asked.lock().map_err(|_| "no test has panicked")?;
    let [request] = asked.as_slice() else {
        return Err(format!("one request, not {asked:?}").into());
    };
    assert_eq!(request.path, "/stock/reduce%20all");
    assert_eq!(request.body, r#"["tea",{"count":3}]"#);
    let header = |name: &str| request.headers.get(name).map(String::as_str);
    assert_eq!(header("content-type"), Some("application/json"));
    assert_eq!(header("authorization"), Some("Bearer 1"));
    assert_eq!(header("procession-state"), Some("Caf%C3%A9%201"));
    assert_eq!(header("procession-attempt"), Some("1"));
    assert_eq!(header("procession-saga"), Some("1.0"));
    assert!(
        header("idempotency-key").is_some_and(|key| key.ends_with("-1.0-0")),
        "{request:?}"
    );
    Ok(())
}

#[test]
fn a_status_says_whether_it_is_a_fault_and_the_body_says_which() -> Tested {
    let fault = |class: &str, message: &str| Some((class.to_owned(), message.to_owned()));
    for (status, body, expected) in [
        (204, "", None),
        (201, "7", None),
        (
            500,
            r#"{"class": "x.Boom", "message": "boom"}"#,
            fault("x.Boom", "boom"),
        ),
        (500, r#"{"class": "x.Boom"}"#, fault("x.Boom", "")),
        (500, r#"{"class": "x.Boom", "message": null}"#, fault("x.Boom", "")),
        (503, "come back later", fault("http.503", "come back later")),
        (409, "taken", fault("com.acme.Conflict", "taken")),
        // A redirect is not followed.
        (302, "", fault("http.302", "")),
    ] {
        let (came, found, _) = answered(status, body)?;
        assert_eq!(found, expected, "{status} {body}");
        assert_eq!(came == "SU", expected.is_none(), "{status} {body}: {came}");
    }
    let (status, found, _) = answered(200, "no JSON")?;
    let (class, message) = found.ok_or("it is a fault")?;
    assert_eq!((status.as_str(), class.as_str()), ("UN", "procession.BadResult"));
    assert!(message.contains("its answer is no JSON"), "{message}");
    Ok(())
}

#[test]
fn an_answer_has_a_bound() -> Tested {
    let long = format!("\"{}\"", "x".repeat(1 << 20));
    let (status, found, _) = answered(200, &long)?;
    let (class, message) = found.ok_or("it is a fault")?;
    assert_eq!((status.as_str(), class.as_str()), ("UN", "procession.BadResult"));
    assert!(message.contains("more than 1048576 bytes"), "{message}");
    Ok(())
}

/// A server that does not say how long its answer is says where it ends.
#[test]
fn an_answer_in_chunks_is_whole_with_its_last_chunk() -> Tested {
    let answered = |text: &'static str| {
        let address = serve(move |_| Answer::Raw(text.as_bytes().to_vec()))?;
        call(Endpoint::new(format!("http://{address}/")))
    };
    let empty = "HTTP/1.1 200 x\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n";
    let (status, found, context) = answered(empty)?;
    assert_eq!((status.as_str(), found, context), ("SU", None, json!({})));
    let number = "HTTP/1.1 200 x\r\nTransfer-Encoding: Chunked\r\n\r\n1\r\n4\r\n1\r\n2\r\n0\r\n\r\n";
    let (status, found, context) = answered(number)?;
    assert_eq!((status.as_str(), found, context), ("SU", None, json!({ "left": 42 })));
    Ok(())
}

#[test]
fn a_status_that_is_a_fault_is_kept_whatever_becomes_of_its_body() -> Tested {
    for (text, message) in [
        ("HTTP/1.1 409 x\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", ""),
        ("HTTP/1.1 409 x\r\ntransfer-encoding: chunked\r\n\r\n", ""),
        ("HTTP/1.1 409 x\r\n\r\n", ""),
        ("HTTP/1.1 409 x\r\ncontent-length: 9\r\n\r\ntak", "tak"),
    ] {
        let address = serve(move |_| Answer::Raw(text.as_bytes().to_vec()))?;
        let (_, found, _) = call(Endpoint::new(format!("http://{address}/")))?;
        assert_eq!(found, Some(("http.409".to_owned(), message.to_owned())), "{text}");
    }
    let (_, found, _) = answered(503, &"x".repeat((1 << 20) + 1))?;
    assert_eq!(found.map(|(class, _)| class).as_deref(), Some("http.503"));
    Ok(())
}

#[test]
fn headers_of_one_name_are_all_sent() -> Tested {
    let asked = Arc::new(Mutex::new(Request::default()));
    let seen = Arc::clone(&asked);
    let address = serve(move |request| {
        *seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = request.clone();
        Answer::Status(204, String::new())
    })?;
    let endpoint = Endpoint::new(format!("http://{address}/"))
        .header("X-Tag", "one")
        .header("x-tag", "two")
        .header("Procession-Attempt", "mine");
    call(endpoint)?;
    let asked = asked.lock().map_err(|_| "no test has panicked")?;
    let header = |name: &str| asked.headers.get(name).map(String::as_str);
    assert_eq!(header("x-tag"), Some("one, two"));
    assert_eq!(header("procession-attempt"), Some("mine"));
    Ok(())
}

#[test]
fn a_call_without_a_connection_had_no_effect() -> Tested {
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    for url in [format!("http://{address}/"), "http://no-such-host.invalid/".to_owned()] {
        let (status, found, _) = call(Endpoint::new(url))?;
        let (class, message) = found.ok_or("it is a fault")?;
        assert_eq!(
            (status.as_str(), class.as_str()),
            ("FA", "java.net.ConnectException"),
            "{message}"
        );
    }
    Ok(())
}

#[test]
fn a_call_without_an_answer_is_in_doubt() -> Tested {
    let silent = serve(|_| Answer::Never)?;
    let endpoint = Endpoint::new(format!("http://{silent}/")).timeout(Duration::from_millis(200));
    let (status, found, _) = call(endpoint)?;
    let expected = (
        "java.net.SocketTimeoutException".to_owned(),
        "no answer within 200 ms".to_owned(),
    );
    assert_eq!((status.as_str(), found), ("UN", Some(expected)));

    let cut = b"HTTP/1.1 200 x\r\ncontent-length: 9\r\n\r\n1".to_vec();
    let cut_at_once = b"HTTP/1.1 200 x\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    let cut_number = b"HTTP/1.1 200 x\r\ntransfer-encoding: chunked\r\n\r\n1\r\n4\r\n".to_vec();
    let no_length = b"HTTP/1.1 200 x\r\n\r\n".to_vec();
    let broken = [Vec::new(), b"HTTP/1.1 2".to_vec(), b"none".to_vec()];
    for answer in broken.into_iter().chain([cut, cut_at_once, cut_number, no_length]) {
        let broken = serve(move |_| Answer::Raw(answer.clone()))?;
        let (status, found, _) = call(Endpoint::new(format!("http://{broken}/")))?;
        let (class, message) = found.ok_or("it is a fault")?;
        assert_eq!(
            (status.as_str(), class.as_str()),
            ("UN", "java.io.IOException"),
            "{message}"
        );
    }
    Ok(())
}

#[test]
fn what_is_wrong_with_an_endpoint_is_said_with_everything_else() {
    let build = |endpoint: Endpoint| {
        Sagas::builder()
            .http("stock", endpoint)
            .build()
            .unwrap_err()
            .to_string()
    };
    for (endpoint, expected) in [
        (Endpoint::new("https://stock/"), "its url begins with https"),
        (Endpoint::new("/stock/{method}"), "its url has no scheme or no host"),
        (Endpoint::new("http://a b/"), "its url cannot be read"),
        (
            Endpoint::new("http://a/").header("a b", "1"),
            "its header [a b] has no name of a header",
        ),
        (
            Endpoint::new("http://a/").header("a", "secret\n"),
            "the value of its header [a] cannot be sent",
        ),
        (Endpoint::new("http://a/").timeout(Duration::ZERO), "its time-out is 0"),
    ] {
        let text = build(endpoint);
        assert!(
            text.contains("service [stock] cannot be reached") && text.contains(expected),
            "{text}"
        );
        assert!(!text.contains("secret"), "{text}");
    }
}

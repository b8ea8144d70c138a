//! What is taken, and what is refused.

use super::{LONGEST, TraceUrlError, checked};

#[test]
fn an_address_names_a_host_and_has_a_place_for_the_trace() {
    for right in [
        "https://tracing.example/trace/{trace_id}",
        "http://localhost:16686/trace/{trace_id}?uiFind={span_id}",
        "https://grafana.example?q=%22{trace_id}%22#{trace_id}",
    ] {
        assert_eq!(checked(right).as_deref(), Ok(right));
    }
    for (wrong, why) in [
        ("javascript:alert({trace_id})", TraceUrlError::Scheme),
        ("//tracing.example/{trace_id}", TraceUrlError::Scheme),
        ("https:///{trace_id}", TraceUrlError::Scheme),
        ("HTTPS://tracing.example/{trace_id}", TraceUrlError::Scheme),
        ("https://tracing.example/trace/", TraceUrlError::NoPlace),
        ("https://{trace_id}.example/", TraceUrlError::Characters),
        ("https://tracing.example/{trace_id}/{tenant}", TraceUrlError::Characters),
        ("https://tracing.example/ {trace_id}", TraceUrlError::Characters),
    ] {
        assert_eq!(checked(wrong), Err(why), "{wrong}");
    }
    let long = format!("https://tracing.example/{{trace_id}}{}", "a".repeat(LONGEST));
    assert_eq!(checked(&long), Err(TraceUrlError::TooLong));
}

//! Rules of `id`, one by one.

use super::*;

#[test]
fn an_id_reads_as_it_parses() -> Result<(), ParseProcedureIdError> {
    let id = ProcedureId::new(42, 3);
    assert_eq!(id.to_string(), "42.3");
    assert_eq!("42.3".parse::<ProcedureId>()?, id);
    Ok(())
}

#[test]
fn a_text_that_is_no_id_is_refused_with_the_form() {
    for text in ["", "42", "x.1", "1.", "1.-1", "1.2.3"] {
        let refused = text.parse::<ProcedureId>().map_err(|error| error.to_string());
        assert!(refused.is_err_and(|text| text.contains("family.member")), "{text:?}");
    }
}

#[test]
fn time_saturates_at_both_ends() {
    assert_eq!(Timestamp(5).after(Duration::MAX), Timestamp::LAST);
    assert_eq!(Timestamp(5).since(Timestamp(9)), Duration::ZERO);
}

#[test]
fn an_instant_reads_as_date_and_time() {
    let second = |second: u64| Timestamp(second * 1_000_000).to_string();
    assert_eq!(second(0), "1970-01-01T00:00:00Z");
    assert_eq!(second(951_782_399), "2000-02-28T23:59:59Z");
    assert_eq!(second(951_782_400), "2000-02-29T00:00:00Z");
    assert_eq!(second(1_709_164_800), "2024-02-29T00:00:00Z");
    assert_eq!(second(1_735_689_599), "2024-12-31T23:59:59Z");
    assert_eq!(second(4_107_542_400), "2100-03-01T00:00:00Z");
    assert_eq!(second(1_795_259_895), "2026-11-21T11:18:15Z");
    assert_eq!(Timestamp(1_250_000).to_string(), "1970-01-01T00:00:01.25Z");
    assert_eq!(Timestamp(1).to_string(), "1970-01-01T00:00:00.000001Z");
    assert!(Timestamp(u64::MAX).to_string().ends_with('Z'));
}

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
    assert_eq!(Timestamp(5).after(Duration::MAX), Timestamp(u64::MAX));
    assert_eq!(Timestamp(5).since(Timestamp(9)), Duration::ZERO);
}

//! What each term means, what is refused and where, and that no text is too much.

use proptest::prelude::*;

use procession_actors::view::FamilyScope;
use procession_kernel::{Label, ProcedureState};

use super::words::{STATES, StateWord};
use super::{FILTER_MAX, Filter};

fn written(text: &str) -> String {
    match text.parse::<Filter>() {
        Ok(filter) => filter.to_string(),
        Err(error) => format!("{}: {}", error.position(), error.why()),
    }
}

#[test]
fn every_field_is_read_and_written() {
    let same = [
        "",
        "state:waiting reason:lock kind:create_table key:req- age:>10m attempts:>3 err:timeout root:42",
        "state:live,ended,rolledback rule:retry_storm,poison",
        "kind:\"a b\",\"c,d\" err:\"rpc timeout\" \"state:waiting\"",
        "name:small name:\"album 7\" kind:resize",
        "age:<=90s since:>=1d attempts:=0 req-4",
        "label:customer=4711 label:\"city=New York\" label:note=a=b label:urgent= key:=order-4711",
    ];
    for text in same {
        assert_eq!(written(text), text);
    }
    let other = [
        ("state:Waiting_Timeout", "state:waitingtimeout"),
        ("state:RollingBack,live", "state:rolling_back,live"),
        ("state:Retrying", "state:retrying"),
        (
            "rule:s2,S11",
            "rule:retry_storm,store_slow,store_unreadable,disk_nearly_full,store_failed",
        ),
        ("age:10m attempts:3", "age:>=10m attempts:=3"),
        ("age:>1000ms since:>0h", "age:>1s since:>0s"),
        ("root:42.7", "root:42"),
        ("  a\t\"b\"  ", "a b"),
        ("err:TimeOut", "err:timeout"),
        (r#"key:"a\"b\\c""#, r#"key:"a\"b\\c""#),
    ];
    for (text, expected) in other {
        assert_eq!(written(text), expected, "{text}");
    }
}

#[test]
fn a_refusal_lists_every_state() {
    let listed: Vec<StateWord> = STATES
        .into_iter()
        .map(|word| StateWord::read(word).expect("it is listed"))
        .collect();
    for state in ProcedureState::ALL {
        // This one is listed as waiting.
        let is_listed = state == ProcedureState::WaitingTimeout || listed.contains(&StateWord::Is(state));
        assert!(is_listed, "{state}");
    }
    for word in [
        StateWord::Live,
        StateWord::Ended,
        StateWord::Retrying,
        StateWord::RollingBack,
    ] {
        assert!(listed.contains(&word), "{word}");
    }
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let wrong = [
        ("state:sleepy", "7: \"sleepy\" is no state"),
        ("state:live,x", "12: \"x\" is no state"),
        ("ä reason:why", "10: \"why\" is no reason"),
        ("colour:red", "1: there is no field \"colour\""),
        ("age:>soon", "5: \"soon\" is no time"),
        ("age:>99999999999999999999d", "5: "),
        ("age:>18446744073709551615d", "5: "),
        ("age:>-5m", "5: \"-5m\" is no time"),
        ("age:>5", "5: \"5\" is no time"),
        ("attempts:+3", "10: \"+3\" is no number"),
        ("attempts:1,2", "12: this field takes one value"),
        ("label:customer", "7: \"customer\" has no value"),
        ("label:=4711", "7: \"\" is no name of a label"),
        ("label:a=1,b=2", "11: this field takes one value"),
        ("key:=", "5: a key is missing"),
        ("root:x", "6: \"x\" is no root"),
        ("rule:S16", "6: \"S16\" is no rule"),
        ("kind:", "6: a value is missing"),
        ("kind:a,", "8: a value is missing"),
        ("kind:\"a", "6: the closing \" is missing"),
        ("kind:\"a\"b", "9: a blank is missing before \"b\""),
        ("a\"b\"", "2: a blank is missing before \"\\\"\""),
        (r#"key:"a\n""#, "8: behind \\ only \" and \\ may stand"),
        ("\"\"", "1: a value is missing"),
    ];
    for (text, expected) in wrong {
        let written = written(text);
        assert!(written.starts_with(expected), "{text}: {written}");
    }
}

#[test]
fn a_filter_has_a_bound() {
    let most = "a".repeat(FILTER_MAX);
    assert!(most.parse::<Filter>().is_ok());
    let error = format!("{most}ä").parse::<Filter>().map_err(|error| error.position());
    assert_eq!(error, Err(FILTER_MAX + 1));
}

/// Guided fuzzing found it: what was read here was refused where it was sent on.
#[test]
fn the_bound_holds_for_a_filter_as_it_is_written() -> Result<(), super::FilterError> {
    // It is written `age:>=1h`.
    let written = "age:1h ".repeat(113).parse::<Filter>()?.to_string();
    assert_eq!(written.parse::<Filter>()?.to_string(), written);
    let error = "age:1h "
        .repeat(114)
        .parse::<Filter>()
        .map_err(|error| error.to_string());
    let why = "the filter cannot be read at character 799: written in full it has 1025 bytes, and 1024 are the limit";
    assert_eq!(error, Err(why.to_owned()));
    Ok(())
}

#[test]
fn families_are_those_that_all_terms_name() {
    let families = |text: &str| text.parse::<Filter>().ok().and_then(|filter| filter.families());
    assert_eq!(families("state:live"), None);
    assert_eq!(families("root:7,8 root:8,9"), Some([8].into()));
}

/// An index answers what it can, and the narrowest one is asked.
#[test]
fn a_list_reads_the_families_that_an_index_names() {
    let label = |name: &str, value: &str| Label::new(name, value);
    let prefix = |live| FamilyScope::KeyPrefix {
        prefix: "order-47".to_owned(),
        live,
    };
    let cases = [
        ("root:7 key:=a label:b=1", FamilyScope::Families([7].into())),
        ("label:b=1 key:=a", FamilyScope::Key("a".to_owned())),
        (
            "key:order- label:b=1 state:live label:c=2",
            FamilyScope::Labelled(vec![label("b", "1"), label("c", "2")]),
        ),
        ("key:order-47 key:order- order", prefix(true)),
        ("kind:a order", FamilyScope::Live),
    ];
    for (text, scope) in cases {
        let filter = text.parse::<Filter>().unwrap_or_default();
        assert_eq!(filter.scope(true), scope, "{text}");
    }
    assert_eq!(
        "key:order-47".parse::<Filter>().map(|filter| filter.scope(false)),
        Ok(prefix(false))
    );
    assert_eq!(Filter::default().scope(false), FamilyScope::All);
}

#[test]
fn only_words_on_unfinished_ones_leave_out_the_finished() {
    let is_of_live = |text: &str| text.parse::<Filter>().is_ok_and(|filter| filter.is_of_live());
    for text in [
        "",
        "reason:lock",
        "state:live",
        "state:retrying,rolling_back",
        "state:failed state:live",
        "state:initializing,runnable",
        "state:waiting,waiting_timeout",
    ] {
        assert!(is_of_live(text), "{text}");
    }
    for text in [
        "state:ended",
        "state:failed",
        "state:live,success",
        "state:waiting,rolled_back",
    ] {
        assert!(!is_of_live(text), "{text}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,80}") {
        survives(&text)?;
    }

    #[test]
    fn texts_of_the_language_are_read_or_refused(
        text in "((state|reason|kind|key|label|age|attempts|err|root|rule|x)?:?[<>=]{0,2}(\"[a \\\\:,\"]{0,4}\"?|[0-9]{0,21}(ms|s|m|h|d)?|live|lock|S2|[a-z.]{0,4})[, ]?){0,6}",
    ) {
        survives(&text)?;
    }
}

/// What is read is written so that it is read again as the same; what is not has a place in the text.
fn survives(text: &str) -> Result<(), TestCaseError> {
    match text.parse::<Filter>() {
        Ok(filter) => prop_assert_eq!(filter.to_string().parse::<Filter>(), Ok(filter)),
        Err(error) => prop_assert!((1..=text.chars().count() + 1).contains(&error.position())),
    }
    Ok(())
}

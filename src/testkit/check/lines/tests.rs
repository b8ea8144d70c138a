//! How lines of two runs are put side by side.

use super::*;

fn line(text: &str, value: &[u8]) -> Line {
    Line::new(text.to_owned(), value)
}

#[test]
fn lines_that_read_alike_differ_by_their_values() {
    let one = [line("a: 1", &[1]), line("b: 2", &[2])];
    let two = [line("a: 1", &[0xcc, 1]), line("b: 2", &[2])];
    assert_eq!(differ("they differ", &one, &one), Ok(()));
    let told = differ("they differ", &one, &two).unwrap_err();
    let shown: Vec<&str> = told.lines().collect();
    assert_eq!(shown.len(), 3, "{told}");
    assert!(shown[1].contains("- a: 1 #") && shown[2].contains("+ a: 1 #"), "{told}");
    assert_ne!(shown[1].split('#').nth(1), shown[2].split('#').nth(1), "{told}");
}

#[test]
fn a_line_that_reads_like_no_other_is_shown_as_it_is() {
    let told = differ("they differ", &[line("a: 1", &[1])], &[line("a: 2", &[2])]);
    assert_eq!(told, Err("they differ:\n    - a: 1\n    + a: 2".to_owned()));
}

#[test]
fn another_order_differs() {
    let (one, two) = (line("a", &[]), line("b", &[]));
    let told = differ("they differ", &[one.clone(), two.clone()], &[two, one]);
    assert_eq!(
        told,
        Err("they differ: the same lines, in another order or number".to_owned())
    );
}

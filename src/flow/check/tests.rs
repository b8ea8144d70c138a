//! How the order of nodes is found, and how a cycle is named.

use super::*;

fn graph(parents: &[&[usize]]) -> Graph {
    Graph {
        parents: parents.iter().map(|parents| parents.to_vec()).collect(),
        names: (0..parents.len()).map(|place| place.to_string()).collect(),
    }
}

fn ordered(parents: &[&[usize]]) -> Result<Vec<usize>, String> {
    let mut problems = Problems::default();
    let order = graph(parents).order(&mut problems);
    match problems.first.first() {
        Some(problem) => Err(problem.to_string()),
        None => Ok(order),
    }
}

#[test]
fn the_order_of_adding_is_kept_where_it_can_be() {
    assert_eq!(ordered(&[&[], &[0], &[0], &[1, 2]]), Ok(vec![0, 1, 2, 3]));
    assert_eq!(ordered(&[&[], &[], &[0]]), Ok(vec![0, 1, 2]));
}

#[test]
fn parents_are_put_before_their_children() {
    assert_eq!(ordered(&[&[1], &[2], &[]]), Ok(vec![2, 1, 0]));
    assert_eq!(ordered(&[&[3], &[], &[1], &[1, 2]]), Ok(vec![1, 2, 3, 0]));
}

#[test]
fn a_text_lists_the_first_names_and_counts_the_others() {
    let next: Vec<[usize; 1]> = (0..30).map(|place: usize| [(place + 29) % 30]).collect();
    let ring: Vec<&[usize]> = next.iter().map(<[usize; 1]>::as_slice).collect();
    let told = ordered(&ring).expect_err("it is a ring");
    assert!(told.starts_with("cycle: 0 -> 1 -> 2 -> "), "{told}");
    assert!(told.ends_with(" -> 19 and 11 more"), "{told}");
}

#[test]
fn a_cycle_is_named_from_its_first_node_on_along_the_edges() {
    assert_eq!(ordered(&[&[2], &[0], &[1]]), Err("cycle: 0 -> 1 -> 2 -> 0".to_owned()));
    assert_eq!(ordered(&[&[], &[1, 0]]), Err("cycle: 1 -> 1".to_owned()));
    // What only stands behind a cycle is not part of it.
    assert_eq!(ordered(&[&[1], &[2], &[1]]), Err("cycle: 1 -> 2 -> 1".to_owned()));
}

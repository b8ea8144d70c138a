//! Whom a served ticket stands for.

use procession_kernel::{ProcedureId, Ticket};

use super::{Heard, Tickets};

const ID: ProcedureId = ProcedureId::root(1);
const TICKET: Ticket = Ticket(7);

fn tickets() -> Tickets {
    let mut tickets = Tickets::new(Vec::new());
    tickets.bind(TICKET, ID);
    tickets
}

#[test]
fn one_that_has_asked_again_is_told_by_the_answer_alone() {
    let mut tickets = tickets();
    assert_eq!(tickets.served(TICKET), Some(ID));

    tickets.asks(ID);
    tickets.asks(ID);
    assert_eq!(tickets.served(TICKET), None);
    assert!(!tickets.hears(ID, Heard::Answer(true)), "another question is out");
    assert_eq!(tickets.served(TICKET), None, "another question is out");
    assert!(tickets.hears(ID, Heard::Answer(true)));
    assert_eq!(tickets.served(TICKET), Some(ID));
    assert!(tickets.hears(ID, Heard::Answer(true)), "one that no decision asked");
    assert_eq!(tickets.served(TICKET), Some(ID), "an answer to nothing changes nothing");
}

#[test]
fn the_last_answer_is_the_truth() {
    let mut tickets = tickets();
    tickets.asks(ID);
    assert_eq!(tickets.served(TICKET), None);
    assert!(
        !tickets.hears(ID, Heard::Answer(false)),
        "it was served what it no longer asks for"
    );
}

#[test]
fn a_question_that_was_never_asked_hides_no_grant() {
    let mut tickets = tickets();
    tickets.asks(ID);
    assert!(!tickets.hears(ID, Heard::NotAsked), "nothing was granted");
    tickets.asks(ID);
    assert_eq!(tickets.served(TICKET), None);
    assert!(tickets.hears(ID, Heard::NotAsked));
    tickets.asks(ID);
    tickets.asks(ID);
    assert!(!tickets.hears(ID, Heard::Answer(true)));
    assert!(tickets.hears(ID, Heard::NotAsked), "the answer before it was not told");
}
